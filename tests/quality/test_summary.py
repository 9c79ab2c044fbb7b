"""A kernel against itself: the task that is judged, and what is said of the numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from akarena import paths, tasks
from akarena.records.task import Category
from tests.quality.same import Case, Judged, against_itself
from tests.quality.summary import summarise

TASKS = paths.root() / "tasks"


def judged(*speedups: float, task: str = "hip2hip/one", verdict: str = "no_difference_shown") -> Judged:
    cases = tuple(Case(f"seen-{n}", 20.0, s, s - 0.01, s + 0.01, verdict) for n, s in enumerate(speedups))
    return Judged(task, cases, (), (speedups[0] if speedups else None, None), (verdict, None), "", 1.0)


def test_an_eager_task_becomes_its_solution_against_itself(tmp_path: Path) -> None:
    task = tasks.load(TASKS / "pytorch2hip" / "attention")
    same = against_itself(task, tmp_path)
    assert same.record.category is Category.HIP_TO_HIP
    assert same.baseline.read_bytes() == (task.solution_folder / "kernel.hip").read_bytes()
    assert same.baseline.parent == same.agent_folder != task.agent_folder


def test_other_tasks_stay_as_they_are(tmp_path: Path) -> None:
    task = tasks.load(TASKS / "triton2triton" / "gemm")
    assert against_itself(task, tmp_path) is task


def test_what_covers_one_and_what_is_false() -> None:
    found = summarise([judged(1.005, 1.02), judged(0.995, 1.0, verdict="faster"), replace(judged(), fault="void")])
    assert (found.intervals, found.covering) == (4, 3)
    assert (found.verdicts, found.faster) == (3, 1)
    assert found.faults == ("hip2hip/one: void",)


def test_the_spread_is_that_of_whole_judgements() -> None:
    # Within a judgement the errors cancel, so that two judgements agree.
    (spread,) = summarise([judged(1.1, 1 / 1.1), judged(1.2, 1 / 1.2)]).spreads
    assert (spread.judgements, spread.median_us) == (2, 20.0)
    assert spread.deviation == pytest.approx(0.0, abs=1e-12)
    (apart,) = summarise([judged(1.0, 1.0), judged(math.exp(0.02), math.exp(0.02))]).spreads
    assert apart.deviation == pytest.approx(0.02 / math.sqrt(2))


def test_nothing_measured_is_no_summary() -> None:
    with pytest.raises(ValueError, match="no configuration"):
        summarise([])
