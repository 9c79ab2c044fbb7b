"""Small tasks of the tests: sound as they lie here, copied and broken by the tests."""

from __future__ import annotations

import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent
"""Holds ``<category>/<name>`` like the real ``tasks/``."""
HIP = "hip2hip/scale_shift"
TRITON = "triton2triton/bias_add"
PYTORCH = "pytorch2hip/row_dot"
ALL = (HIP, PYTORCH, TRITON)


def copy(root: Path, task: str = HIP) -> Path:
    """Copy a task below ``root/tasks`` and return its folder."""
    folder = root / "tasks" / task
    shutil.copytree(HERE / task, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def edit(path: Path, *changes: tuple[str, str]) -> None:
    """Replace the first occurrence of each text in a file; one that is not there is an error."""
    text = path.read_text("utf-8")
    for old, new in changes:
        if old not in text:
            raise ValueError(f"{path} does not hold {old!r}")
        text = text.replace(old, new, 1)
    path.write_text(text, "utf-8")
