"""Whether the calls of a replay are apart: nothing may be gained by carrying several of them out together.

A candidate's process receives the whole replay and could overlap its calls, batch them into one launch or fetch ahead.
So, after the last block, a secret half of the calls is replayed, which must leave the others alone, and then some of
these others one by one. One call by itself gains nothing from its neighbours: what it takes longer than a call within a
block, beyond what the baseline's does, is added to the candidate's time.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence

from akarena.judge.clock import Clock

_SINGLES = 60
"""Calls that are replayed by themselves; fewer where a block has not twice as many."""
_AT_ONCE = (4, 12)
_SLACK_US = 15.0
_SLACK_SHARE = 0.03
"""Difference that chance explains, of the least replay and of a call: on the H200 up to 8 us between two processes with
the same kernel, and for long calls a part of what these take longer when the device was idle before."""


def singles_us(clock: Clock, secret: random.Random) -> list[float]:
    """Replay half of the calls, then others one by one; returns the microseconds of each of the latter.

    Raises:
        WorkerFaultError: Calls were carried out that were not asked for, or not carried out that were.
    """
    calls = secret.sample(range(clock.plan.sets), clock.plan.sets)
    half, rest = calls[: len(calls) // 2], calls[len(calls) // 2 :]
    word = clock.fresh()
    if half:
        clock.ask_for([half], word)
    clock.require_apart(rest, word)
    found: list[float] = []
    rest = rest[:_SINGLES]
    while rest:
        # Nobody knows which one is the last, whose outputs are looked at as soon as it is answered.
        count = secret.randint(*_AT_ONCE)
        seconds = clock.ask_for([[index] for index in rest[:count]], word)
        rest = rest[count:]
        # The first of several also pays for the device's turning to another process.
        found += [one * 1e6 for one in seconds[1:] or seconds]
    return found


def charge_us(
    baseline: tuple[Sequence[float], Sequence[float]],
    candidate: tuple[Sequence[float], Sequence[float]],
) -> float:
    """Return what is added to the candidate's time per call for what it gains from doing calls together.

    Args:
        baseline: Microseconds of its single replays, and per call of its blocks.
        candidate: The same.
    """
    # The least: whatever delays a message only adds to it, and no call by itself is faster than it is.
    more = [min(singles) - statistics.median(blocks) for singles, blocks in (baseline, candidate)]
    slack = _SLACK_US + _SLACK_SHARE * statistics.median(candidate[1])
    return max(more[1] - more[0] - slack, 0.0)
