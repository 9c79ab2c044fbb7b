"""Is the device idle when nothing should run on it? A short piece of the judge's own work tells."""

from __future__ import annotations

import time

import torch

PROBES_AT_ONCE = 3
_SLOW_FACTOR = 3.0
_SLOW_US = 100.0
_BUSY_SHARE = 0.1
_LEAST_SLOW = 4
_LOOKS = 30


class IdleProbe:
    """A kernel of known duration, run while both workers should be waiting.

    Work of another process takes its turns on the device, so the probe then takes milliseconds instead of microseconds.

    Args:
        expected_us: Its time on an idle device, from the calibration.

    Attributes:
        seen_us: Its times during this judgement, oldest first.
    """

    def __init__(self, expected_us: float) -> None:
        self._slow_us = max(_SLOW_FACTOR * expected_us, expected_us + _SLOW_US)
        self._work = torch.ones(1 << 20, device="cuda")
        self.seen_us: list[float] = []

    def run(self) -> None:
        """Look a few times in a row."""
        self.seen_us += [probe_us(self._work) for _ in range(PROBES_AT_ONCE)]

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
        for _ in range(_LOOKS // PROBES_AT_ONCE):
            self.run()
            time.sleep(0.002)
        return self.busy(first)


def probe_us(work: torch.Tensor) -> float:
    """Time a fixed small kernel of torch's, launch and wait included, in microseconds."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    work.mul_(1.0)
    torch.cuda.synchronize()
    return (time.perf_counter() - started) * 1e6
