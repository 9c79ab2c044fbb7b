"""What a look at a running replay shows, on host memory: calls in turn, together, and kept back."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch

from akarena import paths, tasks
from akarena.judge.arena import HostMemory, Layout, View, arena_bytes
from akarena.judge.inputs import dtypes
from akarena.judge.watch import Watch
from akarena.judge.workers import WorkerFaultError
from akarena.records.evaluation import FailReason
from tests.unit.test_judge_clock import FakeSide, blocks, new_clock, work

WORD = 0x7FC5
SETS = 40
TASK = tasks.load(paths.root() / "tasks" / "hip2hip" / "layer_norm").record
VALUES = {"rows": 12, "cols": 33, "eps": 1e-5}


class Scene:
    """Calls with three outputs each, poisoned; the order in which they are to come is not that of memory."""

    def __init__(self, wait_seconds: float = 0.0, whole_seconds: float = 1.0) -> None:
        layout = Layout(TASK, VALUES, SETS, random.Random(0), guarded=False)
        self.memory = HostMemory(SETS * arena_bytes(TASK, VALUES, guarded=False))
        self.view = View(self.memory, layout, dtypes("float8_e4m3fn"))
        self.view.poison(WORD)
        self.order = random.Random(1).sample(range(SETS), SETS)
        outputs = [slot for slot in layout.slots if slot.is_output]
        numbers = np.random.default_rng(2)
        self.watch = Watch(self.memory, outputs, self.order, WORD, numbers, wait_seconds, whole_seconds)
        self.watch.prepare()

    def finish(self, place: int, share: float = 1.0) -> None:
        """Write the outputs of the call at a place of the order, or the first part of each."""
        for slot in self.view.layout.slots:
            if slot.is_output:
                flat = self.view.copy_of(slot, self.order[place]).view(-1)
                flat[: int(flat.numel() * share)] = 0.5

    def look(self) -> str | None:
        self.watch.look()
        return self.watch.fault()


@pytest.mark.parametrize("done", [0, 1, 17, SETS - 1, SETS])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_calls_in_turn_are_right(done: int, share: float) -> None:
    scene = Scene()
    for place in range(done):
        scene.finish(place)
    if done < SETS:
        scene.finish(done, share)
    assert scene.look() is None
    # The places may all lie in the part that is written.
    assert scene.watch.done is not None
    assert done <= scene.watch.done <= done + (share > 0)


def all_halves(scene: Scene) -> None:
    for place in range(SETS):
        scene.finish(place, 0.5)


def two_at_a_time(scene: Scene) -> None:
    for place in range(10):
        scene.finish(place)
    scene.finish(10, 0.5)
    scene.finish(11, 0.5)


def in_order_of_memory(scene: Scene) -> None:
    for index in range(20):
        scene.finish(scene.order.index(index))


def another_before(scene: Scene) -> None:
    scene.finish(0)
    scene.finish(3)


@pytest.mark.parametrize("act", [all_halves, two_at_a_time, in_order_of_memory, another_before])
def test_calls_that_overlap_are_seen(act: Callable[[Scene], None]) -> None:
    scene = Scene()
    act(scene)
    fault = scene.look()
    assert fault is not None
    assert "had begun before" in fault


def test_results_that_are_kept_back_are_seen() -> None:
    scene = Scene(wait_seconds=0.02, whole_seconds=0.04)
    scene.finish(0)
    fault = scene.look()
    assert fault is not None
    assert "1 of 40 calls were done" in fault


def test_a_look_after_the_end_says_nothing() -> None:
    scene = Scene(wait_seconds=0.002, whole_seconds=0.001)
    for place in range(SETS):
        scene.finish(place)
    assert scene.look() is None
    assert scene.watch.done == SETS


def both_halves(side: FakeSide) -> None:
    """Compute the first rows of every call, then the last rows of every call."""
    for rows in (slice(0, 3), slice(3, 6)):
        for index in side.order:
            side.output(index)[rows] = torch.softmax(side.input(index), dim=1)[rows]
        side.look()


def backwards(side: FakeSide) -> None:
    for place, index in enumerate(reversed(side.order)):
        side.output(index).copy_(torch.softmax(side.input(index), dim=1))
        if place == len(side.order) // 2:
            side.look()


@pytest.mark.parametrize("act", [both_halves, backwards])
def test_the_clock_refuses_who_is_seen_twice(act: Callable[[FakeSide], None]) -> None:
    clock, _ = new_clock(plain=act)
    with pytest.raises(WorkerFaultError) as fault:
        blocks(clock, 30)
    assert fault.value.reason is FailReason.CALLS_NOT_APART
    assert len(clock.watched) == 2


def test_one_look_may_be_wrong() -> None:
    """A look can be torn in two by the device, though hardly twice."""
    calls = 0

    def once(side: FakeSide) -> None:
        nonlocal calls
        calls += side.meanwhile is not None
        (backwards if calls == 1 and side.meanwhile is not None else work)(side)

    clock, _ = new_clock(plain=once)
    blocks(clock, 30)
    assert len(clock.watched) >= 5
