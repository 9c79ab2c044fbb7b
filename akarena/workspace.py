"""The agent's workspace: a fresh copy of what it may see, and the declared files that are taken back from it."""

from __future__ import annotations

import difflib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from akarena import files
from akarena.records.evaluation import FailReason
from akarena.tasks import Task

MAX_FILE_BYTES = 1 << 20
"""Largest candidate file that is taken."""
_MAX_PATCH_BYTES = 1 << 20


@dataclass(frozen=True)
class Candidate:
    """What was taken from an agent.

    Attributes:
        digest: Digest of the folder that the files were copied to.
        names: The files that were taken.
        unchanged: Whether every editable file is as the agent found it.
        fault: Why the candidate cannot be judged, or None.
        evidence: Which file, and what is wrong with it.
    """

    digest: str
    names: tuple[str, ...]
    unchanged: bool
    fault: FailReason | None
    evidence: str


def stage(task: Task, workspace: Path) -> None:
    """Copy the agent's files of a task into an empty folder."""
    shutil.copytree(task.agent_folder, workspace, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


def take(task: Task, workspace: Path, destination: Path) -> Candidate:
    """Copy the declared editable files, and nothing else, out of a workspace that hostile code has written.

    Args:
        task: The task, which names the files.
        workspace: The agent's folder; no process can write it any more.
        destination: Where they go; is created.
    """
    destination.mkdir(parents=True)
    names: list[str] = []
    fault: FailReason | None = None
    evidence = ""
    unchanged = True
    for name in task.record.editable:
        try:
            data = _read(workspace, name)
        except FileNotFoundError:
            fault, evidence = fault or FailReason.MISSING_FILE, evidence or f"{name} is missing"
            unchanged = False
            continue
        except OSError as error:
            fault, evidence = fault or FailReason.UNREADABLE_FILE, evidence or f"{name}: {error.strerror}"
            unchanged = False
            continue
        (destination / name).parent.mkdir(parents=True, exist_ok=True)
        (destination / name).write_bytes(data)
        names.append(name)
        pristine = task.agent_folder / name
        unchanged = unchanged and pristine.is_file() and pristine.read_bytes() == data
    return Candidate(files.digest_tree(destination), tuple(names), unchanged, fault, evidence)


def patch(task: Task, candidate: Path) -> str:
    """Return the candidate as a unified difference from what the agent started with, of bounded length."""
    lines: list[str] = []
    for name in task.record.editable:
        before, after = (_lines(folder / name) for folder in (task.agent_folder, candidate))
        lines += difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    if len(text) > _MAX_PATCH_BYTES:
        text = f"{text[:_MAX_PATCH_BYTES]}\n(cut after {_MAX_PATCH_BYTES} characters)\n"
    return text


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        return []
    return path.read_text("utf-8", errors="replace").splitlines(keepends=True)


def _read(root: Path, name: str) -> bytes:
    """Read a regular file of bounded size, following no link on the way.

    Raises:
        OSError: It is missing, a link, no regular file or too large.
    """
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        *parents, last = name.split("/")
        for part in parents:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        # Not blocking, since opening a pipe would wait for ever.
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(0, "is not a regular file")
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise OSError(0, f"is larger than {MAX_FILE_BYTES} bytes")
    return data
