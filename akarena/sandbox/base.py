"""What a sandbox is asked to run, what it answers, and the protocol that every sandbox implements.

Standard library only: the launcher reads this module inside the sandbox.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Protocol

HOME = "/home/user"
"""The home folder of every sandboxed process: an empty tmpfs. HOME is set to it unless the command sets another."""

MAX_OPEN_FILES = 4096
JUDGE_OPEN_FILES = 4 * MAX_OPEN_FILES
"""Descriptors that lie unread in sockets are counted for all processes of a user together, and a sender is refused when
that count exceeds its own limit. So hostile processes can use up what they may have, and a judge still goes on."""


def _check_target(target: str) -> None:
    path = PurePosixPath(target)
    if not path.is_absolute() or ".." in path.parts or str(path) != target or target in {"/", "/proc", "/dev"}:
        raise ValueError(f"mount target {target!r} is not a plain absolute path below the root")


@dataclass(frozen=True)
class Mount:
    """One host file, folder, socket or device that a process sees.

    Attributes:
        source: The host path, followed when it is a symbolic link. It must not be reached through a folder that hostile
            code can write: the path is resolved with the caller's rights.
        target: The absolute path inside.
        writable: Writes go to the host; see `akarena.sandbox.ownership.prepare_writable`.
        device: A device node that may be opened.
    """

    source: Path
    target: str
    writable: bool = False
    device: bool = False

    def __post_init__(self) -> None:
        _check_target(self.target)


@dataclass(frozen=True)
class ScratchMount:
    """A folder on a tmpfs that lives as long as one judgement, shared by the processes that name it.

    Its size is the largest `tmp_bytes` among the commands that mount it writable.
    """

    name: str
    target: str
    writable: bool = False

    def __post_init__(self) -> None:
        _check_target(self.target)
        if not self.name.replace("_", "").replace("-", "").isalnum():
            raise ValueError(f"scratch name {self.name!r} is not made of letters, digits, '-' and '_'")


@dataclass(frozen=True)
class Limits:
    """What one process tree may use. How strictly each is kept is said by `Sandbox.assurance`.

    Attributes:
        wall_seconds: Elapsed time from start to end.
        memory_bytes: Memory of the whole tree; files on tmpfs are counted by `tmp_bytes` instead.
        processes: Processes and threads of the whole tree.
        output_bytes: Kept of each of stdout and stderr: the head and the tail. More is dropped and counted.
        file_bytes: The largest single file, a memfd included.
        tmp_bytes: Size of each of the tmpfs at /tmp, /dev/shm and the home folder.
    """

    wall_seconds: float
    memory_bytes: int
    processes: int
    output_bytes: int
    file_bytes: int
    tmp_bytes: int


class Role(StrEnum):
    """What a process is for: where sandboxes have images, it decides which one the process runs in."""

    JUDGE = "judge"
    WORKER = "worker"
    BUILD = "build"
    AGENT = "agent"


@dataclass(frozen=True)
class Command:
    """One process to run: its arguments, its whole environment and all that it sees of the file system.

    The process gets exactly `environment`, plus HOME where it is missing and PWD. Its standard input is empty. Where a
    sandbox has images, the process sees that of its role too, read-only.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    limits: Limits
    working_directory: str = "/"
    scratch: tuple[ScratchMount, ...] = ()
    role: Role = Role.JUDGE

    def __post_init__(self) -> None:
        if not self.argv:
            raise ValueError("a command needs at least one argument")
        strings = [*self.argv, *self.environment, *self.environment.values(), self.working_directory]
        if any("\0" in text for text in strings) or any("=" in name or not name for name in self.environment):
            raise ValueError("a command holds a NUL character or a malformed name of a variable")


class End(StrEnum):
    """Why a process tree ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    TOO_MANY_PROCESSES = "too_many_processes"
    DISK_FULL = "disk_full"
    STOPPED = "stopped"
    FAILED_TO_START = "failed_to_start"


@dataclass(frozen=True)
class Result:
    """How a process tree ended. Nothing of it is still running.

    Attributes:
        end: The reason.
        exit_code: Set only when `end` is EXITED.
        signal: Set only when a signal ended the process. A program that exits with 128 + n by itself looks the same.
        stdout: Raw bytes: all of them, or head, a line that counts what was dropped, and tail.
        stderr: Likewise.
        dropped_bytes: Bytes of both streams that were not kept.
        wall_seconds: Elapsed time from start to end.
        detail: One line for people; may be empty.
    """

    end: End
    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    dropped_bytes: int
    wall_seconds: float
    detail: str


class Assurance(StrEnum):
    """How strictly a limit is kept: by the kernel, by a watcher that looks now and then, or not at all."""

    HARD = "hard"
    POLLED = "polled"
    ABSENT = "absent"


@dataclass(frozen=True)
class AssuranceLine:
    """One limit of a sandbox, how strictly it is kept and by what."""

    limit: str
    strength: Assurance
    how: str


class Sandbox(Protocol):
    """Runs hostile programs. An implementation never falls back to weaker isolation: it raises instead."""

    @property
    def name(self) -> str:
        """The short name in the registry."""
        ...

    def assurance(self) -> tuple[AssuranceLine, ...]:
        """Say for each limit how strictly it is kept on this machine."""
        ...

    def run(self, command: Command, *, cancel: threading.Event | None = None) -> Result:
        """Run one process tree to its end; all of it is dead when this returns.

        Args:
            command: What to run.
            cancel: When it is set, the tree is killed and the result says STOPPED.

        Raises:
            InfrastructureError: The sandbox itself could not be set up.
        """
        ...

    def judge(self, processes: Mapping[str, Command], *, main: str, cancel: threading.Event | None = None) -> Result:
        """Start `main`, which starts the other processes through `akarena.sandbox.control.Control`.

        All processes share one user namespace and nothing else but the scratch folders that they name. When `main` ends
        the others are killed, and the scratch folders are gone when this returns.

        Args:
            processes: Every process of the judgement by name.
            main: The name of the first one; it gets the control socket as file descriptor 3.
            cancel: When it is set, everything is killed and the result says STOPPED.

        Returns:
            The result of `main`.

        Raises:
            InfrastructureError: The sandbox itself could not be set up.
        """
        ...
