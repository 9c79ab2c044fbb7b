"""Judge kernels against themselves on a device: ``python -m tests.quality --rounds 4 --out FILE``."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from akarena import paths, sandbox, schemas, targets, tasks
from akarena.errors import AkarenaError
from akarena.judgement import Court
from akarena.records import LockRecord
from tests.quality import same, summary


def main() -> int:
    """Judge every task in each round, print a line each, and write everything to a file as it comes."""
    parser = argparse.ArgumentParser(prog="python -m tests.quality", description=__doc__)
    parser.add_argument("--target", default="cuda", help="a target that measures speed")
    parser.add_argument("--rounds", type=int, default=4, help="judgements of each task")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no further one after this time")
    parser.add_argument("--lock", type=Path, help="lock.json of a run on this device, whose calibration is used")
    parser.add_argument("--out", type=Path, required=True, help="file for what was found (JSON)")
    options = parser.parse_args()
    try:
        target = targets.get(options.target)
    except AkarenaError as error:
        parser.error(str(error))
    court = Court(sandbox.get("bubblewrap"), target)
    if options.lock:
        court.calibration = schemas.load(LockRecord, options.lock).calibration
    else:
        court.calibration = court.calibrate()
    assert court.calibration is not None
    # The same configurations in each round, so that rounds can be compared.
    seed = secrets.token_bytes(32)
    until = time.monotonic() + options.seconds
    found: list[same.Judged] = []
    with tempfile.TemporaryDirectory(prefix="akarena-quality-") as name:
        copies = {task.id: _copy(task, Path(name)) for task in tasks.load_all(paths.root() / "tasks")}
        for _ in range(options.rounds):
            for task in copies.values():
                if time.monotonic() > until:
                    break
                found.append(same.judge(court, task, court.configurations(task.record, seed)))
                one = found[-1]
                print(f"{one.task:32} {one.speedups} {one.verdicts} {one.fault} {one.seconds} s", flush=True)
                content = {
                    "device": target.facts().device,
                    "judge_digest": court.digest,
                    "instrument_floor": court.calibration.instrument_floor,
                    "judged": [asdict(judged) for judged in found],
                }
                options.out.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    print(json.dumps(asdict(summary.summarise(found)), indent=1))
    return 0


def _copy(task: tasks.Task, folder: Path) -> tasks.Task:
    own = folder / task.id.replace("/", "-")
    own.mkdir()
    return same.against_itself(task, own)


if __name__ == "__main__":
    sys.exit(main())
