"""Judge fixtures without pytest: one line each, and exit code 1 where one escaped or was not judged.

python tests/adversarial/run_gpu.py [--target cuda] [--lock RUN/lock.json] [--seconds N] [NAME ...]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from akarena import schemas
from akarena.records import LockRecord
from akarena.records.run import Calibration
from akarena.records.task import TargetName
from tests.adversarial.bench import Bench
from tests.adversarial.catalogue import FIXTURES, on


def main() -> int:
    """Judge the named fixtures, or all of the target, in order of importance until the time is over."""
    parser = argparse.ArgumentParser(description="Judge the adversarial fixtures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="fixtures to judge (default: all)")
    parser.add_argument("--target", default="cuda", choices=[name.value for name in TargetName])
    parser.add_argument("--lock", type=Path, help="lock.json of a run on this device, whose calibration is used")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no further fixture after this time")
    parser.add_argument("--at-once", type=int, default=4, help="how many that are not timed are judged together")
    parser.add_argument("--evidence", action="store_true", help="print what the judge says below each line")
    options = parser.parse_args()
    target = TargetName(options.target)
    known = {fixture.name: fixture for fixture in on(target)}
    if unknown := sorted(set(options.names) - known.keys()):
        parser.error(f"no such fixture on {target.value}: {', '.join(unknown)} (there are: {', '.join(known)})")
    bench = Bench(target, _calibration(options.lock))
    chosen = [known[name] for name in options.names or known]
    escaped = judged = 0
    for outcome in bench.judge_all(chosen, options.at_once, options.seconds):
        judged += 1
        escaped += outcome.escaped is not None
        print(outcome.line(), flush=True)
        if options.evidence or outcome.escaped is not None:
            print(f"    {outcome.evidence[:1500]}", flush=True)
    print(f"{judged} of {len(chosen)} judged, {escaped} escaped; {len(FIXTURES) - len(known)} are for other targets")
    return int(escaped > 0 or judged < len(chosen))


def _calibration(lock: Path | None) -> Calibration | None:
    if lock is None:
        return None
    return schemas.parse(LockRecord, lock.read_bytes(), str(lock)).calibration


if __name__ == "__main__":
    sys.exit(main())
