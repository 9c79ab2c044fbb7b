"""The judge's side of the control socket: start, stop and await the other processes of a judgement.

Standard library only: the judge imports it inside the sandbox.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from akarena.sandbox.base import Result
from akarena.sandbox.plan import make_result

Exit = Result
"""How a spawned process ended; the same record as the result of a sandbox."""

_MAX_REPLY_BYTES = 64 << 10
MAX_EXTRA_FDS = 16


class ControlError(Exception):
    """The launcher refused a request, or is gone."""


def _read_fd(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        file.seek(0)
        return file.read()


class Control:
    """The launcher, as seen by the main process. One request at a time; other threads wait their turn."""

    def __init__(self, fd: int = 3) -> None:
        """Take over the control socket.

        Args:
            fd: Its file descriptor, which becomes close-on-exec.
        """
        os.set_inheritable(fd, False)
        self._socket = socket.socket(fileno=fd)
        self._lock = threading.Lock()

    def _ask(self, request: dict[str, Any], fds: Sequence[int] = ()) -> tuple[dict[str, Any], list[int]]:
        with self._lock:
            try:
                socket.send_fds(self._socket, [json.dumps(request).encode()], list(fds))
                data, received, _, _ = socket.recv_fds(self._socket, _MAX_REPLY_BYTES, 4, socket.MSG_CMSG_CLOEXEC)
            except OSError as error:
                raise ControlError(f"the launcher does not answer: {error}") from error
        reply = json.loads(data) if data else {"error": "the launcher is gone"}
        if "error" in reply:
            for fd in received:
                os.close(fd)
            raise ControlError(reply["error"])
        return reply, received

    def _ask_for_exit(self, request: dict[str, Any]) -> Exit | None:
        reply, fds = self._ask(request)
        if "exit" not in reply:
            return None
        stdout, stderr = fds
        return make_result(reply["exit"], _read_fd(stdout), _read_fd(stderr))

    def spawn(self, name: str, extra_fds: Sequence[int] = ()) -> socket.socket:
        """Start a process of the plan. A name can be started again once its process has ended.

        Args:
            name: Which one.
            extra_fds: File descriptors that the process gets as 4, 5 and so on, at most 16.

        Returns:
            One end of a stream socketpair; the process has the other end as file descriptor 3.

        Raises:
            ControlError: The name is unknown or still running, or the launcher is gone. A program that can't be
                executed is no error here: `wait` says FAILED_TO_START.
        """
        _, fds = self._ask({"do": "spawn", "name": name}, extra_fds)
        return socket.socket(fileno=fds[0])

    def kill(self, name: str) -> Exit:
        """Kill a process with its whole tree, and wait until all of it is dead.

        Returns:
            How it ended: STOPPED, or its own end where it had ended before.

        Raises:
            ControlError: The name was never started, or the launcher is gone.
        """
        ended = self._ask_for_exit({"do": "kill", "name": name})
        if ended is None:
            raise ControlError(f"process {name!r} did not die")
        return ended

    def wait(self, name: str, timeout_seconds: float) -> Exit | None:
        """Wait for the end of a process.

        Args:
            name: Which one.
            timeout_seconds: How long at most; 0 only looks.

        Returns:
            How it ended, or None while it runs. May be asked again: the answer is kept until the next spawn.

        Raises:
            ControlError: The name was never started, or the launcher is gone.
        """
        return self._ask_for_exit({"do": "wait", "name": name, "timeout_seconds": timeout_seconds})

    def close(self) -> None:
        """Close the control socket. The spawned processes live on until the main process ends."""
        with suppress(OSError):
            self._socket.close()
