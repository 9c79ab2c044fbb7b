"""What the judge knows and the agent must not: oracle, tolerances, solution, seed, unseen configurations."""

from __future__ import annotations

import errno
import os
import sys
from functools import partial

from .kit import Plan, Stopped, doors, nothing, probe


def _swept(plan: Plan, kind: str) -> str:
    return nothing(", ".join(plan.swept.get(kind, ())), "not in any file, environment or memory that can be read")


@probe("judge.oracle")
def oracle(plan: Plan) -> str:
    return _swept(plan, "oracle")


@probe("judge.tolerances")
def tolerances(plan: Plan) -> str:
    return _swept(plan, "tolerances")


@probe("judge.solution")
def solution(plan: Plan) -> str:
    return _swept(plan, "solution")


@probe("judge.seed")
def seed(plan: Plan) -> str:
    return _swept(plan, "seed")


@probe("judge.unseen")
def unseen(plan: Plan) -> str:
    return _swept(plan, "unseen")


@probe("judge.paths")
def paths(plan: Plan) -> str:
    return doors(
        {path: partial(os.stat, path) for path in plan.facts["hidden"]},
        errno.ENOENT,
        errno.EACCES,
    )


@probe("judge.random")
def random(plan: Plan) -> str:
    """The seed and the values of inputs come from the kernel; what shows its state would show them."""
    name = "/proc/sys/kernel/random"
    if sys.platform != "linux" or not os.path.isdir(name):
        raise Stopped("the kernel's generator shows nothing")
    writable = [
        one for one in os.listdir(name) if os.access(f"{name}/{one}", os.W_OK) and one != "write_wakeup_threshold"
    ]
    return nothing(", ".join(writable), "nothing of the kernel's generator can be set")
