"""Measure what process trees use, from /proc of the launcher's pid namespace. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = "/proc"


@dataclass
class Usage:
    """What one tree uses at one moment.

    Attributes:
        memory_bytes: Anonymous memory, and the larger of mapped shared memory and memfd contents.
        tasks: Processes and threads.
    """

    memory_bytes: int = 0
    tasks: int = 0


@dataclass
class _Entry:
    parent: int
    anonymous_bytes: int
    shared_bytes: int
    tasks: int


def _read_entry(status: bytes) -> _Entry:
    fields: dict[bytes, int] = {}
    for line in status.splitlines():
        key, _, value = line.partition(b":")
        if key in (b"PPid", b"RssAnon", b"RssShmem", b"Threads"):
            fields[key] = int(value.split()[0])
    return _Entry(
        parent=fields.get(b"PPid", 0),
        anonymous_bytes=fields.get(b"RssAnon", 0) * 1024,
        shared_bytes=fields.get(b"RssShmem", 0) * 1024,
        tasks=fields.get(b"Threads", 1),
    )


def _read_all(proc: str) -> dict[int, _Entry]:
    entries: dict[int, _Entry] = {}
    for folder in Path(proc).iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # It ended since the listing.
                entries[int(folder.name)] = _read_entry((folder / "status").read_bytes())
    return entries


def _memfd_blocks(proc: str, pid: int) -> dict[tuple[int, int], int]:
    """Find the sizes of the memfds that a process holds: their contents need not be mapped anywhere."""
    found: dict[tuple[int, int], int] = {}
    with suppress(OSError):  # It ended, or its descriptors can't be listed.
        for path in Path(proc, str(pid), "fd").iterdir():
            with suppress(FileNotFoundError):  # Closed since the listing.
                if str(path.readlink()).startswith("/memfd:"):
                    facts = path.stat()
                    found[facts.st_dev, facts.st_ino] = facts.st_blocks * 512
    return found


def _root_of(pid: int, entries: Mapping[int, _Entry], roots: frozenset[int]) -> int | None:
    for _ in range(len(entries) + 1):
        if pid in roots:
            return pid
        if pid not in entries:
            return None
        pid = entries[pid].parent
    return None


def measure(roots: Iterable[int], *, memfds: bool, proc: str = _PROC) -> dict[int, Usage]:
    """Measure every tree.

    Args:
        roots: The first process of each tree: the init of a pid namespace, so that no descendant can leave the tree.
        memfds: Look at open memfds too, which costs more.
        proc: Where procfs is mounted.

    Returns:
        Usage by root. A tree that is gone has none.
    """
    wanted = frozenset(roots)
    entries = _read_all(proc)
    usage = {root: Usage() for root in wanted}
    shared = dict.fromkeys(wanted, 0)
    held: dict[int, dict[tuple[int, int], int]] = {root: {} for root in wanted}
    for pid, entry in entries.items():
        root = _root_of(pid, entries, wanted)
        if root is None:
            continue
        usage[root].memory_bytes += entry.anonymous_bytes
        usage[root].tasks += entry.tasks
        shared[root] += entry.shared_bytes
        if memfds:
            held[root].update(_memfd_blocks(proc, pid))
    for root in wanted:
        usage[root].memory_bytes += max(shared[root], sum(held[root].values()))
    return usage
