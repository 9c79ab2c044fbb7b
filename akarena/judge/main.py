"""Entry of the judge's process: read the job, judge, print one line of JSON on standard output."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

from akarena.sandbox.control import Control

JOB = Path("/job/job.json")
ORACLE = Path("/job/oracle.py")

_PR_SET_DUMPABLE = 4
_UNLIKE_ANY_WORKER = 64
"""A process number that no worker has in its own pid namespace, where numbers start from 1."""


def main() -> None:
    """Run the job that was mounted into this sandbox."""
    began = time.perf_counter()
    _move_to_other_number()
    # What this process holds is secret, so no other process may read its memory.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    control = Control()
    started = _start_others(control, json.loads(JOB.read_bytes()))
    # torch comes in here: it takes seconds, in which builds and workers are on their way.
    from akarena.judge import calibrate, correctness
    from akarena.judge.job import Job, Mode
    from akarena.judge.judge import Judgement

    job = Job.model_validate_json(JOB.read_bytes())
    # A collection in the middle of a block would be measured.
    gc.disable()
    if job.mode is Mode.CALIBRATE:
        answer = {"calibration": calibrate.run(job, control).model_dump(mode="json")}
    else:
        reference = correctness.Reference(job.task, correctness.load_oracle(ORACLE))
        judgement = Judgement(job, control, reference, started, time.perf_counter() - began)
        evaluation, samples = judgement.run()
        answer = {"evaluation": evaluation.model_dump(mode="json"), "samples": samples.model_dump(mode="json")}
    sys.stdout.write(json.dumps(answer, allow_nan=False) + "\n")


def _start_others(control: Control, job: dict[str, Any]) -> dict[str, socket.socket]:
    """Start the builds, and the workers up to the point where a kernel would be loaded."""
    if job["baseline_needs_build"]:
        control.spawn("build_baseline").close()
    if job["candidate_needs_build"]:
        control.spawn("build_candidate").close()
    if job["mode"] == "calibrate":
        return {}
    return {name: control.spawn(name) for name in ("baseline", "candidate")}


def _move_to_other_number() -> None:
    """Go on in a child whose process number is far from any worker's; the parent only passes its exit code on.

    The CUDA driver refuses a memory handle whose exporter has the importer's own process number, taking the two for one
    process. Judge and workers live in pid namespaces of their own, where each would be number 2.
    """
    while True:
        child = os.fork()
        if child == 0:
            if os.getpid() >= _UNLIKE_ANY_WORKER:
                return
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if child >= _UNLIKE_ANY_WORKER:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
