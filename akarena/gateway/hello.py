"""The first message of a TLS connection: which server it asks for, in the open."""

from __future__ import annotations

import asyncio

from akarena.gateway.refusal import refused
from akarena.records.audit import RefusalReason

_MAX_HELLO_BYTES = 16 << 10
_MAX_RECORDS = 8
_HANDSHAKE, _CLIENT_HELLO = 22, 1
_SERVER_NAME, _ENCRYPTED_HELLO = 0, 0xFE0D


class _Reader:
    """Takes pieces off a message; raises where it is too short."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def empty(self) -> bool:
        return self._at == len(self._data)

    def take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if len(piece) != size:
            raise _refusal("is cut short")
        self._at += size
        return piece

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> _Reader:
        """Take a piece that starts with its own length, of ``size`` bytes."""
        return _Reader(self.take(self.number(size)))


async def read_hello(reader: asyncio.StreamReader) -> tuple[bytes, str]:
    """Read the whole first message, which may come in several records.

    Returns:
        The bytes as they came, and the name of the server that they ask for.

    Raises:
        Denial: It is no ClientHello that names one server in the open.
        IncompleteReadError: The agent stopped early.
    """
    raw = message = b""
    for _ in range(_MAX_RECORDS):
        head = await reader.readexactly(5)
        size = int.from_bytes(head[3:], "big")
        if head[0] != _HANDSHAKE or head[1] != 3 or not 0 < size <= _MAX_HELLO_BYTES:
            raise _refusal("is no TLS handshake")
        body = await reader.readexactly(size)
        raw, message = raw + head + body, message + body
        if len(message) > _MAX_HELLO_BYTES:
            break
        if len(message) >= 4 and len(message) == 4 + int.from_bytes(message[1:4], "big"):
            return raw, server_name(message)
    raise _refusal("is too long")


def server_name(message: bytes) -> str:
    """Read the server's name from a ClientHello.

    Args:
        message: The handshake message with its header of four bytes.

    Raises:
        Denial: It is something else, names no server or several, or hides a second hello.
    """
    reader = _Reader(message)
    if reader.number(1) != _CLIENT_HELLO:
        raise _refusal("is no ClientHello")
    hello = reader.vector(3)
    if not reader.empty:
        raise _refusal("has bytes behind it")
    hello.take(2 + 32)
    hello.vector(1)
    hello.vector(2)
    hello.vector(1)
    extensions = hello.vector(2)
    names: list[bytes] = []
    seen: set[int] = set()
    while not extensions.empty:
        kind, data = extensions.number(2), extensions.vector(2)
        if kind in seen:
            raise _refusal("holds an extension twice")
        seen.add(kind)
        if kind == _ENCRYPTED_HELLO:
            raise _refusal("hides a second server name (encrypted ClientHello)")
        if kind == _SERVER_NAME:
            entries = data.vector(2)
            while not entries.empty:
                if entries.number(1) != 0:
                    raise _refusal("holds a name of an unknown kind")
                names.append(entries.vector(2).rest())
    if len(names) != 1 or not names[0].isascii():
        raise _refusal("does not name one server")
    return names[0].decode("ascii").lower()


def _refusal(what: str) -> Exception:
    return refused(RefusalReason.SERVER_NAME, f"the first message in the tunnel {what}")
