"""What the clock lets pass: a worker that does its work when it is asked, and no other. On host memory."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from akarena import paths, tasks
from akarena.judge import clock as clock_module
from akarena.judge import inputs
from akarena.judge.arena import HostMemory, Layout, View, arena_bytes
from akarena.judge.clock import Clock, Plan, Taken, charge_us
from akarena.judge.workers import WorkerFaultError
from akarena.records.evaluation import FailReason, Method
from akarena.targets import EntryKind

TASK = tasks.load(paths.root() / "tasks" / "hip2hip" / "softmax").record
VALUES = {"rows": 6, "cols": 40}
SETS = 8
Act = Callable[["FakeSide"], None]


def nothing(side: FakeSide) -> None:
    """Do nothing."""


def work(side: FakeSide) -> None:
    """Compute every call, one after another."""
    for place, index in enumerate(side.order):
        side.output(index).copy_(torch.softmax(side.input(index), dim=1))
        if place == len(side.order) // 2:
            side.look()


def work_without_last_row(side: FakeSide) -> None:
    for index in side.order:
        side.output(index)[:-1].copy_(torch.softmax(side.input(index), dim=1)[:-1])


def work_without_maximum(side: FakeSide) -> None:
    """Compute what is right for ordinary values only."""
    for index in side.order:
        exponentials = side.input(index).exp()
        side.output(index).copy_(exponentials / exponentials.sum(dim=1, keepdim=True))


def work_on_all(side: FakeSide) -> None:
    """Carry out every call there is, whichever were asked for."""
    for index in range(side.view.layout.sets):
        side.output(index).copy_(torch.softmax(side.input(index), dim=1))


def work_and_stray(side: FakeSide) -> None:
    work(side)
    side.memory.bytes[0] ^= 1


class FakeWorker:
    """Does something at each kind of request."""

    def __init__(self, side: FakeSide, acts: dict[str, Act]) -> None:
        self._side = side
        self._acts = acts
        self.asked: list[str] = []

    def _ask(self, name: str) -> float:
        self.asked.append(name)
        started = time.perf_counter()
        self._acts.get(name, nothing)(self._side)
        return time.perf_counter() - started

    def echo(self, timeout_seconds: float) -> float:
        return self._ask("echo")

    def wake(self, timeout_seconds: float) -> float:
        return self._ask("wake")

    def plain(self, order: Sequence[int], timeout_seconds: float, meanwhile: Callable[[], None] | None = None) -> float:
        self._side.order = order
        self._side.meanwhile = meanwhile
        seconds = self._ask("plain")
        self._side.look()
        return seconds


class FakeSide:
    """A side whose worker lives in this process."""

    def __init__(self, **acts: Act) -> None:
        self.name = "candidate"
        self.kind = EntryKind.NATIVE
        self.device = torch.device("cpu")
        self.dtypes = inputs.dtypes("float8_e4m3fn")
        self.memory = HostMemory(64 * arena_bytes(TASK, VALUES, guarded=False))
        self.worker = FakeWorker(self, {"plain": work, **acts})
        self.view: View
        self.order: Sequence[int] = ()
        self.meanwhile: Callable[[], None] | None = None

    def look(self) -> None:
        """Let the judge look, once a replay."""
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()

    def lay_out(self, values: Any, sets: int, secret: random.Random) -> View:
        self.view = View(self.memory, Layout(TASK, values, sets, secret, guarded=False), self.dtypes)
        self.view.write_canaries(inputs.generator(self.device, "nonce", "canary"))
        return self.view

    def call_seconds(self, values: Any) -> float:
        return 0.01

    def input(self, index: int) -> torch.Tensor:
        return self.view.copy_of(self.view.layout.slots[1], index)

    def output(self, index: int) -> torch.Tensor:
        return self.view.copy_of(self.view.layout.slots[0], index)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "BLOCK_SECONDS", 0.001)


def new_clock(**acts: Act) -> tuple[Clock, FakeSide]:
    side: Any = FakeSide(**acts)
    job: Any = SimpleNamespace(nonce="nonce", task=TASK, call_seconds=1.0)
    clock = Clock(job, side, dict(VALUES), cache_bytes=1 << 12, overhead_us=0.0)
    clock.set_up(Method.PLAIN)
    clock.use(Plan(SETS, 2))
    return clock, side


def blocks(clock: Clock, count: int = 12) -> list[float]:
    times = [clock.block() for _ in range(count)]
    clock.finish()
    return times


def refused(reason: FailReason, **acts: Act) -> str:
    clock, _ = new_clock(**acts)
    with pytest.raises(WorkerFaultError) as fault:
        blocks(clock)
    assert fault.value.reason is reason
    return fault.value.evidence


def test_honest_work_is_timed_and_some_of_it_is_kept() -> None:
    clock, _ = new_clock()
    assert min(blocks(clock)) > 0
    assert 10 <= len(clock.kept) <= 80
    for answer in clock.kept:
        expected = torch.softmax(answer.inputs["x"].double(), dim=1)
        assert torch.allclose(answer.outputs["y"].double(), expected, atol=1e-6)


def test_kept_calls_have_values_of_all_rounds() -> None:
    clock, _ = new_clock()
    blocks(clock)
    spreads = [float(answer.inputs["x"].std()) for answer in clock.kept]
    assert sum(spread > 10 for spread in spreads) >= 2
    assert sum(spread < 5 for spread in spreads) >= 2


def test_what_is_right_for_ordinary_values_only_is_seen_in_what_is_kept() -> None:
    clock, _ = new_clock(plain=work_without_maximum)
    blocks(clock)
    assert any(not bool(torch.isfinite(answer.outputs["y"]).all()) for answer in clock.kept)


def test_the_worker_is_woken_more_often_than_it_works() -> None:
    clock, side = new_clock()
    side.worker.asked.clear()
    blocks(clock, 20)
    woken, worked = side.worker.asked.count("wake"), side.worker.asked.count("plain")
    # Some replays are not timed, but looked at; some wakes are followed by none.
    assert worked == 40 + len(clock.watched)
    assert 3 <= len(clock.watched) <= 14
    assert worked + 3 <= woken <= worked + 20
    assert side.worker.asked.count("echo") == woken


@pytest.mark.parametrize("request_", ["echo", "wake"])
def test_who_begins_before_the_clock_is_seen(request_: str) -> None:
    clock, side = new_clock()
    side.worker._acts.update({request_: work_on_all, "plain": nothing})
    with pytest.raises(WorkerFaultError) as fault:
        blocks(clock)
    assert fault.value.reason is FailReason.ANSWERED_EARLY
    assert "before the clock started" in fault.value.evidence


def test_what_is_not_written_is_seen() -> None:
    assert "not written" in refused(FailReason.ANSWERED_EARLY, plain=nothing)


def test_a_part_that_is_not_written_is_seen() -> None:
    assert "not written" in refused(FailReason.ANSWERED_EARLY, plain=work_without_last_row)


def test_stray_writes_are_seen() -> None:
    refused(FailReason.OUT_OF_BOUNDS, plain=work_and_stray)


@pytest.mark.parametrize(
    ("wake_us", "read_us", "charged_us"),
    [(100, 200, 0), (129, 229, 0), (150, 200, 20), (100, 300, 70), (150, 300, 90), (50, 100, 0)],
)
def test_steps_that_take_longer_than_beside_the_baseline_are_charged(
    wake_us: float, read_us: float, charged_us: float
) -> None:
    baseline, candidate = new_clock()[0], new_clock()[0]
    baseline.taken = [Taken(wake=100e-6, replay=1.0, read=200e-6)] * 20
    candidate.taken = [Taken(wake=wake_us / 1e6, replay=1.0, read=read_us / 1e6)] * 20
    # One in twenty may be delayed by anything.
    candidate.taken[3] = Taken(wake=1.0, replay=1.0, read=1.0)
    assert charge_us(baseline, candidate) * SETS == pytest.approx(charged_us, abs=1e-6)
