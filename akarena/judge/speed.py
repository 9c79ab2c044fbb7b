"""From blocks to a speedup: both sides in turn, the interval, and what makes a number impossible."""

from __future__ import annotations

import random
import statistics as stdlib_statistics
from dataclasses import dataclass

from akarena import expressions, statistics
from akarena.judge import apart
from akarena.judge.clock import Clock, charge_us, set_up_both
from akarena.judge.correctness import Reference
from akarena.judge.idle import IdleProbe
from akarena.judge.job import Job
from akarena.judge.side import Side
from akarena.judge.workers import WorkerFaultError
from akarena.records.evaluation import (
    Configuration,
    FailReason,
    Method,
    Series,
    Speed,
    SpeedMeasured,
    SpeedUnknown,
    SpeedUnknownReason,
)
from akarena.records.run import Calibration
from akarena.records.task import Value

BLOCKS = 10
"""Blocks a side; it does not depend on how fast the candidate is."""
CHECK_BLOCKS = 4
ROOFLINE_MARGIN = 0.8
"""A candidate below this share of the least possible time is refused; between it and 1 it is flagged."""
_SLOW_REFRESH = 2.0
_SLOW_REFRESH_SECONDS = 0.0005


@dataclass
class Timed:
    """What timing one configuration gave."""

    speed: Speed
    series: Series


def least_seconds(job: Job, values: dict[str, Value], calibration: Calibration) -> float:
    """Return the roofline: the larger of arithmetic over measured peak and necessary bytes over measured bandwidth."""
    work = job.task.work
    arithmetic = expressions.evaluate(work.flops, values) / calibration.peak_flops_per_second[work.unit]
    traffic = expressions.evaluate(work.bytes, values) / calibration.bandwidth_bytes_per_second
    return max(arithmetic, traffic)


def time_case(
    job: Job,
    sides: tuple[Side, Side],
    configuration: Configuration,
    reference: Reference,
    calibration: Calibration,
    probe: IdleProbe,
    blocks: int = BLOCKS,
) -> Timed:
    """Time both sides on one configuration, in turn and in random order, and compare kept outputs with the oracle.

    Raises:
        WorkerFaultError: A worker failed while timed; or the candidate answered early, was wrong or kept the device
            busy.
        NotCapturableError: The baseline cannot be recorded into a graph.
    """
    values = dict(configuration.values)
    oracle_seconds = reference.seconds_on(values)
    baseline, candidate = (
        Clock(job, side, values, calibration.cache_bytes, calibration.replay_overhead_us, oracle_seconds, probe)
        for side in sides
    )
    looks = len(probe.seen_us)
    method = set_up_both(baseline, candidate)
    order = random.Random(f"{job.nonce}/order/{configuration.id}")
    faults: list[str] = []
    checked = 0
    for _ in range(2):
        series = _take(baseline, candidate, order, blocks, configuration.id, method)
        candidate.finish()
        _require_idle(probe, looks, baseline, candidate)
        checked += _check_kept(candidate, reference, values)
        sides_us = {"baseline": series.baseline_us, "candidate": series.candidate_us}
        faults = [f"{name}: {fault}" for name, us in sides_us.items() if (fault := statistics.series_fault(us))]
        if not faults:
            break
    series = _with_singles(series, baseline, candidate, order)
    baseline_us = stdlib_statistics.median(series.baseline_us)
    if faults:
        speed: Speed = SpeedUnknown(state="unknown", reason=SpeedUnknownReason.UNSTABLE, evidence="; ".join(faults))
    elif baseline_us < calibration.resolution_us:
        text = (
            f"the baseline takes {baseline_us:.2f} us a call; "
            f"below {calibration.resolution_us:.2f} us nothing is resolved on this device"
        )
        speed = SpeedUnknown(state="unknown", reason=SpeedUnknownReason.NOT_RESOLVED, evidence=text)
    else:
        speed = _measured(job, series, values, calibration, candidate.plan.calls, method, checked)
    return Timed(speed, series)


def _take(
    baseline: Clock,
    candidate: Clock,
    order: random.Random,
    blocks: int,
    configuration: str,
    method: Method,
) -> Series:
    taken: dict[str, list[float]] = {"b": [], "c": []}
    letters = ""
    for _ in range(blocks):
        for letter in order.sample("bc", 2):
            taken[letter].append((baseline if letter == "b" else candidate).block())
            letters += letter
    charge = round(charge_us(baseline, candidate), 4)
    return Series(
        configuration=configuration,
        method=method,
        baseline_sets=baseline.plan.sets,
        candidate_sets=candidate.plan.sets,
        baseline_replays=baseline.plan.replays,
        candidate_replays=candidate.plan.replays,
        baseline_us=tuple(round(us, 4) for us in taken["b"]),
        candidate_us=tuple(round(us + charge, 4) for us in taken["c"]),
        candidate_charge_us=charge,
        baseline_single_us=(),
        candidate_single_us=(),
        candidate_watched=tuple(round(share, 4) for share in candidate.watched),
        order=letters,
    )


def _with_singles(series: Series, baseline: Clock, candidate: Clock, secret: random.Random) -> Series:
    """Replay calls by themselves on both sides, and charge the candidate for what it gained from doing them together.

    Raises:
        WorkerFaultError: Calls were carried out that were not asked for, or not carried out that were.
    """
    baseline_us, candidate_us = (apart.singles_us(clock, secret) for clock in (baseline, candidate))
    charge = apart.charge_us((baseline_us, series.baseline_us), (candidate_us, series.candidate_us))
    return series.model_copy(
        update={
            "baseline_single_us": tuple(round(us, 2) for us in baseline_us),
            "candidate_single_us": tuple(round(us, 2) for us in candidate_us),
            "candidate_us": tuple(round(us + charge, 4) for us in series.candidate_us),
            "candidate_charge_us": round(series.candidate_charge_us + charge, 4),
        }
    )


def _require_idle(probe: IdleProbe, looks: int, baseline: Clock, candidate: Clock) -> None:
    """Check that nothing ran on the device while the judge prepared its replays.

    Raises:
        WorkerFaultError: Something did.
    """
    busy = probe.busy(looks)
    if busy is not None:
        raise WorkerFaultError(FailReason.DEVICE_KEPT_BUSY, busy)
    # Who computes ahead, while inputs arrive, takes the device from the judge's own work.
    sides_seconds = [stdlib_statistics.median(clock.refresh_seconds) for clock in (baseline, candidate)]
    more = max(1.0, candidate.plan.sets / baseline.plan.sets)
    if sides_seconds[1] > _SLOW_REFRESH * more * sides_seconds[0] + _SLOW_REFRESH_SECONDS:
        text = "giving fresh inputs took {1:.1f} ms a replay, beside {0:.1f} ms for the baseline"
        raise WorkerFaultError(FailReason.DEVICE_KEPT_BUSY, text.format(*(seconds * 1e3 for seconds in sides_seconds)))


def _check_kept(candidate: Clock, reference: Reference, values: dict[str, Value]) -> int:
    """Compare the kept calls in full, then forget them; returns how many there were."""
    for found in reference.compare_all(candidate.kept, values):
        for name, comparison in found.items():
            if comparison.reason is not None:
                raise WorkerFaultError(FailReason.WRONG_WHEN_TIMED, f"{name} {comparison.evidence}")
    for answer in candidate.kept:
        answer.scrub()
    count = len(candidate.kept)
    candidate.kept = []
    return count


def _measured(
    job: Job,
    series: Series,
    values: dict[str, Value],
    calibration: Calibration,
    calls: int,
    method: Method,
    outputs_checked: int,
) -> SpeedMeasured:
    floor = calibration.instrument_floor
    # What is shorter than can be resolved counts as just resolved: the speedup is then a lower bound, and does not jump
    # when the time lies about the limit.
    resolved_us = [max(us, calibration.resolution_us) for us in series.candidate_us]
    interval = statistics.ratio_of_medians(series.baseline_us, resolved_us, floor=floor)
    candidate_us = stdlib_statistics.median(series.candidate_us)
    fraction = least_seconds(job, values, calibration) * 1e6 / candidate_us
    if fraction * ROOFLINE_MARGIN > 1.0:
        raise WorkerFaultError(
            FailReason.FASTER_THAN_POSSIBLE,
            f"{candidate_us:.2f} us a call is {fraction:.2f} times as fast as this device can be",
        )
    flags: tuple[str, ...] = ("over_roofline",) if fraction > 1.0 else ()
    if candidate_us < calibration.resolution_us:
        flags += ("below_resolution",)
    return SpeedMeasured(
        state="measured",
        verdict=statistics.speed_verdict(interval, floor),
        speedup=interval.point,
        low=interval.low,
        high=interval.high,
        baseline_median_us=stdlib_statistics.median(series.baseline_us),
        candidate_median_us=stdlib_statistics.median(resolved_us),
        blocks=len(series.candidate_us),
        calls_per_block=calls,
        method=method,
        roofline_fraction=float(f"{fraction:.4g}"),
        outputs_checked=outputs_checked,
        flags=flags,
    )
