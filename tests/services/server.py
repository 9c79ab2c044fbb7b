"""A stand-in for a model's service on a loopback port, in both styles at once.

Use it as a context manager; ``url`` is what an agent or the gateway is given as the base address::

    with StandIn(Turn(calls=(ToolCall("Bash", {"command": "ls"}),)), Turn("done")) as service:
        run_the_agent(service.url)
        assert service.seen[0].headers["x-api-key"] == "the key"

It serves ``/v1/messages``, ``/v1/messages/count_tokens``, ``/v1/responses``, ``/v1/chat/completions`` and
``/v1/models``, streamed or plain as the request asks. Anything else is 404. All requests are kept in ``seen``.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.services import anthropic, openai
from tests.services.script import JsonObject, Seen, Turn, choose


class StandIn:
    """Answers by a script; see `tests.services.script` for how a turn is chosen.

    Args:
        script: The turns of the conversation.
        models: Names that ``/v1/models`` lists.
        first: Answers the first requests to the model, one each and whatever they hold; then the script begins.
    """

    def __init__(
        self, *script: Turn, models: tuple[str, ...] = ("standin-model",), first: tuple[Turn, ...] = ()
    ) -> None:
        self.script = script or (Turn(),)
        self._first = deque(first)
        self.models = models
        self.seen: list[Seen] = []
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The base address, without ``/v1``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> StandIn:
        """Serve."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; a slow answer is not waited for."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def turn(self, document: JsonObject) -> Turn:
        """Choose the answer to a request to the model."""
        try:
            return self._first.popleft()
        except IndexError:
            return choose(self.script, document)

    def conversation(self) -> list[Seen]:
        """Give the requests that asked the model for an answer."""
        return [seen for seen in self.seen if seen.path.split("?")[0] in _ASKING]


_ASKING = ("/v1/messages", "/v1/responses", "/v1/chat/completions")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, service: StandIn) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service = service

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent: a client that goes away is part of many tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._keep(b"")
        if self.path.split("?")[0] != "/v1/models":
            self._send_json(404, {"error": {"message": f"no such path: {self.path}"}})
            return
        data = [{"id": name, "object": "model", "type": "model"} for name in self.server.service.models]
        self._send_json(200, {"object": "list", "data": data, "has_more": False})

    def do_POST(self) -> None:
        body = self._body()
        document = self._keep(body)
        path = self.path.split("?")[0]
        if path == "/v1/messages/count_tokens":
            self._send_json(200, {"input_tokens": max(1, len(body) // 4)})
        elif path in _ASKING:
            self._answer(path, document)
        else:
            self._send_json(404, {"error": {"message": f"no such path: {self.path}"}})

    def _answer(self, path: str, document: JsonObject) -> None:
        turn = self.server.service.turn(document)
        model = str(document.get("model"))
        if turn.delay_seconds:
            time.sleep(turn.delay_seconds)
        if turn.raw is not None:
            self._send(turn.status, turn.raw, turn)
        elif turn.status != 200:
            make = anthropic.error if path == "/v1/messages" else openai.error
            self._send_json(turn.status, make(turn), turn)
        elif document.get("stream"):
            self._stream(_events(path, turn, model, document), turn)
        else:
            plain = {
                "/v1/messages": anthropic.plain,
                "/v1/responses": openai.response,
                "/v1/chat/completions": openai.completion,
            }
            self._send_json(200, plain[path](turn, model), turn)

    def _stream(self, events: Iterable[bytes], turn: Turn) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self._further_headers(turn)
        self.end_headers()
        for number, event in enumerate(events):
            if number == turn.break_after:
                self._cut()
                return
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            self.wfile.flush()
            if turn.delay_seconds:
                time.sleep(turn.delay_seconds)
        self.wfile.write(b"0\r\n\r\n")

    def _send_json(self, status: int, document: JsonObject, turn: Turn | None = None) -> None:
        self._send(status, json.dumps(document).encode(), turn or Turn())

    def _send(self, status: int, body: bytes, turn: Turn) -> None:
        self.send_response(status)
        self.send_header("Content-Type", turn.content_type)
        self.send_header("Content-Length", str(len(body)))
        self._further_headers(turn)
        self.end_headers()
        if turn.break_after is None:
            self.wfile.write(body)
        else:
            self.wfile.write(body[: turn.break_after])
            self._cut()

    def _further_headers(self, turn: Turn) -> None:
        self.send_header("request-id", "req_standin")
        self.send_header("x-request-id", "req_standin")
        for name, value in turn.headers.items():
            self.send_header(name, value)

    def _cut(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _keep(self, body: bytes) -> Any:
        try:
            document = json.loads(body) if body else None
        except ValueError:
            document = None
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.service.seen.append(Seen(self.command, self.path, headers, body, document))
        return document if isinstance(document, dict) else {}

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


def _events(path: str, turn: Turn, model: str, document: JsonObject) -> Iterable[bytes]:
    if path == "/v1/messages":
        return anthropic.events(turn, model)
    if path == "/v1/responses":
        return openai.response_events(turn, model)
    usage = bool((document.get("stream_options") or {}).get("include_usage"))
    return openai.completion_events(turn, model, usage=usage)
