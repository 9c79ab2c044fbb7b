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

SINGLES = 24
"""Calls that are replayed by themselves; fewer where a block has not twice as many."""
SLACK_US = 40.0
"""Difference that chance explains: what a replay costs besides its calls varies by 25 us, by process and by size, on
the H200."""


def singles_us(clock: Clock, secret: random.Random) -> list[float]:
    """Replay half of the calls, then others one by one; returns the microseconds of each of the latter.

    Raises:
        WorkerFaultError: Calls were carried out that were not asked for, or not carried out that were.
    """
    calls = secret.sample(range(clock.plan.sets), clock.plan.sets)
    half, rest = calls[: len(calls) // 2], calls[len(calls) // 2 :]
    word = clock.fresh()
    if half:
        clock.ask_for(half, word)
    clock.require_apart(rest, word)
    return [clock.ask_for([index], word) * 1e6 for index in rest[:SINGLES]]


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
    return max(more[1] - more[0] - SLACK_US, 0.0)
