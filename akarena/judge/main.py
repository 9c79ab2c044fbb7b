"""Entry of the judge's process: read the job, judge, print one line of JSON on standard output."""

from __future__ import annotations

import ctypes
import gc
import json
import sys

from akarena.judge import correctness
from akarena.judge.job import JOB, ORACLE, Job, Mode
from akarena.sandbox.control import Control

_PR_SET_DUMPABLE = 4


def main() -> None:
    """Run the job that was mounted into this sandbox."""
    # What this process holds is secret, so no other process may read its memory.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    job = Job.model_validate_json(JOB.read_bytes())
    control = Control()
    # A collection in the middle of a block would be measured.
    gc.disable()
    if job.mode is Mode.CALIBRATE:
        from akarena.judge import calibrate

        answer = {"calibration": calibrate.run(job, control).model_dump(mode="json")}
    else:
        from akarena.judge.judge import Judgement

        reference = correctness.Reference(job.task, correctness.load_oracle(ORACLE))
        evaluation, samples = Judgement(job, control, reference).run()
        answer = {"evaluation": evaluation.model_dump(mode="json"), "samples": samples.model_dump(mode="json")}
    sys.stdout.write(json.dumps(answer, allow_nan=False) + "\n")
