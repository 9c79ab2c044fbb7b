"""A small HTTP client for a unix socket, as tests need it: ordinary requests, and bytes of any kind."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 20.0


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("gateway", timeout=SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = connect(self._path)


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        status: HTTP status.
        headers: Names in lower case.
        body: All of it.
        whole: Whether it was not cut short.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool

    @property
    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.body)

    @property
    def message(self) -> str:
        """The message of an error, which both styles have at the same place."""
        return str(self.json["error"]["message"])


def connect(path: Path) -> socket.socket:
    """Connect to a unix socket."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(SECONDS)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def ask(path: Path, method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
    """Send one request; a body that is not bytes is sent as JSON."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection = _Connection(path)
    try:
        connection.request(method, target, data, {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        try:
            content, whole = response.read(), True
        except http.client.IncompleteRead as error:
            content, whole = error.partial, False
        except ConnectionError:
            content, whole = b"", False
        found = {name.lower(): value for name, value in response.getheaders()}
        response.close()
    finally:
        connection.close()
    return Answer(response.status, found, content, whole)


def exchange(path: Path, data: bytes) -> bytes:
    """Send bytes as they are, and read until the other side closes."""
    with connect(path) as connection:
        received = b""
        with suppress(ConnectionError):
            connection.sendall(data)
            while piece := connection.recv(65536):
                received += piece
    return received
