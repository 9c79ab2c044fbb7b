"""Watches how much an agent puts into its workspace, which is a host folder without a quota."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_MAX_BYTES = 2 << 30
_MAX_FILES = 50_000
_PERIOD_SECONDS = 1.0


class WorkspaceWatch:
    """Sets ``cancel`` when the workspace grows over its limits. Polled: a fast writer can overshoot for a second.

    Args:
        workspace: The folder.
        cancel: Stops the agent.
    """

    def __init__(self, workspace: Path, cancel: threading.Event) -> None:
        self._workspace = workspace
        self._cancel = cancel
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
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
        while not self._done.wait(_PERIOD_SECONDS):
            size, count = _measure(self._workspace)
            if size > _MAX_BYTES or count > _MAX_FILES:
                self.fault = f"the workspace holds {size >> 20} MiB in {count} files, over its limits"
                self._cancel.set()
                return


def _measure(folder: Path) -> tuple[int, int]:
    size = count = 0
    waiting = [str(folder)]
    while waiting and count <= _MAX_FILES:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                count += 1
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
    return size, count
