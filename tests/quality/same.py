"""A kernel judged against itself: whatever difference is found, the instrument made it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from akarena import files, scoring
from akarena.judge.job import Mode
from akarena.judgement import Court
from akarena.records.evaluation import Configuration, SpeedMeasured
from akarena.records.task import Category
from akarena.records.trial import LadderMeasured
from akarena.tasks import Task


@dataclass(frozen=True)
class Case:
    """One configuration of one judgement: the interval about what should be 1."""

    id: str
    baseline_us: float
    speedup: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True)
class Judged:
    """One judgement in fresh processes.

    Attributes:
        task: Its id.
        cases: Configurations with a number.
        without_number: How many have none, each with the reason.
        speedups: Of the seen and of the unseen configurations; None where there is none.
        verdicts: The same splits' verdicts.
        fault: Why there is no judgement; empty where there is.
        seconds: How long it took.
    """

    task: str
    cases: tuple[Case, ...]
    without_number: tuple[str, ...]
    speedups: tuple[float | None, float | None]
    verdicts: tuple[str | None, str | None]
    fault: str
    seconds: float


def against_itself(task: Task, folder: Path) -> Task:
    """Return a task whose baseline is also its candidate.

    Of a ``pytorch2hip`` task that is the solution, since an eager module cannot be a candidate.

    Args:
        task: The task.
        folder: An empty folder for its copy.
    """
    if task.record.category is not Category.PYTORCH_TO_HIP:
        return task
    copy = folder / "task"
    shutil.copytree(task.folder, copy)
    for name in task.record.editable:
        shutil.copyfile(task.solution_folder / name, copy / "agent" / name)
    return replace(task, record=task.record.model_copy(update={"category": Category.HIP_TO_HIP}), folder=copy)


def judge(court: Court, task: Task, cases: Sequence[Configuration]) -> Judged:
    """Judge a task's baseline as its candidate."""
    began = time.monotonic()
    folder = task.agent_folder
    verdict = court.judge(task, folder, files.digest_tree(folder), cases, Mode.FULL)
    seconds = round(time.monotonic() - began, 1)
    evaluation = verdict.evaluation
    gates = evaluation.gates if evaluation else ()
    bad = [f"{gate.gate.value}: {gate.reason.value}" for gate in gates if gate.verdict in ("fail", "void")]
    if evaluation is None or bad:
        return Judged(task.id, (), (), (None, None), (None, None), "; ".join(bad) or str(verdict.void), seconds)
    found, missing = [], []
    for case in evaluation.cases:
        speed = case.speed
        if isinstance(speed, SpeedMeasured):
            found.append(
                Case(
                    id=case.configuration.id,
                    baseline_us=round(speed.baseline_median_us, 4),
                    speedup=round(speed.speedup, 5),
                    low=round(speed.low, 5),
                    high=round(speed.high, 5),
                    verdict=speed.verdict.value,
                )
            )
        else:
            missing.append(f"{case.configuration.id}: {speed.reason.value}")
    ladders = [ladder if isinstance(ladder, LadderMeasured) else None for ladder in scoring.ladders(evaluation)]
    seen, unseen = (round(ladder.geomean_speedup, 5) if ladder else None for ladder in ladders)
    verdicts = [ladder.verdict.value if ladder else None for ladder in ladders]
    return Judged(task.id, tuple(found), tuple(missing), (seen, unseen), (verdicts[0], verdicts[1]), "", seconds)
