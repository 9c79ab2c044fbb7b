"""Requests to the gateway, whole or as bytes."""

from __future__ import annotations

import json
import os
import re
import socket
import urllib.parse

_SECONDS = 15.0
STYLES = {"/v1/messages": "anthropic", "/v1/responses": "openai"}


def address() -> tuple[str, int] | None:
    """Return where the forwarder listens, or None."""
    url = urllib.parse.urlsplit(os.environ.get("AKARENA_SERVICE_URL", ""))
    return (url.hostname, url.port) if url.hostname and url.port else None


def exchange(data: bytes, *, seconds: float = _SECONDS, one: bool = False) -> bytes:
    """Send bytes as they are, and read to the end, or for a while, or just `one` answer."""
    where = address()
    assert where is not None
    received = b""
    with socket.create_connection(where, seconds) as stream:
        try:
            stream.sendall(data)
            while piece := stream.recv(65536):
                received += piece
                if one and _is_whole(received):
                    break
        except (TimeoutError, ConnectionError):
            pass
    return received


def _is_whole(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return length is not None and len(body) >= int(length[1])


def request(method: str, path: str, body: object = None, **headers: str) -> bytes:
    """Build a request that ends its connection."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    given = {"Host": "gateway", "Connection": "close", "Content-Type": "application/json", **headers}
    if data or method == "POST":
        given.setdefault("Content-Length", str(len(data)))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in given.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def ask(body: object, path: str = "/v1/messages", method: str = "POST", **headers: str) -> bytes:
    """Send one request and return the whole answer, head and body."""
    return exchange(request(method, path, body, **headers))


def talk(turn: int = 0, **fields: object) -> dict[str, object]:
    """Build a body that the stand-in answers with this turn of its script."""
    messages: list[object] = [{"role": "user", "content": "How?"}]
    for number in range(turn):
        call = {"type": "tool_use", "id": f"call{number}", "name": "look", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"call{number}", "content": "seen"}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return {"model": "standin-model", "max_tokens": 16, "messages": messages, **fields}


def status(answer: bytes) -> int:
    """Return the status of an answer; 0 where there is none."""
    words = answer.split(b"\r\n", 1)[0].split()
    return int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") and words[1].isdigit() else 0


def is_refused(answer: bytes) -> bool:
    """Say whether the gateway itself refused: the service says it in other words."""
    return 400 <= status(answer) < 500 and b"akarena gateway: " in answer
