"""From judgements of a kernel against itself to what the instrument can be trusted with."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tests.quality.same import Judged

SHORT_US = 10.0
"""Kernels below this are counted apart: what a replay costs weighs more in them."""


@dataclass(frozen=True)
class TaskSpread:
    """How far repeated judgements of one task lie apart.

    Attributes:
        task: Its id.
        judgements: How many.
        median_us: Median time of its configurations.
        deviation: Standard deviation of the logarithm of the speedup over all configurations of a judgement; None
            for one judgement.
    """

    task: str
    judgements: int
    median_us: float
    deviation: float | None


@dataclass(frozen=True)
class Summary:
    """What came of all judgements.

    Attributes:
        intervals: Intervals of single configurations.
        covering: How many of them contain 1.
        half_width: Median half width of an interval, as a share.
        error: Median distance of a point from 1, as a share.
        verdicts: Verdicts of splits.
        faster: How many of them are ``faster``, which is false.
        without_number: Configurations that gave no number.
        faults: Judgements that failed.
        spreads: By task.
    """

    intervals: int
    covering: int
    half_width: float
    error: float
    verdicts: int
    faster: int
    without_number: int
    faults: tuple[str, ...]
    spreads: tuple[TaskSpread, ...]


def summarise(judged: Sequence[Judged]) -> Summary:
    """Sum judgements up.

    Raises:
        ValueError: Not one of them has a number.
    """
    cases = [case for one in judged for case in one.cases]
    if not cases:
        raise ValueError("no configuration has a number")
    verdicts = [verdict for one in judged for verdict in one.verdicts if verdict is not None]
    return Summary(
        intervals=len(cases),
        covering=sum(case.low <= 1.0 <= case.high for case in cases),
        half_width=statistics.median((case.high - case.low) / 2 for case in cases),
        error=statistics.median(abs(case.speedup - 1) for case in cases),
        verdicts=len(verdicts),
        faster=verdicts.count("faster"),
        without_number=sum(len(one.without_number) for one in judged),
        faults=tuple(f"{one.task}: {one.fault}" for one in judged if one.fault),
        spreads=tuple(_spread(judged, task) for task in sorted({one.task for one in judged if one.cases})),
    )


def _spread(judged: Sequence[Judged], task: str) -> TaskSpread:
    own = [one for one in judged if one.task == task and one.cases]
    logs = [statistics.fmean(math.log(case.speedup) for case in one.cases) for one in own]
    return TaskSpread(
        task=task,
        judgements=len(own),
        median_us=statistics.median(case.baseline_us for one in own for case in one.cases),
        deviation=statistics.stdev(logs) if len(logs) > 1 else None,
    )
