"""Does the candidate slow the baseline down? The baseline timed by itself tells, before and after the candidate."""

from __future__ import annotations

import random
import statistics as stdlib_statistics

from akarena import statistics
from akarena.judge.clock import Clock
from akarena.judge.idle import IdleProbe
from akarena.judge.job import Job
from akarena.judge.side import Side
from akarena.records.evaluation import AloneSeries, BaselineAlone, Configuration, Method, Series
from akarena.records.run import Calibration
from akarena.statistics import LEAST_EFFECT

_CONFIGURATIONS = 3
_BLOCKS = 5
_TRIES = 3


class Alone:
    """The baseline by itself: on a few configurations, chosen in secret, before the candidate, and on all after it.

    Args:
        job: The judgement.
        side: The baseline.
        calibration: The device's.
        probe: Tells whether the device is idle.
    """

    def __init__(self, job: Job, side: Side, calibration: Calibration, probe: IdleProbe) -> None:
        self._job = job
        self._side = side
        self._calibration = calibration
        self._probe = probe
        count = min(_CONFIGURATIONS, len(job.configurations))
        self._chosen = random.Random(f"{job.nonce}/alone").sample(job.configurations, count)
        self._before: dict[str, tuple[float, ...]] = {}
        self._after: dict[str, tuple[float, ...]] = {}
        self._between: dict[str, tuple[float, ...]] = {}

    def before(self) -> None:
        """Time it while nothing of the candidate is loaded.

        Raises:
            WorkerFaultError: The baseline failed.
            NotCapturableError: It cannot be recorded into a graph.
        """
        for case in self._chosen:
            self._before[case.id] = self._blocks_us(case)

    def beside(self, series: Series) -> None:
        """Note how long it took in turn with the candidate."""
        self._between[series.configuration] = series.baseline_us

    def after(self) -> None:
        """Time it when the candidate is dead, wherever the two were timed; again where it looks faster than beside it.

        Raises:
            WorkerFaultError: The baseline failed.
            NotCapturableError: It cannot be recorded into a graph.
        """
        for case in self._compared:
            taken: list[tuple[float, ...]] = []
            while len(taken) < _TRIES:
                taken.append(self._blocks_us(case))
                self._after[case.id] = max(taken, key=stdlib_statistics.median)
                if self._disturbed(case) is None:
                    break

    def disturbed(self) -> str | None:
        """Say where the baseline took longer beside the candidate than by itself, or None."""
        found = [text for case in self._compared if (text := self._disturbed(case)) is not None]
        return f"the baseline took longer on {'; '.join(found)}" if found else None

    def medians(self) -> tuple[BaselineAlone, ...]:
        """Return the figures for the record; none before the candidate was timed and is dead."""
        return tuple(
            BaselineAlone(
                configuration=case.id,
                before_us=_median(self._before.get(case.id)),
                between_us=_median(self._between.get(case.id)),
                after_us=stdlib_statistics.median(self._after[case.id]),
            )
            for case in self._compared
            if case.id in self._after
        )

    def series(self) -> tuple[AloneSeries, ...]:
        """Return the raw times for the record."""
        return tuple(
            AloneSeries(
                configuration=case.id,
                before_us=self._before.get(case.id, ()),
                after_us=self._after.get(case.id, ()),
            )
            for case in self._compared
        )

    @property
    def _compared(self) -> list[Configuration]:
        return [case for case in self._job.configurations if case in self._chosen or case.id in self._between]

    def _disturbed(self, case: Configuration) -> str | None:
        if case.id not in self._between:
            return None
        between_us = self._between[case.id]
        alone = [taken[case.id] for taken in (self._before, self._after) if case.id in taken]
        alone_us = max(alone, key=stdlib_statistics.median)
        # It is one and the same process, so the spread between processes does not count.
        interval = statistics.ratio_of_medians(between_us, alone_us, floor=0.0)
        if interval.low <= 1 + LEAST_EFFECT:
            return None
        medians = (stdlib_statistics.median(between_us), stdlib_statistics.median(alone_us))
        return f"{case.id}: {medians[0]:.3f} us beside the candidate, {medians[1]:.3f} us alone"

    def _blocks_us(self, case: Configuration) -> tuple[float, ...]:
        overhead_us = self._calibration.replay_overhead_us
        clock = Clock(
            self._job, self._side, dict(case.values), self._calibration.cache_bytes, overhead_us, probe=self._probe
        )
        clock.set_up(Method.GRAPH)
        times = []
        for _ in range(_BLOCKS):
            times.append(round(clock.block(), 4))
            clock.kept.clear()
        return tuple(times)


def _median(series: tuple[float, ...] | None) -> float | None:
    return None if series is None else stdlib_statistics.median(series)
