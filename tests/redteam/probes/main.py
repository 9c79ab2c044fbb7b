"""The agent's program: does what its plan says and prints one JSON line for each probe."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from . import candidate, check, exhaust, files, http, judge, key, network, outlive, privilege, search, service, trials
from .kit import PROBES, Plan, run, say

MODULES = (candidate, check, exhaust, files, judge, key, network, outlive, privilege, service, trials)


def main(text: bytes) -> None:
    """Carry out one plan."""
    plan = Plan.load(text)
    if plan.act == "probes":
        search.sweep(plan)
        for name in plan.names:
            run(name, plan)
        say("end", "end", f"{len(plan.names)} of {len(PROBES)} probes")
    elif plan.act == "neighbour":
        _be_neighbour(plan)
    elif plan.act == "outlive":
        trials.leave(plan)
        with suppress(FileNotFoundError):
            os.unlink("kernel.hip")
        for name, state in outlive.start(plan).items():
            say(name, "left", state)
    elif plan.act.startswith("candidate."):
        say(plan.act, "left", candidate.leave(plan))
    else:
        _leave(plan)


def _leave(plan: Plan) -> None:
    acts = {
        "cleanup.litter": candidate.litter,
        "cleanup.nested": candidate.nest,
        "exhaust.workspace": candidate.fill,
        "exhaust.inodes": candidate.crowd,
        "exhaust.output": candidate.flood,
    }
    given = acts[plan.act](plan)
    if plan.act in ("exhaust.workspace", "exhaust.inodes"):
        time.sleep(20)
    if plan.act != "exhaust.output":
        say(plan.act, "left", str(given))


def _be_neighbour(plan: Plan) -> None:
    """Be the trial beside: leave traces, try what its own service offers, then live until the model says stop."""
    held = trials.leave(plan)
    with suppress(FileNotFoundError):
        os.unlink("kernel.hip")
    http.ask(_question("planted"), "/v1/responses")
    for name in plan.names:
        run(name, plan)
    end = time.monotonic() + plan.facts["seconds"]
    while time.monotonic() < end and b"enough" not in http.ask(_question("more?"), "/v1/responses"):
        time.sleep(0.5)
    say("end", "end", f"{len(held)} things held")
    signal.alarm(5)


def _question(text: str) -> dict[str, object]:
    return {"model": "standin-model", "input": text}
