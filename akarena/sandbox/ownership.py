"""Whose files a sandboxed process writes: a user of our own where the caller is root, else the caller's."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

SANDBOX_ID = 65532
"""User and group on the host of everything that a root caller runs in a sandbox."""
_MAX_DEPTH = 100
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def host_id() -> tuple[int, int]:
    """Give the user and group that sandboxed processes have on the host."""
    return (SANDBOX_ID, SANDBOX_ID) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


def device_group(device: Path) -> int | None:
    """Give the group through which a device node may be opened, such as that of `render`; None where none is needed."""
    facts = device.stat()
    for_group, for_others = facts.st_mode & stat.S_IRWXG, facts.st_mode & (stat.S_IROTH | stat.S_IWOTH)
    needed = for_group and for_others != stat.S_IROTH | stat.S_IWOTH and facts.st_gid != 0
    return facts.st_gid if needed else None


def _visit(folder_fd: int, act: Callable[[int, str, os.stat_result], None], depth: int) -> bool:
    complete = True
    for name in os.listdir(folder_fd):
        facts = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        act(folder_fd, name, facts)
        if not stat.S_ISDIR(facts.st_mode):
            continue
        if depth == 0:
            complete = False
            continue
        inner = os.open(name, _FOLDER, dir_fd=folder_fd)
        try:
            complete &= _visit(inner, act, depth - 1)
        finally:
            os.close(inner)
    return complete


def _visit_below(folder: Path, act: Callable[[int, str, os.stat_result], None]) -> bool:
    fd = os.open(folder, _FOLDER)
    try:
        return _visit(fd, act, _MAX_DEPTH)
    finally:
        os.close(fd)


def prepare_writable(path: Path) -> None:
    """Give a file, a folder with all that it holds, or a socket to the user of the sandbox.

    Needed before `path` is mounted writable, and for a unix socket that the sandbox connects to. Links are not
    followed. Does nothing unless the caller is root.
    """
    if os.geteuid() != 0:
        return

    def give(folder_fd: int, name: str, _: os.stat_result) -> None:
        os.chown(name, SANDBOX_ID, SANDBOX_ID, dir_fd=folder_fd, follow_symlinks=False)

    os.chown(path, SANDBOX_ID, SANDBOX_ID, follow_symlinks=False)
    if path.is_dir() and not path.is_symlink():
        _visit_below(path, give)


def reclaim(path: Path) -> bool:
    """Take a folder back after the sandbox has ended: owned by the caller, every folder readable and removable.

    What lies in it is still hostile: open files in it without following links.

    Returns:
        False when something was nested too deeply to be taken back; nobody makes such folders by accident.
    """
    root, uid, gid = os.geteuid() == 0, os.geteuid(), os.getegid()

    def take(folder_fd: int, name: str, facts: os.stat_result) -> None:
        if root:
            os.chown(name, uid, gid, dir_fd=folder_fd, follow_symlinks=False)
        if stat.S_ISDIR(facts.st_mode):
            # Before it is opened: its owner may have closed it.
            os.chmod(name, 0o700, dir_fd=folder_fd)

    if root:
        os.chown(path, uid, gid, follow_symlinks=False)
    path.chmod(0o700)
    return _visit_below(path, take)
