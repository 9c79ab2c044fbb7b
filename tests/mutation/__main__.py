"""Judge mutants of correct kernels: one line for each that is not killed, and exit code 1 where the gate is too weak.

python -m tests.mutation [--target cpu] [--at-once 2] [--seconds N] [--limit N] [--save] [TASK ...]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from akarena import paths, targets, tasks
from akarena.errors import AkarenaError
from tests.mutation import catalogue, equivalent, results
from tests.mutation.bench import Bench
from tests.mutation.verdicts import KILLED, End


def main() -> int:
    """Judge the chosen mutants of each task; returns 1 where one has a survivor, or was not judged."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Try the gate with wrong kernels.")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="tasks, as evaluate selects them (default: all)")
    parser.add_argument("--target", default="cpu", help="a target's name")
    parser.add_argument("--at-once", type=int, default=2, help="how many are judged together")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no further one after this time")
    parser.add_argument("--limit", type=int, default=40, help="most mutants of each source of a task")
    parser.add_argument("--operator", action="append", help="only mutants of this operator")
    parser.add_argument("--again", action="store_true", help="judge also those that have a result already")
    parser.add_argument("--save", action="store_true", help="keep what came of it for the page in the docs")
    options = parser.parse_args()
    try:
        target = targets.get(options.target)
        selected = tasks.select(tasks.load_all(paths.root() / "tasks"), options.tasks)
    except AkarenaError as error:
        parser.error(str(error))
    until = time.monotonic() + options.seconds
    weak = False
    for task in selected:
        bench = Bench(target.name, task.id)
        keep = results.Keeper(target, bench)
        known = set() if options.again else keep.known()
        chosen = [one for one in catalogue.chosen(bench.mutants, options.limit) if one.id not in known]
        if options.operator:
            chosen = [one for one in chosen if one.operator in options.operator]
        if not chosen or time.monotonic() > until:
            weak = weak or bool(chosen)
            continue
        for honest in bench.honest(known=set() if options.again else keep.passed()):
            keep.honest(honest)
            print(f"{task.id} {honest.source}: passes, margin {honest.margins.candidate}", flush=True)
        explained = equivalent.explained(equivalent.load(target.name), task.id, bench.mutants)
        ends: Counter[End] = Counter()
        for mutant, found in bench.judge_all(chosen, options.at_once, until):
            ends[found.end] += 1
            keep.found(mutant, found)
            if found.end not in KILLED and found.end is not End.STILLBORN:
                why = f" (explained: {explained[mutant.id]})" if mutant.id in explained else ""
                print(f"  {found.end.value:10} {mutant.id}: {mutant.change} {found.reason}{why}", flush=True)
                weak = weak or (found.end in (End.SURVIVED, End.VOID) and not why)
            if options.save:
                keep.save()
        weak = weak or ends.total() < len(chosen)
        print(f"{task.id}: {', '.join(f'{ends[end]} {end.value}' for end in sorted(ends))}", flush=True)
    for fault in equivalent.faults_of_all(target.name):
        print(fault)
        weak = True
    return int(weak)


if __name__ == "__main__":
    sys.exit(main())
