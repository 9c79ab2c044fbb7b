"""Measure the instrument: what it cannot tell apart, what it cannot resolve, and what the device can do at most."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable

import torch

from akarena.judge.arena import DeviceMemory, timed_bytes
from akarena.judge.clock import Clock, Plan
from akarena.judge.job import Job, Process
from akarena.judge.side import Side
from akarena.judge.speed import probe_us
from akarena.records.evaluation import Method
from akarena.records.run import Calibration
from akarena.records.task import ComputeUnit
from akarena.sandbox.base import End
from akarena.sandbox.control import Control
from akarena.worker.runtime import Runtime

PROCESSES = 5
"""Fresh worker processes that the floor is taken from."""
_BLOCKS = 10
_REPLAYS = 60
_RESOLUTION_FACTOR = 1.25
"""A kernel must take this many times as long as an empty one, or its time is mostly that of the launch."""
_COPY_BYTES = 2 << 30
_MATRIX = 8192


class CalibrationError(Exception):
    """The calibration kernel could not be built or run."""


def run(job: Job, control: Control) -> Calibration:
    """Calibrate the device; needs about ten seconds.

    Raises:
        CalibrationError: Our own kernel does not build here.
    """
    assert job.runtime_library is not None
    assert job.runtime_prefix is not None
    ended = control.wait(Process.BUILD_BASELINE.value, job.compile_seconds)
    if ended is None or ended.end is not End.EXITED or ended.exit_code != 0:
        raise CalibrationError(f"the calibration kernel does not build: {ended}")
    runtime = Runtime(job.runtime_library, job.runtime_prefix)
    runtime.set_device()
    properties = torch.cuda.get_device_properties(0)
    cache_bytes = int(properties.L2_cache_size)
    bandwidth, peaks = _bandwidth(), _peaks()
    medians: dict[str, list[float]] = {}
    round_trips: list[float] = []
    overhead_us = 0.0
    for _ in range(PROCESSES):
        memory = DeviceMemory(runtime, timed_bytes())
        side = Side(job, control, Process.BASELINE, job.baseline, memory, torch.device("cuda"))
        side.start()
        # The first process gives the overhead, which the times of all processes are then free of.
        overhead_us = overhead_us or _overhead_us(job, side, cache_bytes)
        for configuration in job.configurations:
            clock = Clock(job, side, dict(configuration.values), cache_bytes, overhead_us)
            clock.set_up(Method.GRAPH)
            medians.setdefault(configuration.id, []).append(_median_us(clock))
        round_trips += [side.worker.echo(job.call_seconds) * 1e6 for _ in range(100)]
        side.worker.stop()
        memory.close()
    print(json.dumps(medians), file=sys.stderr)
    empty, *real = job.configurations
    floor = max((max(medians[case.id]) - min(medians[case.id])) / statistics.median(medians[case.id]) for case in real)
    work = torch.ones(1 << 20, device="cuda")
    return Calibration(
        instrument_floor=_rounded(floor),
        resolution_us=_rounded(_RESOLUTION_FACTOR * statistics.median(medians[empty.id])),
        round_trip_us=_rounded(statistics.median(round_trips)),
        replay_overhead_us=_rounded(overhead_us),
        idle_probe_us=_rounded(statistics.median(probe_us(work) for _ in range(200))),
        bandwidth_bytes_per_second=_rounded(bandwidth),
        cache_bytes=cache_bytes,
        peak_flops_per_second={unit: _rounded(rate) for unit, rate in peaks.items()},
        processes=PROCESSES,
    )


def _median_us(clock: Clock) -> float:
    times = [clock.block() for _ in range(_BLOCKS)]
    clock.kept.clear()
    return statistics.median(times)


def _overhead_us(job: Job, side: Side, cache_bytes: int) -> float:
    """Return the time of a replay of one nearly empty call, after the judge has used the device."""
    clock = Clock(job, side, dict(job.configurations[0].values), cache_bytes, 0.0)
    clock.set_up(Method.GRAPH)
    clock.use(Plan(1, 1))
    small = statistics.median(clock.fresh_replay() for _ in range(_REPLAYS)) * 1e6
    import sys as _s

    for case in (0, 1, 3):
        c = Clock(job, side, dict(job.configurations[case].values), cache_bytes, 0.0)
        c.set_up(Method.GRAPH)
        full = c.plan.sets
        for k in (1, full // 8, full // 4, full // 2, full):
            if k < 1:
                continue
            c.use(Plan(k, 1))
            t = sorted(c.fresh_replay() * 1e6 for _ in range(30))
            print("EXP", case, k, round(t[3]), round(t[15]), round(t[26]), file=_s.stderr)
    return small


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
