from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from akarena import files, paths, tasks, workspace
from akarena.records.evaluation import FailReason
from akarena.tasks import Task


@pytest.fixture
def task() -> Task:
    return tasks.load(paths.root() / "tasks" / "hip2hip" / "softmax")


@pytest.fixture
def work(task: Task, tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    workspace.stage(task, folder)
    return folder


def test_what_an_agent_did_not_touch_is_unchanged(task: Task, work: Path, tmp_path: Path) -> None:
    taken = workspace.take(task, work, tmp_path / "candidate")
    assert taken.unchanged
    assert taken.fault is None
    assert taken.digest == files.digest_tree(tmp_path / "candidate")
    assert workspace.patch(task, tmp_path / "candidate") == ""


def test_only_declared_files_are_taken(task: Task, work: Path, tmp_path: Path) -> None:
    (work / "kernel.hip").write_text("int main() {}\n")
    (work / "judge.py").write_text("print('won')")
    taken = workspace.take(task, work, tmp_path / "candidate")
    assert taken.names == ("kernel.hip",)
    assert not taken.unchanged
    assert [path.name for path in (tmp_path / "candidate").iterdir()] == ["kernel.hip"]
    assert "+int main() {}" in workspace.patch(task, tmp_path / "candidate")


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _folder(path: Path) -> None:
    path.mkdir()


def _large(path: Path) -> None:
    path.write_bytes(b"x" * (workspace.MAX_FILE_BYTES + 1))


@pytest.mark.parametrize("make", [_link, os.mkfifo, _folder, _large])
def test_what_is_no_small_regular_file_is_refused(
    task: Task, work: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    (work / "kernel.hip").unlink()
    make(work / "kernel.hip")
    taken = workspace.take(task, work, tmp_path / "candidate")
    assert taken.fault is FailReason.UNREADABLE_FILE
    assert taken.evidence.startswith("kernel.hip")
    assert list((tmp_path / "candidate").iterdir()) == []


def test_a_missing_file_is_told(task: Task, work: Path, tmp_path: Path) -> None:
    (work / "kernel.hip").unlink()
    taken = workspace.take(task, work, tmp_path / "candidate")
    assert taken.fault is FailReason.MISSING_FILE
    assert not taken.unchanged
