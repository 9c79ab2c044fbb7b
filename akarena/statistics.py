"""Intervals, verdicts and comparisons. Imports nothing but numpy, because the judge uses it too.

Every function is deterministic: what is random takes a seed. Speedups are handled on a logarithmic scale.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from akarena.records.evaluation import SpeedVerdict

LEAST_EFFECT = 0.02
"""Smallest relative difference that is ever called faster or slower."""

_FLOOR_DEVIATIONS = 3.0
_RESAMPLES = 4000
_EXACT_SIGNS = 12
_BIMODAL_SEPARATION = 0.08
_BIMODAL_SHARE = 0.25
_DRIFT_CHANGE = 0.05
_DRIFT_SIGNIFICANCE = 3.5
_DRIFT_CONTRAST = 3.0


@dataclass(frozen=True)
class Interval:
    """A number with the ends of its confidence interval."""

    point: float
    low: float
    high: float


@dataclass(frozen=True)
class PairedComparison:
    """The first agent against the second, task by task."""

    tasks: int
    """Tasks that both have a number for."""
    ratio: Interval | None
    """Geometric mean over tasks of speedup of the first over speedup of the second; null with fewer than two tasks."""
    p_value: float | None
    """Two-sided sign-flip test of a ratio of 1."""


def ratio_of_medians(
    baseline_us: Sequence[float],
    candidate_us: Sequence[float],
    *,
    floor: float,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Speedup: median of the baseline's blocks over the median of the candidate's, by a block bootstrap.

    The resampled unit is the block, since the calls within a block are not independent. The percentile interval of
    a median is honest from ten blocks a side on (95 to 97 % coverage in simulation). Then both ends move out by the
    instrument floor, which no number of blocks can reduce.

    Args:
        baseline_us: Time per call of each baseline block, at least two, all positive.
        candidate_us: The same of the candidate.
        floor: Relative spread between fresh worker processes on this device, at least 0.
        confidence: Level of the interval.
        seed: Seed of the resampling.

    Raises:
        ValueError: A time is not a positive finite number, there are fewer than two, or ``floor`` is negative.
    """
    baseline, candidate = _positive(baseline_us, "baseline_us", 2), _positive(candidate_us, "candidate_us", 2)
    generator = np.random.default_rng(seed)
    resampled = [
        np.log(np.median(side[generator.integers(0, len(side), (_RESAMPLES, len(side)))], axis=1))
        for side in (baseline, candidate)
    ]
    point = float(np.log(np.median(baseline)) - np.log(np.median(candidate)))
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled[0] - resampled[1], [tail, 1 - tail])
    return _widened(Interval(math.exp(point), math.exp(min(low, point)), math.exp(max(high, point))), floor)


def instrument_floor(ratios: Sequence[float]) -> float:
    """Return the relative difference that one kernel seldom has from itself.

    Three times the root mean square of the logarithms of ``ratios``, which should all be 1: of measurements with
    normal errors 0.3 % lie farther away. The largest one would do as well, but varies more between calibrations.

    Args:
        ratios: Medians of the same kernel in two fresh processes, divided.

    Raises:
        ValueError: There is none, or one is not a positive finite number.
    """
    logs = np.log(_positive(ratios, "ratios", 1))
    return float(np.expm1(_FLOOR_DEVIATIONS * np.sqrt(np.mean(logs**2))))


def speed_verdict(interval: Interval, floor: float) -> SpeedVerdict:
    """Faster or slower only where the whole interval lies beyond 1 +- the larger of 2 % and the instrument floor."""
    # Not at the top: the records need pydantic, and this module has to import without it.
    from akarena.records.evaluation import SpeedVerdict

    margin = max(LEAST_EFFECT, floor)
    if interval.low > 1 + margin:
        return SpeedVerdict.FASTER
    if interval.high < 1 - margin:
        return SpeedVerdict.SLOWER
    return SpeedVerdict.NO_DIFFERENCE_SHOWN


def series_fault(series_us: Sequence[float]) -> str | None:
    """Say what is wrong with a series of block times, in the order in which they were taken.

    ``bimodal``: the best split into two groups leaves at least a quarter of the blocks (and two) in each, their means
    differ by 8 % or more, and by 6 + 30 / (n - 2) times the spread within the groups. ``drifting``: a rank trend that
    chance makes once in 2,000 series, whose size is 5 % or more and three times the scatter around it. Both are set
    so that honest noise of a few percent practically never trips them; a lone outlier does not either, as the median
    bears it. Fewer than four values say nothing.

    Returns:
        ``bimodal``, ``drifting`` or None.

    Raises:
        ValueError: A time is not a positive finite number.
    """
    logs = np.log(_positive(series_us, "series_us", 0))
    if len(logs) < 4:
        return None
    if _is_bimodal(logs):
        return "bimodal"
    return "drifting" if _is_drifting(logs) else None


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean of positive numbers.

    Raises:
        ValueError: There is none, or one is not positive and finite.
    """
    return float(np.exp(np.mean(np.log(_positive(values, "values", 1)))))


def geometric_mean_of_intervals(intervals: Sequence[Interval], *, floor: float) -> Interval:
    """Geometric mean of independent speedups of one judgement, with its interval.

    The random parts are independent and shrink with the number of cases (half widths add in quadrature on the log
    scale). The instrument floor is one shared systematic part and does not shrink.

    Args:
        intervals: As ``ratio_of_medians`` gives them, that is, each already widened by ``floor``.
        floor: The floor that they were widened by. It is taken out of each and put back once.
    """
    points = np.log(_positive([i.point for i in intervals], "points", 1))
    lows = np.log(_positive([i.low for i in intervals], "low ends", 1))
    highs = np.log(_positive([i.high for i in intervals], "high ends", 1))
    shared = math.log1p(floor)
    # Rounded records can be narrower than the floor by an ulp; a half width is never negative.
    below = np.maximum(points - lows - shared, 0.0)
    above = np.maximum(highs - points - shared, 0.0)
    count = len(points)
    mean = float(points.mean())
    low, high = mean - float(np.linalg.norm(below)) / count, mean + float(np.linalg.norm(above)) / count
    return _widened(Interval(math.exp(mean), math.exp(low), math.exp(high)), floor)


def wilson(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """Wilson's interval of a rate.

    Args:
        successes: Number of successes, 0 to ``n``. Fractions are legal: with several attempts a task, pass the mean
            successes a task and the number of tasks, because attempts at one task are not independent.
        n: Number of independent units.
        confidence: Level of the interval.

    Raises:
        ValueError: ``n`` is not positive, or ``successes`` lies outside 0 to ``n``.
    """
    if not 0 <= successes <= n or n <= 0:
        raise ValueError(f"successes must lie in 0..n with n > 0, got {successes} of {n}")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate, scale = successes / n, 1 + z * z / n
    center = (rate + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # At 0 and n the ends are exact in arithmetic but not in floating point.
    low = 0.0 if successes == 0 else max(0.0, center - half)
    high = 1.0 if successes == n else min(1.0, center + half)
    return Interval(rate, low, high)


def clustered_mean(
    values: Mapping[str, Sequence[float]], *, confidence: float = 0.95, seed: int = 0
) -> Interval | None:
    """Mean over all attempts, with an interval from a cluster bootstrap: the resampled unit is the task.

    Attempts at a task stay together, since they share the task's difficulty. The bootstrap gives the standard error;
    the interval is Student's with tasks - 1 degrees of freedom, so that it is honest with a handful of tasks.
    For log speedups and differences. For a rate near 0 or 1 use ``wilson`` with the number of tasks.

    Args:
        values: The values of each task's attempts; a task without any is left out.
        confidence: Level of the interval.
        seed: Seed of the resampling.

    Returns:
        None where fewer than two tasks have a value: the spread between tasks is then unknown.
    """
    clusters = [np.asarray(values[task], dtype=np.float64) for task in sorted(values) if len(values[task])]
    count = len(clusters)
    if count < 2:
        return None
    sums, sizes = np.array([c.sum() for c in clusters]), np.array([float(len(c)) for c in clusters])
    drawn = np.random.default_rng(seed).integers(0, count, (_RESAMPLES, count))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    error = float(means.std()) * math.sqrt(count / (count - 1))
    half = student_quantile(0.5 + confidence / 2, count - 1) * error
    point = float(sums.sum() / sizes.sum())
    return Interval(point, point - half, point + half)


def clustered_geometric_mean(
    speedups: Mapping[str, Sequence[float]], *, confidence: float = 0.95, seed: int = 0
) -> Interval | None:
    """Geometric mean of speedups over all attempts, by ``clustered_mean`` on the log scale."""
    logs = {task: np.log(_positive(v, task, 0)).tolist() for task, v in speedups.items()}
    return _exponential(clustered_mean(logs, confidence=confidence, seed=seed))


def paired_comparison(
    first: Mapping[str, Sequence[float]], second: Mapping[str, Sequence[float]], *, seed: int = 0
) -> PairedComparison:
    """Compare two agents by log speedup on the tasks that both have a number for.

    Args:
        first: Speedups of the first agent's attempts, by task.
        second: The same of the second agent.
        seed: Seed of the resampling.
    """
    shared = sorted(task for task in first if len(first[task]) and len(second.get(task, ())))
    differences = np.array(
        [np.mean(np.log(_positive(first[t], t, 1))) - np.mean(np.log(_positive(second[t], t, 1))) for t in shared]
    )
    if len(shared) < 2:
        return PairedComparison(len(shared), None, None)
    by_task = {task: [float(d)] for task, d in zip(shared, differences, strict=True)}
    ratio = _exponential(clustered_mean(by_task, seed=seed))
    return PairedComparison(len(shared), ratio, _sign_flip_p(differences, seed))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction of several p values, in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - rank)))
        corrected[index] = largest
    return corrected


def fast_p(speedups: Sequence[float | None], p: float) -> float:
    """Share of all trials that are correct and more than ``p`` times faster than the baseline.

    Args:
        speedups: One entry for each planned trial; None for one without a speedup, whatever the cause.
        p: The threshold.

    Raises:
        ValueError: No trial was planned.
    """
    if not speedups:
        raise ValueError("fast_p needs at least one planned trial")
    return sum(s is not None and s > p for s in speedups) / len(speedups)


def student_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t: exact for 1 and 2 degrees of freedom, else an expansion good to 1 % up to 0.995."""
    if degrees < 1:
        raise ValueError(f"degrees must be at least 1, got {degrees}")
    if degrees == 1:
        return math.tan(math.pi * (probability - 0.5))
    if degrees == 2:
        return (2 * probability - 1) * math.sqrt(2 / (4 * probability * (1 - probability)))
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / degrees ** (power + 1) for power, term in enumerate(terms))


def _positive(values: Sequence[float], name: str, least: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) < least:
        raise ValueError(f"{name} needs at least {least} numbers, got {array.size}")
    if not bool(np.all(np.isfinite(array) & (array > 0))):
        raise ValueError(f"{name} holds a number that is not positive and finite")
    return array


def _exponential(interval: Interval | None) -> Interval | None:
    if interval is None:
        return None
    # With two tasks the quantile is so large that an end can exceed the range of exp; it says nothing anyway.
    return Interval(*(math.exp(min(max(x, -600.0), 600.0)) for x in (interval.point, interval.low, interval.high)))


def _widened(interval: Interval, floor: float) -> Interval:
    if not (math.isfinite(floor) and floor >= 0):
        raise ValueError(f"floor must be a finite number of at least 0, got {floor}")
    return Interval(interval.point, interval.low / (1 + floor), interval.high * (1 + floor))


def _is_bimodal(logs: NDArray[np.float64]) -> bool:
    ordered = np.sort(logs)
    least = max(2, math.ceil(_BIMODAL_SHARE * len(ordered)))
    best_within, separation = math.inf, 0.0
    for split in range(least, len(ordered) - least + 1):
        low, high = ordered[:split], ordered[split:]
        within = float(((low - low.mean()) ** 2).sum() + ((high - high.mean()) ** 2).sum())
        if within < best_within:
            best_within, separation = within, float(high.mean() - low.mean())
    spread = math.sqrt(best_within / (len(ordered) - 2))
    # Few values fall into two tight groups by chance more easily: they have to stand further apart.
    contrast = 6 + 30 / (len(ordered) - 2)
    return separation >= _BIMODAL_SEPARATION and separation >= contrast * spread


def _is_drifting(logs: NDArray[np.float64]) -> bool:
    count = len(logs)
    first, second = np.triu_indices(count, k=1)
    rises = logs[second] - logs[first]
    # Kendall's S and Theil and Sen's slope: neither is moved by an outlier.
    score = abs(float(np.sign(rises).sum())) / math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    slope = float(np.median(rises / (second - first)))
    change = abs(slope) * (count - 1)
    residual = logs - slope * np.arange(count)
    scatter = 1.4826 * float(np.median(np.abs(residual - np.median(residual))))
    return score >= _DRIFT_SIGNIFICANCE and change >= _DRIFT_CHANGE and change >= _DRIFT_CONTRAST * scatter


def _sign_flip_p(differences: NDArray[np.float64], seed: int) -> float:
    count = len(differences)
    observed = abs(float(differences.sum())) * (1 - 1e-12)
    if count <= _EXACT_SIGNS:
        patterns = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        return float(np.mean(np.abs((1 - 2 * patterns) @ differences) >= observed))
    signs = 1 - 2 * np.random.default_rng(seed).integers(0, 2, (_RESAMPLES, count))
    return float((np.sum(np.abs(signs @ differences) >= observed) + 1) / (_RESAMPLES + 1))
