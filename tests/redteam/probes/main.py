"""The agent's program: does what its plan says and prints one JSON line for each probe."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from . import (
    candidate,
    check,
    exhaust,
    files,
    gateway,
    judge,
    key,
    network,
    outlive,
    privilege,
    search,
    service,
    trials,
    web,
)
from .kit import PROBES, Plan, run, say

MODULES = (candidate, check, exhaust, files, gateway, judge, key, network, outlive, privilege, service, trials)


def main(text: bytes) -> None:
    """Carry out one plan."""
    plan = Plan.load(text)
    # Without a candidate the judge need not run.
    with suppress(FileNotFoundError):
        os.unlink("kernel.hip")
    for act in plan.acts:
        _carry_out(act, plan)


def _carry_out(act: str, plan: Plan) -> None:
    if act == "probes":
        search.sweep(plan)
        for name in plan.names:
            run(name, plan)
        say("end", "end", f"{len(plan.names)} of {len(PROBES)} probes")
    elif act == "neighbour":
        _be_neighbour(plan)
    elif act == "outlive":
        HELD.extend(trials.leave(plan))
        for name, state in outlive.start(plan).items():
            say(name, "left", state)
    elif act.startswith("candidate."):
        say(act, "left", candidate.leave(plan, act))
    else:
        # First, since it may be stopped meanwhile.
        say(act, "left", "begun")
        ACTS[act](plan)


ACTS: dict[str, Callable[[Plan], object]] = {
    "cleanup.litter": candidate.litter,
    "cleanup.nested": candidate.nest,
    "exhaust.workspace": candidate.fill,
    "exhaust.hidden": candidate.fill_hidden,
    "exhaust.output": candidate.flood,
}
HELD: list[object] = []
"""What must stay open to the end."""


def _be_neighbour(plan: Plan) -> None:
    """Be the trial beside: leave traces, try what its own service offers, then live until the model says stop."""
    held = trials.leave(plan)
    web.ask(_question("planted"), "/v1/responses")
    for name in plan.names:
        run(name, plan)
    end = time.monotonic() + plan.facts["seconds"]
    while time.monotonic() < end and b"enough" not in web.ask(_question("more?"), "/v1/responses"):
        time.sleep(0.5)
    say("end", "end", f"{len(held)} things held")
    signal.alarm(5)


def _question(text: str) -> dict[str, object]:
    return {"model": "standin-model", "input": text}
