"""Frames between the judge and a worker, on one stream socket.

Judge to worker: a fixed header and a JSON payload of bounded length (the judge is trusted).
Worker to judge: always the same 24 bytes, so that there is nothing to parse: magic, status, code, and the number that
the judge gave the request.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from enum import IntEnum
from typing import Any

_REQUEST = struct.Struct("<4sIQI")
_ANSWER = struct.Struct("<4sIQq")
_REQUEST_MAGIC = b"AKq1"
_ANSWER_MAGIC = b"AKa1"
ANSWER_BYTES = _ANSWER.size
MAX_PAYLOAD_BYTES = 1 << 20


class Command(IntEnum):
    """What the judge asks of a worker."""

    ATTACH = 1
    LOAD = 2
    PREPARE = 3
    CALL = 4
    CAPTURE = 5
    REPLAY = 6
    PLAIN = 7
    ECHO = 8
    EXIT = 9
    WAKE = 10
    CHAIN = 11


class Status(IntEnum):
    """What a worker may answer."""

    DONE = 0
    LOAD_FAILED = 1
    ENTRY_NOT_FOUND = 2
    RETURNED_ERROR = 3
    RAISED = 4
    DEVICE_ERROR = 5
    NOT_CAPTURABLE = 6
    NOT_HERE = 7


class WireError(Exception):
    """The peer broke the protocol."""


class PeerGoneError(Exception):
    """The peer closed the connection."""


def send_request(sock: socket.socket, command: Command, number: int, payload: dict[str, Any] | None = None) -> None:
    """Send one request; ``number`` comes back with the answer."""
    body = b"" if payload is None else json.dumps(payload, allow_nan=False).encode()
    if len(body) > MAX_PAYLOAD_BYTES:
        raise WireError(f"payload of {len(body)} bytes is too long")
    sock.sendall(_REQUEST.pack(_REQUEST_MAGIC, command, number, len(body)) + body)


def receive_request(sock: socket.socket, awake_seconds: float = 0.0) -> tuple[Command, int, dict[str, Any]]:
    """Read one request.

    Args:
        sock: The connection.
        awake_seconds: How long to wait for it without sleeping.

    Raises:
        PeerGoneError: The judge is gone.
    """
    header = receive_exactly(sock, _REQUEST.size, awake_seconds=awake_seconds)
    magic, command, number, length = _REQUEST.unpack(header)
    if magic != _REQUEST_MAGIC or length > MAX_PAYLOAD_BYTES:
        raise WireError("not a request")
    body = receive_exactly(sock, length) if length else b"{}"
    return Command(command), number, json.loads(body)


def send_answer(sock: socket.socket, status: Status, number: int, code: int = 0) -> None:
    """Answer one request."""
    sock.sendall(_ANSWER.pack(_ANSWER_MAGIC, status, number, code))


def parse_answer(data: bytes, number: int) -> tuple[Status, int]:
    """Read the fixed answer.

    Raises:
        WireError: It is not an answer to the request ``number``.
    """
    magic, status, echoed, code = _ANSWER.unpack(data)
    if magic != _ANSWER_MAGIC or status not in Status._value2member_map_:
        raise WireError("the answer is malformed")
    if echoed != number:
        raise WireError("the answer belongs to another request")
    return Status(status), code


def receive_exactly(
    sock: socket.socket, count: int, timeout_seconds: float | None = None, awake_seconds: float = 0.0
) -> bytes:
    """Read ``count`` bytes.

    Args:
        sock: The connection.
        count: How many.
        timeout_seconds: Time for all of them, in however many pieces they come; None for any time.
        awake_seconds: How long to wait without sleeping: a processor that slept takes up to 0.5 ms to wake up, and
            where a clock is running that would be measured.

    Raises:
        PeerGoneError: The connection ended before.
        TimeoutError: The time is over.
    """
    data = bytearray()
    started = time.monotonic()
    while len(data) < count:
        waited = time.monotonic() - started
        left = None if timeout_seconds is None else timeout_seconds - waited
        if left is not None and left <= 0:
            raise TimeoutError
        sock.settimeout(0.0 if waited < awake_seconds else left)
        try:
            piece = sock.recv(count - len(data))
        except BlockingIOError:
            continue
        except ConnectionError:
            raise PeerGoneError from None
        if not piece:
            raise PeerGoneError
        data += piece
    return bytes(data)
