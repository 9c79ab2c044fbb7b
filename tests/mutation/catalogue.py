"""Every mutant of a task: of its solution, of its baseline where that is of the candidate's kind, and wrappers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from akarena.records.evaluation import Configuration
from akarena.records.task import Category, SizeAxis
from akarena.tasks import Task
from tests.mutation import hip_operators, mutant, triton_operators, wrap_hip, wrap_triton
from tests.mutation.mutant import Mutant

SOLUTION, BASELINE, WRAPPED = "solution", "baseline", "wrapped"


def sources(task: Task) -> dict[str, str]:
    """Return the correct kernels of a task that can be a candidate."""
    name = task.record.editable[0]
    found = {SOLUTION: (task.solution_folder / name).read_text("utf-8")}
    if task.record.category is not Category.PYTORCH_TO_HIP:
        found[BASELINE] = task.baseline.read_text("utf-8")
    return found


def all_mutants(task: Task, cases: Sequence[Configuration]) -> dict[str, list[Mutant]]:
    """Return every mutant of a task by source, in the order of the text."""
    hip = Path(task.record.editable[0]).suffix == ".hip"
    edits = hip_operators.edits if hip else triton_operators.edits
    wrap = wrap_hip.mutants if hip else wrap_triton.mutants
    sizes = [name for name, axis in task.record.axes.items() if isinstance(axis, SizeAxis)]
    texts = sources(task)
    found = {source: list(mutant.apply(edits(text, sizes), source, text)) for source, text in texts.items()}
    found[WRAPPED] = list(wrap(task.record, texts[SOLUTION], cases))
    return found


def chosen(mutants: dict[str, list[Mutant]], limit: int) -> list[Mutant]:
    """Choose at most ``limit`` mutants of each source."""
    return [one for own in mutants.values() for one in mutant.choose(own, limit)]
