"""Hard limits on memory and processes through control groups, where this machine lets us make some (version 2).

A group for each process of a plan is made beside the caller's own group. That works for root on a plain host, and for a
user under `systemd-run --user --scope`. Elsewhere the launcher's polling is all there is.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from akarena.sandbox.base import Limits

_NEEDED = {"memory", "pids"}
_OPENERS_RIGHTS = (5, 17)
"""Since then the kernel checks who opened `cgroup.procs`, not who writes: the launcher has another user than root."""
_BWRAP_TASKS = 1
_REMOVE_SECONDS = 5.0


def _kernel() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def find_base(proc: Path = Path("/proc/self")) -> Path | None:
    """Find the folder in which groups can be made: the parent of the caller's own group, or None."""
    try:
        lines = (proc / "cgroup").read_text().splitlines()
        own = next(line.removeprefix("0::") for line in lines if line.startswith("0::"))
        mounts = [line.split() for line in (proc / "mountinfo").read_text().splitlines() if " - cgroup2 " in line]
        root, point = mounts[0][3], mounts[0][4]
        base = Path(point) / Path(own).parent.relative_to(root)
        enabled = set((base / "cgroup.subtree_control").read_text().split())
    except (OSError, StopIteration, IndexError, ValueError):
        return None
    writable = os.access(base, os.W_OK) and os.access(base / "cgroup.procs", os.W_OK)
    return base if writable and enabled >= _NEEDED and _kernel() >= _OPENERS_RIGHTS else None


@dataclass
class Group:
    """One made group.

    Attributes:
        procs_fd: Open `cgroup.procs`; a written process number joins.
        events_fd: Open `memory.events`.
    """

    folder: Path
    procs_fd: int
    events_fd: int


@dataclass
class Groups:
    """The groups of one plan; `remove` them when everything is dead."""

    base: Path
    made: list[Group] = field(default_factory=list)

    def make(self, limits: Limits) -> Group:
        """Make a group with the given limits; raises OSError where the kernel refuses."""
        folder = self.base / f"akarena-{secrets.token_hex(8)}"
        folder.mkdir()
        try:
            (folder / "memory.max").write_text(str(limits.memory_bytes))
            (folder / "pids.max").write_text(str(limits.processes + _BWRAP_TASKS))
            (folder / "memory.oom.group").write_text("1")
            with suppress(FileNotFoundError):  # There is none without swap accounting.
                (folder / "memory.swap.max").write_text("0")
            procs = os.open(folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
            events = os.open(folder / "memory.events", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            folder.rmdir()
            raise
        group = Group(folder, procs, events)
        self.made.append(group)
        return group

    def close(self) -> None:
        """Close the descriptors, once they are inherited."""
        for group in self.made:
            for fd in (group.procs_fd, group.events_fd):
                with suppress(OSError):
                    os.close(fd)
            group.procs_fd = group.events_fd = -1

    def remove(self) -> None:
        """Remove the groups; the kernel may need a moment after the last death."""
        self.close()
        end = time.monotonic() + _REMOVE_SECONDS
        for group in self.made:
            while group.folder.exists():
                try:
                    group.folder.rmdir()
                except OSError:
                    if time.monotonic() > end:
                        break
                    time.sleep(0.01)
