"""What tests and programs share that judge candidates of their own; without pytest, which the programs lack."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from akarena import files, sandbox, targets
from akarena.judge.job import Mode
from akarena.judgement import Court, Verdict
from akarena.records.evaluation import Configuration
from akarena.tasks import Task


def judge_text(court: Court, task: Task, text: str, cases: Sequence[Configuration]) -> Verdict:
    """Judge the text of a file as a candidate for a task."""
    with tempfile.TemporaryDirectory(prefix="akarena-text-") as name:
        folder = Path(name)
        (folder / task.record.editable[0]).write_text(text, "utf-8")
        return court.judge(task, folder, files.digest_tree(folder), cases, Mode.FULL)


def missing(target: str) -> str:
    """Say why nothing can be judged on a target here; empty where it can."""
    found = [] if sandbox.is_usable("bubblewrap") else ["bubblewrap is not usable on this machine"]
    return "; ".join([*found, *targets.create(target).missing()])
