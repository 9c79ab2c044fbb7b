"""Temporary folders that a later command removes, should their owner be killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_PREFIX = "akarena-"
_LOCK = "owner.lock"


class OwnedFolder(tempfile.TemporaryDirectory[str]):
    """A temporary folder, locked as long as its owner lives: the kernel lets go of the lock when the owner dies.

    Args:
        purpose: Part of its name.
    """

    def __init__(self, purpose: str) -> None:
        super().__init__(prefix=f"{_PREFIX}{purpose}-")
        self._lock = os.open(Path(self.name) / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def cleanup(self) -> None:
        """Remove it."""
        super().cleanup()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def sweep(prepare: Callable[[Path], None]) -> int:
    """Remove the folders of this user whose owners were killed; returns how many.

    Args:
        prepare: Makes a folder that hostile programs could write removable.
    """
    removed = 0
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if _is_abandoned(path):
            with suppress(OSError):
                prepare(path)
                shutil.rmtree(path)
                removed += 1
    return removed


def _is_abandoned(path: Path) -> bool:
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            return False
        lock = os.open(_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        # Not locked yet, or none of ours.
        return False
    finally:
        os.close(folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
