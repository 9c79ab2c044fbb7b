"""Measure the instrument: what it cannot tell apart, what it cannot resolve, and what the device can do at most."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

from akarena.judge import idle
from akarena.judge.arena import DeviceMemory, timed_bytes
from akarena.judge.clock import Clock, Plan, charge_us
from akarena.judge.job import Job, Process
from akarena.judge.side import Side
from akarena.records.evaluation import Configuration, Method
from akarena.records.run import Calibration
from akarena.records.task import ComputeUnit
from akarena.sandbox.base import End
from akarena.sandbox.control import Control
from akarena.statistics import instrument_floor, series_fault
from akarena.worker.runtime import Runtime

PAIRS = 4
"""Pairs of fresh worker processes that the floor is taken from."""
_BLOCKS = 10
_TRIES = 3
_REPLAYS = 100
_RESOLUTION_FACTOR = 1.25
"""A kernel must take this many times as long as an empty one, or its time is mostly that of the launch."""
_COPY_BYTES = 2 << 30
_MATRIX = 8192


class CalibrationError(Exception):
    """The calibration kernel could not be built or run."""


def run(job: Job, control: Control) -> Calibration:
    """Calibrate the device; needs about twenty seconds.

    Raises:
        CalibrationError: Our own kernel does not build here.
    """
    assert job.runtime_library is not None
    assert job.runtime_prefix is not None
    for process in (Process.BUILD_BASELINE, Process.BUILD_CANDIDATE):
        ended = control.wait(process.value, job.compile_seconds)
        if ended is None or ended.end is not End.EXITED or ended.exit_code != 0:
            raise CalibrationError(f"the calibration kernel does not build: {ended}")
    runtime = Runtime(job.runtime_library, job.runtime_prefix)
    runtime.set_device()
    cache_bytes = int(torch.cuda.get_device_properties(0).L2_cache_size)
    bandwidth, peaks = _bandwidth(), _peaks()
    overhead_us = 0.0
    ratios: list[float] = []
    round_trips: list[float] = []
    empty_us: list[float] = []
    for _ in range(PAIRS):
        memories = [DeviceMemory(runtime, timed_bytes()) for _ in range(2)]
        sides = [
            Side(job, control, process, side, memory, torch.device("cuda"))
            for process, side, memory in zip(
                (Process.BASELINE, Process.CANDIDATE), (job.baseline, job.candidate), memories, strict=True
            )
        ]
        for side in sides:
            side.start()
        # The first pair gives the overhead, which all times are then free of.
        overhead_us = overhead_us or _overhead_us(job, sides[0], cache_bytes)
        empty, *real = job.configurations
        empty_us += _medians_us(job, sides, empty, cache_bytes, overhead_us)
        for configuration in real:
            left, right = _medians_us(job, sides, configuration, cache_bytes, overhead_us)
            ratios.append(left / right)
        round_trips += [sides[0].worker.echo(job.call_seconds) * 1e6 for _ in range(100)]
        for side in sides:
            side.worker.stop()
        for memory in memories:
            memory.close()
    return Calibration(
        instrument_floor=_rounded(instrument_floor(ratios)),
        resolution_us=_rounded(_RESOLUTION_FACTOR * statistics.median(empty_us)),
        round_trip_us=_rounded(statistics.median(round_trips)),
        replay_overhead_us=_rounded(overhead_us),
        idle_probe_us=_rounded(idle.expected_us(idle.new_work())),
        bandwidth_bytes_per_second=_rounded(bandwidth),
        cache_bytes=cache_bytes,
        peak_flops_per_second={unit: _rounded(rate) for unit, rate in peaks.items()},
        process_pairs=PAIRS,
        same_kernel_ratios=tuple(_rounded(ratio) for ratio in ratios),
    )


def _medians_us(
    job: Job, sides: list[Side], configuration: Configuration, cache_bytes: int, overhead_us: float
) -> list[float]:
    """Time the same kernel on both sides in turn, as a judgement does; returns the median of each side."""
    clocks = [Clock(job, side, dict(configuration.values), cache_bytes, overhead_us) for side in sides]
    for clock in clocks:
        clock.set_up(Method.GRAPH)
    for _ in range(_TRIES):
        times: list[list[float]] = [[], []]
        for block in range(_BLOCKS):
            for index in (0, 1) if block % 2 else (1, 0):
                times[index].append(clocks[index].block())
                clocks[index].kept.clear()
        # A judgement takes a faulty series again, too.
        if not any(series_fault(series) for series in times):
            break
    left, right = (statistics.median(series) for series in times)
    return [left, right + charge_us(*clocks)]


def _overhead_us(job: Job, side: Side, cache_bytes: int) -> float:
    """Return the time of a replay of one nearly empty call, as a judgement takes it."""
    clock = Clock(job, side, dict(job.configurations[0].values), cache_bytes, 0.0)
    clock.set_up(Method.GRAPH)
    clock.use(Plan(1, 1))
    return statistics.median(clock.fresh_replay().replay for _ in range(_REPLAYS)) * 1e6


def _best_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the least time of one piece of our own work, by device events."""
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)) / 1e3)
    return min(times)


def _bandwidth() -> float:
    """Return bytes per second, read plus written, of a large copy."""
    source = torch.empty(_COPY_BYTES, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    return 2 * _COPY_BYTES / _best_seconds(lambda: target.copy_(source), 10)


def _peaks() -> dict[ComputeUnit, float]:
    """Return flops per second of large matrix products through torch.

    fp32 results may also be put together from three products in a narrower format, so a third of that rate counts for
    ``matrix_fp32`` where it is higher. ``matrix_8bit`` is taken as twice the 16-bit rate.
    """
    single = _product_rate(torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = True
    reduced = _product_rate(torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = False
    half = max(_product_rate(torch.float16), _product_rate(torch.bfloat16))
    return {
        ComputeUnit.VECTOR_FP32: single,
        ComputeUnit.MATRIX_FP32: max(single, reduced / 3, half / 6),
        ComputeUnit.MATRIX_16BIT: half,
        ComputeUnit.MATRIX_8BIT: 2 * half,
    }


def _product_rate(dtype: torch.dtype) -> float:
    size = _MATRIX if dtype is not torch.float32 else _MATRIX // 2
    left = torch.randn(size, size, device="cuda").to(dtype)
    right = torch.randn(size, size, device="cuda").to(dtype)
    out = torch.empty_like(left)
    return float(2.0 * size**3) / _best_seconds(lambda: torch.mm(left, right, out=out), 8)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
