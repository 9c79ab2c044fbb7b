"""The bubblewrap arguments of one sandboxed process, and the file descriptors behind them. Standard library only."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from akarena.sandbox.base import HOME
from akarena.sandbox.plan import Process

# Private to launcher and bubblewrap, above anything that a process is given.
_FIRST_HIGH_FD = 200
_AGENT_ID = 1000
_LOW_SIZE_BYTES = 1 << 20


def memory_file(content: bytes) -> int:
    """Put bytes into a memfd, ready to be read from its start."""
    fd = os.memfd_create("akarena", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


@dataclass
class Descriptors:
    """Maps file descriptors of the launcher to the numbers that a new process has."""

    _pairs: list[tuple[int, int]] = field(default_factory=list)
    _next: int = _FIRST_HIGH_FD

    def give(self, fd: int, number: int) -> None:
        """Let the new process have `fd` as `number`."""
        self._pairs.append((fd, number))

    def give_high(self, fd: int) -> str:
        """Let the new process have `fd` as a high number of our choice, and say which."""
        number, self._next = self._next, self._next + 1
        self.give(fd, number)
        return str(number)

    def file_actions(self) -> list[tuple[int, int, int]]:
        """Give the actions for `os.posix_spawn`. Every other descriptor of the launcher is close-on-exec."""
        clash = {fd for fd, _ in self._pairs} & {number for _, number in self._pairs}
        if clash:
            raise OSError(f"file descriptors {sorted(clash)} are both source and target")
        return [(os.POSIX_SPAWN_DUP2, fd, number) for fd, number in self._pairs]


def lift(fd: int) -> int:
    """Move a descriptor far above every number that a process is given, so that no duplication overwrites another."""
    lifted = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 2 * _FIRST_HIGH_FD)
    os.close(fd)
    return lifted


def accounts(uid: int) -> dict[str, str]:
    """Give the tables, by path, in which programs look up their own user and the name localhost; some fail without."""
    return {
        "/etc/passwd": f"user:x:{uid}:{uid}::{HOME}:/bin/sh\n",
        "/etc/group": f"user:x:{uid}:\n",
        "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    }


def covers(target: str, path: str) -> bool:
    """Say whether a mount at `target` hides `path`."""
    return path == target or path.startswith(target + "/")


def arguments(process: Process, *, own_user: bool) -> tuple[list[str], dict[str, bytes]]:
    """Build the options for one process, without those that name file descriptors.

    Args:
        process: What to run.
        own_user: Put it in a user namespace of its own, as an ordinary user. Otherwise it stays in the launcher's,
            where device memory can be shared, as a user 0 without any capability.

    Returns:
        The options, and the contents of the files that `--ro-bind-data` must bring, by target.
    """
    size = str(max(process.limits.tmp_bytes, _LOW_SIZE_BYTES))
    uid = _AGENT_ID if own_user else 0
    options = ["--unshare-user", "--uid", str(uid), "--gid", str(uid)] if own_user else []
    options += ["--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    options += ["--hostname", "sandbox", "--new-session", "--die-with-parent", "--cap-drop", "ALL", "--clearenv"]
    for name, value in {"HOME": HOME, **process.environment}.items():
        options += ["--setenv", name, value]
    options += ["--proc", "/proc", "--dev", "/dev"]
    options += ["--perms", "1777", "--size", size, "--tmpfs", "/dev/shm"]
    options += ["--perms", "1777", "--size", size, "--tmpfs", "/tmp"]
    options += ["--perms", "0700", "--size", size, "--tmpfs", HOME]
    for mount in process.mounts:
        kind = "--dev-bind" if mount.device else "--bind" if mount.writable else "--ro-bind"
        options += [kind, mount.source, mount.target]
    files = {
        path: text.encode()
        for path, text in accounts(uid).items()
        if not any(covers(mount.target, path) for mount in process.mounts)
    }
    return options, files


def closing_options(process: Process) -> list[str]:
    """Give the options that come after every mount."""
    return ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", process.working_directory]


def encode(options: Iterable[str]) -> bytes:
    """Encode options for `--args`, which keeps them out of the command line that the process can read."""
    return b"".join(os.fsencode(option) + b"\0" for option in options)
