"""Is the device idle when nothing should run on it? A short piece of the judge's own work tells."""

from __future__ import annotations

import statistics
import time

import torch

_PROBES_AT_ONCE = 3
_SLOW_FACTOR = 3.0
_SLOW_US = 100.0
_BUSY_SHARE = 0.1
_LEAST_SLOW = 4
_LOOKS = 10
_CALIBRATION_LOOKS = 100
_PAUSE_SECONDS = 0.004


class IdleProbe:
    """A kernel of known duration, run while both workers should be waiting.

    Work of another process takes its turns on the device, so the probe then takes milliseconds instead of microseconds.

    Args:
        expected_us: What a look gives on an idle device, from the calibration.

    Attributes:
        seen_us: The looks during this judgement, oldest first.
    """

    def __init__(self, expected_us: float) -> None:
        self._slow_us = max(_SLOW_FACTOR * expected_us, expected_us + _SLOW_US)
        self._work = new_work()
        self.seen_us: list[float] = []

    def run(self) -> None:
        """Look once."""
        self.seen_us.append(look_us(self._work))

    def busy(self, since: int) -> str | None:
        """Say how often the device was busy after the first ``since`` looks, or None where that may be chance."""
        looks, slow = len(self.seen_us) - since, self.slow(since)
        if slow < _LEAST_SLOW or slow < _BUSY_SHARE * looks:
            return None
        return f"the device was busy in {slow} of {looks} looks while no worker had been asked for anything"

    def slow(self, since: int = 0) -> int:
        """Count the looks that found the device busy."""
        return sum(us > self._slow_us for us in self.seen_us[since:])

    def busy_now(self) -> str | None:
        """Look anew."""
        first = len(self.seen_us)
        for _ in range(_LOOKS):
            self.run()
            time.sleep(0.002)
        return self.busy(first)


def new_work() -> torch.Tensor:
    """Return what a look works on."""
    return torch.ones(1 << 20, device="cuda")


def look_us(work: torch.Tensor) -> float:
    """Return the least time of a few runs of a small kernel of torch's, launch and wait included, in microseconds.

    A busy device delays all of them; a host that is busy elsewhere, or wakes up, seldom more than one.
    """
    return min(_run_us(work) for _ in range(_PROBES_AT_ONCE))


def expected_us(work: torch.Tensor) -> float:
    """Return what a look gives while the device is idle: after a pause, as in a judgement."""
    looks = []
    for _ in range(_CALIBRATION_LOOKS):
        time.sleep(_PAUSE_SECONDS)
        looks.append(look_us(work))
    return statistics.median(looks)


def _run_us(work: torch.Tensor) -> float:
    torch.cuda.synchronize()
    started = time.perf_counter()
    work.mul_(1.0)
    torch.cuda.synchronize()
    return (time.perf_counter() - started) * 1e6
