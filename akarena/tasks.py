"""Tasks on disk: discover, select, load, digest."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from akarena import files, schemas
from akarena.errors import unknown_name
from akarena.records.task import Category, TaskRecord

_AGENT_FILES = {
    Category.HIP_TO_HIP: "kernel.hip",
    Category.TRITON_TO_TRITON: "kernel.py",
    Category.PYTORCH_TO_HIP: "kernel.hip",
}


@dataclass(frozen=True)
class Task:
    """A task's record and its folder."""

    record: TaskRecord
    folder: Path

    @property
    def id(self) -> str:
        """Category and name."""
        return self.record.id

    @property
    def agent_folder(self) -> Path:
        """Files that the agent starts from."""
        return self.folder / "agent"

    @property
    def solution_folder(self) -> Path:
        """Our own optimised answer; never shown to an agent."""
        return self.folder / "solution"

    @property
    def oracle(self) -> Path:
        """The reference that decides what is right."""
        return self.folder / "judge" / "oracle.py"

    @property
    def baseline(self) -> Path:
        """The file that is to be beaten: the pristine kernel, or the PyTorch module."""
        if self.record.category is Category.PYTORCH_TO_HIP:
            return self.agent_folder / "module.py"
        return self.agent_folder / self.record.editable[0]

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the names and bytes of all files of the task."""
        return files.digest_tree(self.folder, skip=("__pycache__",))


def load(folder: Path) -> Task:
    """Read one task.

    Raises:
        UserError: ``task.toml`` is missing, not TOML, or not a task; the message names file, key and what was expected.
    """
    return Task(schemas.load_toml(TaskRecord, folder / "task.toml"), folder)


def discover(tasks_folder: Path) -> dict[str, Path]:
    """Return the folder of each task below ``tasks/``, by id, sorted."""
    found = {}
    for category in Category:
        for path in sorted((tasks_folder / category.value).glob("*/task.toml")):
            found[f"{category.value}/{path.parent.name}"] = path.parent
    return found


def load_all(tasks_folder: Path) -> list[Task]:
    """Read every task."""
    return [load(folder) for folder in discover(tasks_folder).values()]


def select(tasks: list[Task], patterns: list[str]) -> list[Task]:
    """Choose tasks by id, glob over ids, category, ``tag:NAME`` or ``difficulty:N``; no pattern means all.

    Raises:
        UserError: A pattern matches no task.
    """
    if not patterns:
        return tasks
    chosen: set[str] = set()
    for pattern in patterns:
        matched = {task.id for task in tasks if _matches(task, pattern)}
        if not matched:
            tags = {f"tag:{tag}" for task in tasks for tag in task.record.tags}
            levels = {f"difficulty:{task.record.difficulty}" for task in tasks}
            names = {task.id.split("/")[1] for task in tasks}
            ids = [task.id for task in tasks]
            raise unknown_name("--tasks: task", pattern, ids, {*names, *tags, *levels, *map(str, Category)})
        chosen |= matched
    return [task for task in tasks if task.id in chosen]


def _matches(task: Task, pattern: str) -> bool:
    record = task.record
    if pattern.startswith("tag:"):
        return pattern[4:] in record.tags
    if pattern.startswith("difficulty:"):
        return pattern[11:] == str(record.difficulty)
    name = record.id.split("/")[1]
    return pattern in (record.category.value, name) or fnmatch.fnmatchcase(record.id, pattern)


def expected_file(category: Category) -> str:
    """Return the name of the editable file of a category."""
    return _AGENT_FILES[category]
