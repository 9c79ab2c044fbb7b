"""Hands its program and descriptors to a new container, over a socket that takes one connection and is gone then."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from akarena.errors import InfrastructureError
from akarena.sandbox.base import HOME, Command
from akarena.sandbox.docker import connect
from akarena.sandbox.inner import accounts

INSIDE = "/akarena-start"
"""Where the folder lies in the container, read-only."""
_SOCKET, _STUB = "socket", "connect.py"
_START_SECONDS = 60.0
_LOOK_SECONDS = 0.1
_CREDENTIALS = struct.Struct("=iII")


class Handoff:
    """The folder of one container: the stub, the socket and small tables of accounts.

    Attributes:
        folder: On the host.
        tables: The file behind each path in the container.
    """

    def __init__(self, folder: Path, uid: int) -> None:
        """Make it.

        Args:
            folder: To be made; nobody else may enter its parent.
            uid: The user in the container.
        """
        self.folder = folder
        self._uid = uid
        folder.mkdir()
        folder.chmod(0o755)
        shutil.copyfile(connect.__file__, folder / _STUB)
        self.tables = {path: folder / path.rpartition("/")[2] for path in (*accounts(uid), "/etc/resolv.conf")}
        for path, file in self.tables.items():
            file.write_text(accounts(uid).get(path, ""))
        for file in (folder / _STUB, *self.tables.values()):
            file.chmod(0o644)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # A path through the folder's descriptor has room in the 108 bytes of an address, whatever TMPDIR is.
        fd = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        try:
            self._listener.bind(f"/proc/self/fd/{fd}/{_SOCKET}")
        finally:
            os.close(fd)
        (folder / _SOCKET).chmod(0o666)
        self._listener.listen(1)

    def argv(self, python: str) -> list[str]:
        """Give the first program of the container."""
        return [python, "-I", "-S", f"{INSIDE}/{_STUB}", f"{INSIDE}/{_SOCKET}"]

    def give(self, command: Command, fds: Sequence[int], is_dead: Callable[[], bool]) -> str | None:
        """Wait for the stub and give it what it needs; the socket is gone when this returns.

        Args:
            command: What it shall execute.
            fds: The descriptors to hand over.
            is_dead: Whether the container has ended, so that nobody will come.

        Returns:
            None once the program runs, else why it could not be executed.

        Raises:
            InfrastructureError: The stub does not come, or is not who it should be.
        """
        end = time.monotonic() + _START_SECONDS
        try:
            while not select.select([self._listener], [], [], _LOOK_SECONDS)[0]:
                if is_dead() or time.monotonic() > end:
                    raise InfrastructureError("the container's first program did not start")
            channel, _ = self._listener.accept()
        finally:
            self.close()
        with channel:
            channel.settimeout(_START_SECONDS)
            self._check_peer(channel)
            try:
                return self._talk(channel, command, fds)
            except OSError as error:
                raise InfrastructureError(f"the container's first program failed: {error}") from error

    def _check_peer(self, channel: socket.socket) -> None:
        raw = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, uid, _ = _CREDENTIALS.unpack(raw)
        if uid != self._uid:
            raise InfrastructureError(f"the container runs as user {uid} instead of {self._uid}")

    def _talk(self, channel: socket.socket, command: Command, fds: Sequence[int]) -> str | None:
        orders = {
            "argv": command.argv,
            "directory": command.working_directory,
            "environment": _environment(command.environment),
        }
        data = json.dumps(orders).encode()
        socket.send_fds(channel, [connect.LENGTH.pack(len(data))], list(fds))
        channel.sendall(data)
        said = b""
        while piece := channel.recv(4096):
            said += piece
        return said.decode(errors="replace") or None

    def close(self) -> None:
        """Let nobody connect any more."""
        self._listener.close()
        (self.folder / _SOCKET).unlink(missing_ok=True)
        (self.folder / _STUB).unlink(missing_ok=True)


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    return {"HOME": HOME, **given}
