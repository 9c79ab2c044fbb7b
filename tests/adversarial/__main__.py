"""Judge fixtures without pytest: one line each, and exit code 1 where one escaped or was not judged.

python -m tests.adversarial [--target cpu] [--lock RUN/lock.json] [--seconds N] [NAME ...]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from akarena import schemas, targets
from akarena.errors import AkarenaError
from akarena.records import LockRecord
from tests.adversarial import results
from tests.adversarial.bench import Bench
from tests.adversarial.catalogue import FIXTURES, on


def main() -> int:
    """Judge the named fixtures, or all of the target, in order of importance until the time is over."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversarial", description="Attack the judge.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="fixtures to judge (default: all)")
    parser.add_argument("--target", default="auto", help="a target's name (default: the first usable one)")
    parser.add_argument("--lock", type=Path, help="lock.json of a run on this device, whose calibration is used")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no further fixture after this time")
    parser.add_argument(
        "--at-once",
        type=int,
        default=min(4, os.cpu_count() or 1),
        help="how many that are not timed are judged together",
    )
    parser.add_argument("--evidence", action="store_true", help="print what the judge says below each line")
    parser.add_argument("--save", action="store_true", help="keep what came of it for the table in the docs")
    options = parser.parse_args()
    try:
        target = targets.get(options.target)
    except AkarenaError as error:
        parser.error(str(error))
    known = {fixture.name: fixture for fixture in on(target.name)}
    if unknown := sorted(set(options.names) - known.keys()):
        parser.error(f"no such fixture on {target.name.value}: {', '.join(unknown)} (there are: {', '.join(known)})")
    bench = Bench(target.name, schemas.load(LockRecord, options.lock).calibration if options.lock else None)
    chosen = [known[name] for name in options.names or known]
    outcomes = []
    for outcome in bench.judge_all(chosen, options.at_once, options.seconds):
        outcomes.append(outcome)
        print(outcome.line(), flush=True)
        if options.evidence or outcome.escaped is not None:
            print(f"    {outcome.evidence[:1500]}", flush=True)
    escaped = sum(outcome.escaped is not None for outcome in outcomes)
    judged = f"{len(outcomes)} of {len(chosen)} judged, {escaped} escaped"
    print(f"{judged}; {len(FIXTURES) - len(known)} are for other targets")
    if options.save:
        results.save(target.name, target.facts().device, outcomes)
    return int(escaped > 0 or len(outcomes) < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
