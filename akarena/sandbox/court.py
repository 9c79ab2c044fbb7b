"""Serves the main process of a judgement: starts, kills and awaits the others. Standard library only.

What a process is, a namespace or a container, is the caller's business: see `Member`.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from akarena.sandbox.base import End, Result
from akarena.sandbox.inner import memory_file
from akarena.sandbox.plan import result_fields

DEATH_SECONDS = 15.0
"""How long a killed process may take to be gone."""
_MAX_REQUEST_BYTES = 1 << 16
_MAX_FDS = 16


class Member(Protocol):
    """A started process tree."""

    @property
    def result(self) -> Result | None:
        """How it ended; None while anything of it runs."""
        ...

    def kill(self, reason: End, detail: str = "") -> None:
        """Kill all of it; the end is seen in `result` later."""
        ...


@dataclass
class _Waiter:
    """The main process waits for the end of another one; at most one such request is open."""

    name: str
    deadline: float


class CourtRoom:
    """The processes of one judgement, and the control socket of its main process.

    The owner calls `serve` when `socket` is readable, and `answer` after every change.

    Attributes:
        socket: Our end of the control socket; None once the main process has closed its own.
    """

    def __init__(
        self,
        control: socket.socket,
        names: Collection[str],
        start: Callable[[str, Sequence[int]], Member],
    ) -> None:
        """Take over the control socket.

        Args:
            control: Our end of a socket pair of kind SOCK_SEQPACKET.
            names: What the main process may start.
            start: Starts one by name, with the given descriptors as 3, 4 and so on; it closes them in any case.
        """
        self.socket: socket.socket | None = control
        # Ours counts too when descriptors are handed on: see JUDGE_OPEN_FILES.
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._names = frozenset(names)
        self._start = start
        self._members: dict[str, Member] = {}
        self._waiter: _Waiter | None = None

    @property
    def deadline(self) -> float | None:
        """When `answer` must be called at the latest, on the monotonic clock."""
        return self._waiter.deadline if self._waiter else None

    def serve(self) -> None:
        """Take one request."""
        if self.socket is None:
            return
        fds: list[int] = []
        try:
            data, fds, _, _ = socket.recv_fds(self.socket, _MAX_REQUEST_BYTES, _MAX_FDS, socket.MSG_CMSG_CLOEXEC)
            if not data:
                self.close()
                return
            request = json.loads(data)
            name = str(request["name"])
            if request["do"] == "spawn":
                self._check_startable(name)
                given, fds = fds, []
                self._spawn(name, given)
            elif name not in self._members:
                raise ValueError(f"process {name!r} was not started")
            elif request["do"] == "kill":
                self._members[name].kill(End.STOPPED, "killed by the main process")
                self._waiter = _Waiter(name, time.monotonic() + DEATH_SECONDS)
            elif request["do"] == "wait":
                self._waiter = _Waiter(name, time.monotonic() + float(request["timeout_seconds"]))
            else:
                raise ValueError("the request is unknown")
        except ConnectionError:
            self.close()
        except (ValueError, KeyError, TypeError, OSError) as error:
            self._reply({"error": f"{type(error).__name__}: {error}"[:1000]}, [])
        finally:
            for fd in fds:
                os.close(fd)

    def _check_startable(self, name: str) -> None:
        if name not in self._names:
            raise ValueError(f"process {name!r} is not in the plan")
        if name in self._members and self._members[name].result is None:
            raise ValueError(f"process {name!r} is still running")

    def _spawn(self, name: str, fds: Sequence[int]) -> None:
        kept, given = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with kept:
            self._members[name] = self._start(name, [given.detach(), *fds])
            self._reply({}, [kept.fileno()])

    def answer(self) -> None:
        """Tell the main process of the end that it waits for, or that its time is up."""
        waiter = self._waiter
        if waiter is None:
            return
        result = self._members[waiter.name].result
        if result is not None:
            self._waiter = None
            outputs = [memory_file(result.stdout), memory_file(result.stderr)]
            self._reply({"exit": result_fields(result)}, outputs)
            for fd in outputs:
                os.close(fd)
        elif time.monotonic() >= waiter.deadline:
            self._waiter = None
            self._reply({}, [])

    def _reply(self, reply: dict[str, Any], fds: Sequence[int]) -> None:
        if self.socket:
            with suppress(OSError):  # A main process that does not read its answer harms only itself.
                socket.send_fds(self.socket, [json.dumps(reply).encode()], list(fds), socket.MSG_DONTWAIT)

    def close(self) -> None:
        """Hear the main process no more."""
        if self.socket:
            self.socket.close()
            self.socket = None
