"""Who is blamed for what fails beside a candidate."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from akarena.judge import blame as blame_module
from akarena.judge.blame import Blame, StoppedError
from akarena.judge.workers import NotCapturableError, WorkerFaultError
from akarena.records.evaluation import FailReason, VoidReason

OUT_OF_MEMORY = torch.OutOfMemoryError("tried to allocate 2 GiB")


@dataclass
class FakeWorker:
    """Remembers whether it runs; ``captures`` says whether its kernel can be recorded."""

    running: bool = True
    captures: bool = True

    def stop(self) -> None:
        self.running = False

    def capture(self, sets: int, timeout_seconds: float) -> None:
        if not self.captures:
            raise NotCapturableError


@dataclass
class FakeSide:
    """A side whose calls fail with ``fault``, if that is given."""

    fault: WorkerFaultError | None = None
    worker: FakeWorker = field(default_factory=FakeWorker)
    job: Any = field(default_factory=lambda: SimpleNamespace(call_seconds=1.0))

    def start(self) -> None:
        self.worker.running = True

    def answer(self, values: object, round_: object, *, first: bool) -> None:
        if self.fault is not None:
            raise self.fault


class FakeProbe:
    """Finds the device busy for the first ``looks``."""

    def __init__(self, looks: float) -> None:
        self._left = looks

    def busy_now(self) -> str | None:
        self._left -= 1
        return "9 of 10 looks" if self._left >= 0 else None


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blame_module, "_SETTLE_SECONDS", 0.2)
    monkeypatch.setattr(blame_module, "_PAUSE_SECONDS", 0.01)


def blame(baseline: Any, candidate: Any) -> Blame:
    return Blame(baseline, candidate)


def device(busy_looks: float) -> Any:
    return FakeProbe(busy_looks)


@pytest.mark.parametrize("looks", [0, 3])
def test_device_that_becomes_idle_without_the_candidate_was_kept_busy_by_it(looks: int) -> None:
    candidate = FakeSide()
    blame(FakeSide(), candidate).for_busy(device(looks))
    assert not candidate.worker.running


def test_device_that_stays_busy_without_the_candidate_is_somebody_elses() -> None:
    with pytest.raises(StoppedError) as stopped:
        blame(FakeSide(), FakeSide()).for_busy(device(math.inf))
    assert stopped.value.stop.reason is VoidReason.DEVICE_NOT_IDLE


@pytest.mark.parametrize(("held_share", "blamed"), [(0.9, True), (0.13, True), (0.12, False), (0.0, False)])
def test_lack_of_memory_is_the_doing_of_who_held_it(
    held_share: float, blamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidate = FakeSide()
    total = 1 << 30

    def info() -> tuple[int, int]:
        return int(total * (0.01 if candidate.worker.running else 0.01 + held_share)), total

    monkeypatch.setattr(torch.cuda, "mem_get_info", info)
    if blamed:
        assert blame(FakeSide(), candidate).for_memory(OUT_OF_MEMORY).reason is FailReason.DEVICE_MEMORY_TAKEN
    else:
        with pytest.raises(torch.OutOfMemoryError):
            blame(FakeSide(), candidate).for_memory(OUT_OF_MEMORY)
    assert not candidate.worker.running


CRASH = WorkerFaultError(FailReason.CRASH, "signal 11")


@pytest.mark.parametrize("error", [CRASH, NotCapturableError()])
def test_baseline_that_works_again_was_broken_by_the_candidate(error: WorkerFaultError | NotCapturableError) -> None:
    candidate = FakeSide()
    fault = blame(FakeSide(), candidate).for_baseline(error, {})
    assert fault.reason is FailReason.BASELINE_BROKEN
    assert not candidate.worker.running


@pytest.mark.parametrize(
    "baseline", [FakeSide(fault=CRASH), FakeSide(worker=FakeWorker(captures=False))], ids=["crash", "not captured"]
)
def test_baseline_that_fails_by_itself_is_void(baseline: FakeSide) -> None:
    with pytest.raises(StoppedError) as stopped:
        blame(baseline, FakeSide()).for_baseline(CRASH, {})
    assert stopped.value.stop.reason is VoidReason.BASELINE_FAILED
