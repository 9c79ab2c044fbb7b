"""What is seen of calls that are carried out together, on host memory; and what it is charged."""

from __future__ import annotations

import random

import pytest

from akarena.judge import apart
from akarena.judge.clock import Plan
from akarena.judge.workers import WorkerFaultError
from akarena.records.evaluation import FailReason
from tests.unit.test_judge_clock import SETS, Act, FakeSide, blocks, new_clock, work, work_on_all


def work_with_first(side: FakeSide) -> None:
    """Carry out every call together with the first one, as one launch would."""
    if 0 in side.order:
        work_on_all(side)


def work_of_a_whole_replay(side: FakeSide) -> None:
    """Work only where many calls are asked for."""
    if len(side.order) > 1:
        work(side)


def test_independent_calls_are_apart() -> None:
    clock, side = new_clock()
    blocks(clock, 2)
    side.worker.asked.clear()
    found = apart.singles_us(clock, random.Random(0))
    assert len(found) == SETS // 2 - 1
    assert min(found) > 0
    assert side.worker.asked.count("plain") == 1 + SETS // 2


@pytest.mark.parametrize("act", [work_on_all, work_with_first, work_of_a_whole_replay])
def test_work_that_was_moved_between_calls_is_seen(act: Act) -> None:
    clock, _ = new_clock(plain=act)
    blocks(clock, 2)
    with pytest.raises(WorkerFaultError) as fault:
        apart.singles_us(clock, random.Random(0))
    assert fault.value.reason in (FailReason.CALLS_NOT_APART, FailReason.ANSWERED_EARLY)


def test_a_single_call_stays_single() -> None:
    """A kernel that is so slow that a block has one call."""
    clock, side = new_clock()
    clock.use(Plan(1, 1))
    assert len(apart.singles_us(clock, random.Random(0))) == 1
    assert list(side.order) == [0]


@pytest.mark.parametrize(
    ("baseline", "candidate", "charged_us"),
    [
        ((30.0, 10.0), (25.0, 5.0), 0.0),
        ((30.0, 10.0), (40.0, 5.0), 0.0),
        ((130.0, 100.0), (130.0, 50.0), 33.5),
        ((30.0, 10.0), (20.0, 5.0), 0.0),
        ((2022.0, 2000.0), (2030.0, 200.0), 1787.0),
    ],
    ids=["as the baseline", "chance", "overlaps", "less", "batches"],
)
def test_a_gain_from_doing_calls_together_is_charged(
    baseline: tuple[float, float], candidate: tuple[float, float], charged_us: float
) -> None:
    sides = [([single + 5.0, single, single + 90.0], [block] * 10) for single, block in (baseline, candidate)]
    assert apart.charge_us(sides[0], sides[1]) == pytest.approx(charged_us)
