"""Takes a workspace back from an agent that has ended, however deep its folders are nested."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from akarena.sandbox.ownership import reclaim

_DEPTH = 50
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def take_back(workspace: Path) -> None:
    """Make a workspace the caller's own again, and such that it can be removed by ordinary means.

    Folders that are nested too deep for programs that recurse, or for a path, are moved to the top under other names.
    No declared file lies so deep.

    Args:
        workspace: The folder; no process can write it any more.
    """
    if reclaim(workspace):
        return
    top = os.open(workspace, _FOLDER)
    try:
        token = secrets.token_hex(8)
        names = (f".nested-{token}-{number}" for number in count())
        waiting = _folders(top)
        while waiting:
            waiting += _lift_deep(top, top, waiting.pop(), names, _DEPTH)
    finally:
        os.close(top)
    reclaim(workspace)


def _folders(folder: int) -> list[str]:
    return [name for name in os.listdir(folder) if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode)]


def _lift_deep(top: int, parent: int, name: str, names: Iterator[str], depth: int) -> list[str]:
    """Move every folder that lies deeper to the top; give the new names."""
    # Before it is opened: its owner may have closed it.
    os.chmod(name, 0o700, dir_fd=parent)
    folder = os.open(name, _FOLDER, dir_fd=parent)
    lifted: list[str] = []
    try:
        for inner in _folders(folder):
            if depth == 0:
                lifted.append(next(names))
                os.rename(inner, lifted[-1], src_dir_fd=folder, dst_dir_fd=top)
            else:
                lifted += _lift_deep(top, folder, inner, names, depth - 1)
    finally:
        os.close(folder)
    return lifted
