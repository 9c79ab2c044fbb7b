"""Everything that is wrong with a task, before any agent or judge meets it.

The ordinary part is static and quick. The deep part runs the task's oracle on the sizes of the cpu target, with torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from akarena import files, tasks
from akarena.errors import UserError
from akarena.lint import entries
from akarena.lint.record import check as check_record
from akarena.records.task import Category, TaskRecord
from akarena.tasks import Task

MAX_FILES = 6
"""Most files of a task."""
_CACHES = ("__pycache__",)
_KEYED = re.compile(r"(the whole document|[\w.\[\]'\"-]+)(?: \(the key itself\))?: (.*)", re.DOTALL)
_NEXT_KEY = re.compile(r"; (?=[A-Za-z_][\w.\[\]'-]*(?: \(the key itself\))?: )")


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong with a task.

    Attributes:
        file: The file, below ``tasks/``.
        key: Where in it: a key path of ``task.toml``, or the name of a function; empty for the whole file.
        reason: What is wrong and what is expected.
    """

    file: str
    key: str
    reason: str

    def __str__(self) -> str:
        return " ".join(": ".join(part for part in (self.file, self.key, self.reason) if part).split())


def lint(folder: Path, *, deep: bool = False) -> list[Problem]:
    """Check one task.

    Args:
        folder: The task's folder, ``tasks/<category>/<name>``.
        deep: Whether to run the oracle and the negative controls as well (needs torch, takes seconds). Left out where
            the static part finds a fault.

    Returns:
        All problems, sorted; none for a sound task.
    """
    folder = folder.absolute()
    place = f"{folder.parent.name}/{folder.name}"
    if folder.is_symlink():
        return [Problem(place, "", "is a link, expected a folder")]
    present, strange = files.walk(folder, skip=_CACHES)
    problems = [
        Problem(f"{place}/{name}", "", "is a link or a special file, expected a regular file") for name in strange
    ]
    if len(present) > MAX_FILES:
        problems.append(Problem(place, "", f"has {len(present)} files, expected at most {MAX_FILES}"))
    toml = f"{place}/task.toml"
    if "task.toml" in strange:
        return sorted(problems)
    try:
        task = tasks.load(folder)
    except UserError as error:
        return sorted(problems + _schema_problems(toml, str(error).removeprefix(f"{folder}/task.toml: ")))
    record = task.record
    problems += [Problem(toml, key, reason) for key, reason in (*_identity(record, folder), *check_record(record))]
    problems += [Problem(f"{place}/{name}", "", reason) for name, reason in _layout(record, present)]
    problems += [Problem(f"{place}/{name}", key, reason) for name, key, reason in _entries(task, present)]
    if deep and not problems:
        # Only here: torch takes seconds to import, and nothing above needs it.
        from akarena.lint.deep import check as check_deep

        problems = [Problem(f"{place}/{name}", key, reason) for name, key, reason in check_deep(task)]
    return sorted(set(problems))


def lint_all(root: Path, deep: bool = False) -> list[Problem]:
    """Check every folder below ``tasks/`` of a checkout, also those that ``tasks.discover`` passes over.

    Args:
        root: The checkout.
        deep: As for :func:`lint`.
    """
    problems = []
    known = {category.value for category in Category}
    for category in _subfolders(root / "tasks"):
        if category.name not in known:
            problems.append(Problem(category.name, "", f"is no category, expected {', '.join(sorted(known))}"))
            continue
        for folder in _subfolders(category):
            problems += lint(folder, deep=deep)
    return problems


def _subfolders(folder: Path) -> list[Path]:
    """Folders and links to folders: the latter are reported, not passed over."""
    return sorted(path for path in folder.iterdir() if path.is_dir() and path.name not in _CACHES)


def _schema_problems(file: str, message: str) -> list[Problem]:
    """Take the one line of a schema error apart, so that each problem carries its key."""
    problems = []
    for part in _NEXT_KEY.split(message):
        match = _KEYED.fullmatch(part)
        problems.append(Problem(file, match[1], match[2]) if match else Problem(file, "", part))
    return problems


def _identity(record: TaskRecord, folder: Path) -> Iterator[tuple[str, str]]:
    path = f"{folder.parent.name}/{folder.name}"
    if record.id != path:
        yield "id", f"is {record.id!r}, the folder is {path!r}"
    if record.category.value != record.id.split("/")[0]:
        yield "category", f"is {record.category.value!r}, the id begins with {record.id.split('/')[0]!r}"
    wanted = tasks.expected_file(record.category)
    if record.editable[0] != wanted:
        yield "editable[0]", f"is {record.editable[0]!r}, expected {wanted!r} in {record.category.value}"
    if len(set(record.editable)) != len(record.editable):
        yield "editable", "names a file twice"
    if record.category is Category.PYTORCH_TO_HIP and "module.py" in record.editable:
        yield "editable", "names module.py, which is the baseline and stays as it is"


def _layout(record: TaskRecord, present: list[str]) -> Iterator[tuple[str, str]]:
    """Compare the files that are there with those that belong there."""
    required = {"task.toml", "judge/oracle.py", *(f"agent/{name}" for name in record.editable)}
    solution = {f"solution/{name}" for name in record.editable}
    if record.category is Category.PYTORCH_TO_HIP:
        required.add("agent/module.py")
    if record.category is not Category.TRITON_TO_TRITON:
        required.add(f"solution/{record.editable[0]}")
    for name in sorted(required - set(present)):
        yield name, "is missing"
    for name in sorted(set(present) - required - solution):
        yield name, f"does not belong to a task of {record.category.value}"


def _entries(task: Task, present: list[str]) -> Iterator[tuple[str, str, str]]:
    """Check the signatures in the files that are there."""
    record = task.record
    kernel = entries.check_triton if record.category is Category.TRITON_TO_TRITON else entries.check_hip
    checks: list[tuple[str, str, Callable[[str, TaskRecord], Iterator[str]]]] = [
        (f"agent/{record.editable[0]}", record.entry, kernel),
        (f"solution/{record.editable[0]}", record.entry, kernel),
        ("judge/oracle.py", "oracle", entries.check_oracle),
    ]
    if record.category is Category.PYTORCH_TO_HIP:
        checks.append(("agent/module.py", "forward", entries.check_module))
    for name, key, check in checks:
        if name not in present:
            continue
        try:
            text = files.read_bytes(task.folder, task.folder / name).decode("utf-8")
        except (UserError, UnicodeDecodeError) as error:
            yield name, "", f"cannot be read as UTF-8 text ({error})"
            continue
        for reason in check(text, record):
            yield name, key, reason
