"""Watches how much an agent puts into its workspace, which is a host folder without a quota."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_MAX_BYTES = 2 << 30
_MAX_FILES = 50_000
_MAX_DEPTH = 90
_RESERVE_BYTES = 4 << 30
_PERIOD_SECONDS = 0.1
_LOOK_SECONDS = 1.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHANGED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""What opening a folder gives that is gone or something else since the listing."""


class WorkspaceWatch:
    """Sets ``cancel`` when the workspace grows over its limits, or the disk that holds it is nearly full.

    Polled: a fast writer can overshoot for a second. Open files without a name are not seen in the workspace; the look
    at the disk's free space is what stops those.

    Args:
        workspace: The folder.
        cancel: Stops the agent.
    """

    def __init__(self, workspace: Path, cancel: threading.Event) -> None:
        self._workspace = workspace
        self._cancel = cancel
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._reserve_bytes = _reserve(shutil.disk_usage(workspace).free)
        self.fault = ""

    def __enter__(self) -> WorkspaceWatch:
        """Start watching."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching."""
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        next_look = time.monotonic() + _LOOK_SECONDS
        while not self._done.wait(_PERIOD_SECONDS):
            fault = ""
            free = shutil.disk_usage(self._workspace).free
            if free < self._reserve_bytes:
                fault = f"the disk of the workspace has {free >> 20} MiB left"
            elif time.monotonic() >= next_look:
                began = time.monotonic()
                fault = _fault(measure(self._workspace))
                # A look that takes long must not take the whole core.
                next_look = time.monotonic() + max(_LOOK_SECONDS, 5 * (time.monotonic() - began))
            if fault:
                self.fault = fault
                self._cancel.set()
                return


def _reserve(free_bytes: int) -> int:
    """Say how much of a disk is left to everything else: half, where little is free from the start."""
    return min(_RESERVE_BYTES, free_bytes // 2)


@dataclass
class Usage:
    """What lies in a folder.

    Attributes:
        size: Bytes on the disk.
        files: Files and folders.
        too_deep: Whether folders are nested deeper than is looked at.
        closed: Folders that can't be read, so that what is in them is not counted. Root can read all.
    """

    size: int = 0
    files: int = 0
    too_deep: bool = False
    closed: int = 0


def _fault(usage: Usage) -> str:
    if usage.size > _MAX_BYTES or usage.files > _MAX_FILES:
        return f"the workspace holds {usage.size >> 20} MiB in {usage.files} files, over its limits"
    if usage.too_deep:
        return f"the workspace holds folders nested deeper than {_MAX_DEPTH}"
    return f"the workspace holds {usage.closed} folders that can't be read" if usage.closed else ""


def measure(folder: Path) -> Usage:
    """Measure a folder in which hostile code is at work: from folder to folder, following no link, without paths.

    Counting ends shortly after the limit on files.
    """
    usage = Usage()
    fd = os.open(folder, _FOLDER)
    try:
        _add(fd, usage, _MAX_DEPTH)
    finally:
        os.close(fd)
    return usage


def _add(folder: int, usage: Usage, depth: int) -> None:
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if usage.files > _MAX_FILES:
                return
            usage.files += 1
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
                continue
            try:
                usage.size += entry.stat(follow_symlinks=False).st_blocks * 512
            except FileNotFoundError:
                continue
    if folders and depth == 0:
        usage.too_deep = True
        return
    for name in folders:
        try:
            inner = os.open(name, _FOLDER, dir_fd=folder)
        except PermissionError:
            usage.closed += 1
            continue
        except OSError as error:
            if error.errno not in _CHANGED:
                raise
            continue
        try:
            _add(inner, usage, depth - 1)
        finally:
            os.close(inner)
