"""Survivors that are right kernels all the same, each with a written argument, in ``equivalent.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from akarena import configurations, paths, tasks
from akarena.records.task import TargetName
from tests.mutation import catalogue, results
from tests.mutation.mutant import Mutant, Operator
from tests.mutation.results import Entry
from tests.mutation.verdicts import KILLED, End

FILE = Path(__file__).parent / "equivalent.toml"
SHARE = 0.05
"""Largest part of a task's mutants that may be argued away."""
_SHORTEST = 40
"""Characters of an argument."""


@dataclass(frozen=True)
class Equivalent:
    """An argument why mutants of a line are right.

    Attributes:
        task: Id of the task.
        source: Which of its correct kernels.
        operator: The class of mistake.
        line: Text of the line before the edit.
        argument: Why the result is right.
        change: A part of what the mutant shows as its change, where a line has several; else empty.
        target: The only target that the argument holds on; empty where it holds everywhere.
    """

    task: str
    source: str
    operator: Operator
    line: str
    argument: str
    change: str = ""
    target: str = ""

    def is_about(self, mutant: Mutant | Entry) -> bool:
        """Say whether it is about a mutant of its task."""
        own = (mutant.source, mutant.operator, mutant.line_text)
        return own == (self.source, self.operator, self.line) and self.change in mutant.change


def load(target: TargetName, file: Path = FILE) -> list[Equivalent]:
    """Read the arguments that hold on a target.

    Raises:
        TypeError: An entry lacks a key or has an unknown one.
    """
    content = tomllib.loads(file.read_text("utf-8"))
    every = [Equivalent(**{**entry, "operator": Operator(entry["operator"])}) for entry in content.get("mutant", [])]
    return [entry for entry in every if entry.target in ("", target.value)]


def explained(entries: Iterable[Equivalent], task: str, mutants: dict[str, list[Mutant]]) -> dict[str, str]:
    """Return the argument for each mutant of a task that has one, by id."""
    own = [entry for entry in entries if entry.task == task]
    return {
        mutant.id: entry.argument
        for entry in own
        for several in mutants.values()
        for mutant in several
        if entry.is_about(mutant)
    }


def faults(entries: Sequence[Equivalent], mutants: dict[str, list[Mutant]], found: dict[str, list[Entry]]) -> list[str]:
    """Say what is wrong with the arguments.

    Args:
        entries: All of them.
        mutants: Every mutant there is, by task.
        found: What became of those that were judged, by task.
    """
    said = []
    for entry in entries:
        name = f"equivalent.toml: {entry.task} {entry.source} {entry.operator} {entry.line!r}"
        if not any(entry.is_about(mutant) for mutant in mutants.get(entry.task, [])):
            said.append(f"{name} is about no mutant")
        if len(entry.argument) < _SHORTEST:
            said.append(f"{name} has no argument")
        killed = [one.id for one in found.get(entry.task, []) if entry.is_about(one) and one.end in KILLED]
        said += [f"{name} argues that {id_} is right, but it was killed" for id_ in killed]
    for task, judged in found.items():
        own = [entry for entry in entries if entry.task == task]
        living = [one for one in judged if one.end is not End.STILLBORN]
        argued = [one for one in living if one.end is End.SURVIVED and any(entry.is_about(one) for entry in own)]
        if len(argued) > SHARE * len(living):
            said.append(f"{task}: {len(argued)} of {len(living)} mutants are argued away, more than {SHARE:.0%}")
    return said


def faults_of_all(target: TargetName) -> list[str]:
    """Say what is wrong with the arguments in the light of what a target found."""
    mutants: dict[str, list[Mutant]] = {}
    for task in tasks.load_all(paths.root() / "tasks"):
        # The configurations decide about the tolerances in wrappers only, not about what mutants there are.
        several = catalogue.all_mutants(task, configurations.seen(task.record, target))
        mutants[task.id] = [mutant for own in several.values() for mutant in own]
    kept = results.load(target)
    found = {id_: list(task.mutants.values()) for id_, task in kept.tasks.items()} if kept else {}
    return faults(load(target), mutants, found)
