"""One search of everything that can be read for the planted secrets: files, and all that procfs tells of processes."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress

from .kit import Plan

_READ_BYTES = 1 << 22
_PIECE_BYTES = 1 << 20
_OVERLAP_BYTES = 256
_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/proc", "/sys")
_PARTS = ("environ", "cmdline", "maps", "mountinfo", "stack", "auxv", "status")
_MAX_PLACES = 20


def sweep(plan: Plan) -> None:
    """Fill `plan.swept`."""
    patterns = {kind: rb"%s-[0-9a-f]{16}" % mark.encode() for kind, mark in plan.marks.items()}
    if plan.seed:
        patterns["seed"] = rb"%s[0-9a-f]{16}" % plan.seed.encode()
    for number, case in enumerate(plan.unseen):
        pairs = [rb"%s\W{1,6}%s\b" % (name.encode(), re.escape(str(value)).encode()) for name, value in case]
        patterns[f"unseen{number}"] = rb"\W{1,8}".join(pairs)
    compiled = {kind: re.compile(pattern) for kind, pattern in patterns.items()}
    for place, data in _texts(plan.roots):
        for kind, pattern in compiled.items():
            places = plan.swept.setdefault("unseen" if kind.startswith("unseen") else kind, [])
            if len(places) < _MAX_PLACES and pattern.search(data):
                places.append(place)


def _texts(roots: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    yield "the environment", b"\n".join(name + b"=" + value for name, value in os.environb.items())
    for root in roots or ("/",):
        yield from _files(root)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for part in _PARTS:
            yield from _file(f"/proc/{pid}/{part}")
        if not roots:
            yield from _memory(pid)


def _files(root: str) -> Iterator[tuple[str, bytes]]:
    skipped = {*_SYSTEM, *(os.path.realpath(prefix) for prefix in (sys.prefix, sys.base_prefix))}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in skipped]
        for name in names:
            yield from _file(os.path.join(folder, name))


def _file(path: str) -> Iterator[tuple[str, bytes]]:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                yield path, path.encode(errors="replace") + b"\n" + file.read(_READ_BYTES)


def _memory(pid: str) -> Iterator[tuple[str, bytes]]:
    """Read what a process has in memory: bubblewrap's init and the forwarder have the same user as the agent."""
    if int(pid) == os.getpid():
        return
    with suppress(OSError), open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            if "r" not in rights:
                continue
            at, end = (int(number, 16) for number in span.split("-"))
            while at < end:
                with suppress(OSError, ValueError):
                    memory.seek(at)
                    yield f"the memory of process {pid}", memory.read(min(_PIECE_BYTES + _OVERLAP_BYTES, end - at))
                at += _PIECE_BYTES
