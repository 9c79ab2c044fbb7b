"""The gateway as a process, between an agent's requests and a stand-in for the service."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from akarena import schemas
from akarena.errors import InfrastructureError, UserError
from akarena.gateway import Budgets, Gateway, Patience, Totals, find
from akarena.records import AuditRecord
from akarena.records.audit import RefusalReason, Verdict
from akarena.records.run import Prices
from akarena.records.trial import Tokens
from tests.services import StandIn, ToolCall, Turn
from tests.services.client import Answer, ask, connect, exchange

KEY = "sk-secret-4b1d-do-not-tell"
ASK = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "the question"}]}
HASTY = Patience(first_seconds=0.01, pause_seconds=0.03)
CALL = Turn(text="look", calls=(ToolCall("Bash", {"command": "ls"}),))


@dataclass
class Bench:
    """A gateway between a test and a stand-in."""

    gateway: Gateway
    service: StandIn
    audit: Path

    def ask(self, target: str = "/v1/messages", body: Any = ASK, **headers: str) -> Answer:
        return ask(self.gateway.path, "POST", target, body, headers)

    def lines(self, count: int = 0) -> list[AuditRecord]:
        """Read the audit, as soon as it holds so many lines."""
        until = time.monotonic() + 10
        while len(lines := self.audit.read_bytes().splitlines()) < count and time.monotonic() < until:
            time.sleep(0.02)
        return [schemas.parse(AuditRecord, line, "audit") for line in lines]

    @property
    def totals(self) -> Totals:
        assert self.gateway.totals is not None
        return self.gateway.totals


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_SERVICE_KEY", KEY)
    monkeypatch.setenv("OTHER_SECRET", "not for the gateway")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@contextmanager
def bench(
    folder: Path,
    *script: Turn,
    style: str = "anthropic",
    models: tuple[str, ...] = (),
    first: tuple[Turn, ...] = (),
    patience: Patience = HASTY,
    **budgets: Any,
) -> Iterator[Bench]:
    audit = folder / "gateway.jsonl"
    with StandIn(*script, first=first) as service:
        at = find(style).at(service.url, "TEST_SERVICE_KEY")
        with Gateway(at, audit, models=models, budgets=Budgets(**budgets), patience=patience) as gateway:
            yield Bench(gateway, service, audit)


class TestPassing:
    def test_plain_and_streamed_answers(self, folder: Path) -> None:
        turn = Turn(text="hello", cache_read_tokens=5, cache_write_tokens=6)
        with bench(folder, turn) as b:
            plain = b.ask("/v1/messages?beta=true", Authorization="Bearer placeholder", Cookie="a=b")
            streamed = b.ask(body=ASK | {"stream": True})
            counted = b.ask("/v1/messages/count_tokens")
            models = ask(b.gateway.path, "GET", "/v1/models?limit=10")
        assert plain.json["content"] == [{"type": "text", "text": "hello"}]
        assert plain.headers["request-id"] == "req_standin"
        assert "date" not in b.service.seen[0].headers
        assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert streamed.body.endswith(b'data: {"type": "message_stop"}\n\n')
        assert counted.json["input_tokens"] > 0
        assert models.json["data"][0]["id"] == "standin-model"
        assert [seen.path for seen in b.service.seen] == [
            "/v1/messages?beta=true",
            "/v1/messages",
            "/v1/messages/count_tokens",
            "/v1/models?limit=10",
        ]
        for seen in b.service.seen:
            assert seen.headers["x-api-key"] == KEY
            assert not {"authorization", "cookie"} & set(seen.headers)
            assert seen.headers["host"] == b.service.url.removeprefix("http://")
        once = Tokens(input=100, output=20, cache_read=5, cache_write=6, reasoning=0)
        records = b.lines()
        assert [record.tokens for record in records] == [once, once, None, None]
        assert [record.verdict for record in records] == [Verdict.ALLOWED] * 4
        assert all(record.complete and record.status == 200 for record in records)
        assert [record.streamed for record in records] == [False, True, False, False]
        assert records[1].bytes_down == len(streamed.body)
        assert records[0].bytes_up == len(json.dumps(ASK, separators=(",", ":")))
        twice = Tokens(input=200, output=40, cache_read=10, cache_write=12, reasoning=0)
        assert (b.totals.requests, b.totals.tokens, b.totals.uncounted, b.totals.audit_lines) == (4, twice, 0, 4)

    def test_openai_style(self, folder: Path) -> None:
        with bench(folder, CALL, Turn(reasoning_tokens=3), style="openai") as b:
            response = b.ask("/v1/responses", {"model": "m", "input": "q", "stream": True})
            chat = b.ask("/v1/chat/completions", {"model": "m", "messages": ASK["messages"], "stream": True})
        assert b"response.completed" in response.body
        assert chat.body.endswith(b"data: [DONE]\n\n")
        assert [seen.json["store"] for seen in b.service.seen] == [False, False]
        assert all(seen.headers["authorization"] == f"Bearer {KEY}" for seen in b.service.seen)
        assert [record.tokens and record.tokens.output for record in b.lines()] == [20, 20]

    def test_a_stream_is_passed_piece_by_piece(self, folder: Path) -> None:
        with bench(folder, Turn(text="slow", delay_seconds=0.15)) as b, connect(b.gateway.path) as connection:
            body = json.dumps(ASK | {"stream": True}).encode()
            connection.sendall(
                b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            times = []
            data = b""
            while b"message_stop" not in data:
                data += connection.recv(65536)
                times.append(time.monotonic())
        assert times[-1] - times[0] > 0.6, "the first events come long before the last"

    def test_models_are_pinned(self, folder: Path) -> None:
        with bench(folder, models=("good-model",)) as b:
            assert b.ask(body=ASK | {"model": "good-model"}).status == 200
            answer = b.ask(body=ASK | {"model": "other-model"})
        assert (answer.status, answer.json["type"]) == (403, "error")
        assert "good-model" in answer.message
        assert len(b.service.seen) == 1


class TestRefusing:
    def test_the_answer_is_in_the_style_of_the_api(self, folder: Path) -> None:
        tool = {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}
        with bench(folder) as b:
            answer = b.ask(body=ASK | tool)
            telemetry = b.ask("/api/event_logging/batch", {"events": []})
        assert answer.json == {
            "type": "error",
            "error": {
                "type": "permission_error",
                "message": "akarena gateway: tools[0].type: 'web_search_20250305' is not on the gateway's list",
            },
        }
        assert telemetry.status == 403
        assert b.service.seen == []
        assert [record.reason for record in b.lines()] == [RefusalReason.TOOL_TYPE, RefusalReason.ROUTE]
        assert (b.totals.requests, b.totals.refused, b.totals.tokens) == (0, 2, None)

    @pytest.mark.parametrize(
        "request_bytes",
        [
            b"GET / HTTP/1.1\r\n\r\n",
            b"POST http://evil.example/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
            b"POST /v1/messages/../messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
            b"POST /v1/%6dessages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
            b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            b"GET /v1/models HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
            b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
            b"POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
            b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
            b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
            b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
            b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\nContent-Length: 0\r\n\r\n",
            b"POST /v1/messages HTTP/1.1\r\nHost : x\r\nContent-Length: 0\r\n\r\n",
            b"POST /v1/messages HTTP/1.1\r\nX-A: " + b"a" * 100_000 + b"\r\n\r\n",
            b"POST /v1/messages HTTP/1.1\r\n" + b"X-A: b\r\n" * 5000 + b"\r\n",
            b"POST /v1/messages" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
            b"\x00" * 100,
            b"POST /v1/messages HTTP/1.1\nContent-Length: 0\n\n",
        ],
    )
    def test_odd_http_reaches_no_service(self, shared: Bench, request_bytes: bytes) -> None:
        before = len(shared.lines())
        received = exchange_and_close(shared.gateway.path, request_bytes)
        statuses = re.findall(rb"HTTP/1\.[01] ([0-9]{3}) ", received)
        assert len(statuses) == 1, f"one answer, then the connection is closed: {received[:300]!r}"
        assert statuses[0] in (b"400", b"403", b"413")
        record = shared.lines(before + 1)[before]
        assert record.verdict is Verdict.REFUSED
        assert shared.service.seen == []

    def test_a_request_hidden_behind_a_body_is_one_of_its_own(self, folder: Path) -> None:
        hidden = b"DELETE /v1/files/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        with bench(folder) as b:
            body = json.dumps(ASK | {"system": hidden.decode()}).encode()
            head = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
            received = exchange(b.gateway.path, head + body + hidden)
        assert re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", received) == [b"200", b"403"]
        assert [(seen.method, seen.path) for seen in b.service.seen] == [("POST", "/v1/messages")]

    def test_pipelined_requests_are_answered_in_order(self, folder: Path) -> None:
        with bench(folder) as b:
            get = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
            last = b"GET /v1/files HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            received = exchange(b.gateway.path, get + get + last)
            assert [part[:3] for part in received.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"403"]
        assert len(b.service.seen) == 2

    def test_a_slow_body_does_not_hold_others_up(self, folder: Path) -> None:
        with bench(folder) as b:
            held = [connect(b.gateway.path) for _ in range(5)]
            for connection in held:
                connection.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            idle = [connect(b.gateway.path) for _ in range(50)]
            assert b.ask().status == 200
            for connection in held + idle:
                connection.close()
            assert len(b.lines(6)) == 6

    def test_a_large_body(self, folder: Path) -> None:
        with bench(folder, request_bytes=10_000) as b:
            answer = b.ask(body=ASK | {"system": "x" * 20_000})
            chunks = b"2710\r\n" + b"x" * 10_000 + b"\r\n"
            head = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            chunked = exchange_and_close(b.gateway.path, head + chunks * 2 + b"0\r\n\r\n")
        assert (answer.status, answer.json["error"]["type"]) == (413, "request_too_large")
        assert chunked.startswith(b"HTTP/1.1 413 ")
        assert b.service.seen == []


class TestFailingService:
    @pytest.mark.parametrize("stream", [False, True])
    def test_errors_are_passed_on(self, folder: Path, stream: bool) -> None:
        turn = Turn(status=529, error="overloaded", headers={"retry-after": "7", "set-cookie": "a=b"})
        with bench(folder, turn) as b:
            answer = b.ask(body=ASK | {"stream": stream})
        assert (answer.status, answer.message, answer.headers["retry-after"]) == (529, "overloaded", "7")
        assert "set-cookie" not in answer.headers
        (record,) = b.lines()
        assert (record.verdict, record.status, record.tokens) == (Verdict.UPSTREAM_ERROR, 529, None)
        assert (record.retries, len(b.service.seen)) == (5, 6)
        assert (b.totals.upstream_errors, b.totals.uncounted) == (1, 0)

    def test_redirects_are_not_followed(self, folder: Path) -> None:
        with StandIn() as other, bench(folder, Turn(status=307, headers={"location": f"{other.url}/v1/messages"})) as b:
            answer = b.ask()
            assert other.seen == []
        assert (answer.status, "redirects are not followed" in answer.message) == (502, True)
        assert "location" not in answer.headers

    @pytest.mark.parametrize("status", [401, 403])
    def test_what_quotes_the_key_is_not_passed_on(self, folder: Path, status: int) -> None:
        with bench(folder, Turn(status=status, error=f"bad key {KEY[:8]}")) as b:
            answer = b.ask()
        assert (answer.status, answer.headers["x-should-retry"]) == (status, "false")
        assert KEY[:8].encode() not in answer.body
        assert len(b.service.seen) == 1

    def test_a_key_in_an_answer_is_taken_out(self, folder: Path) -> None:
        with bench(folder, Turn(status=400, error=f"header x-api-key: {KEY}")) as b:
            assert b.ask().message == "header x-api-key: [key]"

    @pytest.mark.parametrize(("stream", "place"), [(True, 4), (False, 10)])
    def test_a_broken_answer(self, folder: Path, stream: bool, place: int) -> None:
        with bench(folder, Turn(text="hello", break_after=place)) as b:
            answer = b.ask(body=ASK | {"stream": stream})
            (record,) = b.lines(1)
        assert not answer.whole if stream else answer.status == 502
        assert (record.verdict, record.complete, record.tokens) == (Verdict.UPSTREAM_ERROR, False, None)
        assert (b.totals.uncounted, b.totals.tokens) == (1, None)

    def test_no_service(self, folder: Path) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            service = find("anthropic").at(f"http://127.0.0.1:{taken.getsockname()[1]}")
            with Gateway(service, folder / "gateway.jsonl") as gateway:
                answer = ask(gateway.path, "POST", "/v1/messages", ASK)
        assert (answer.status, answer.message) == (
            502,
            "akarena gateway: the service can't be reached (ClientConnectorError)",
        )
        assert gateway.totals is not None
        assert (gateway.totals.upstream_errors, gateway.totals.uncounted) == (1, 0)

    def test_an_agent_that_goes_away(self, folder: Path) -> None:
        with bench(folder, Turn(text="slow", delay_seconds=0.2)) as b:
            body = json.dumps(ASK | {"stream": True}).encode()
            with connect(b.gateway.path) as connection:
                head = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
                connection.sendall(head + body)
                connection.recv(10)
            (record,) = b.lines(1)
        assert (record.complete, record.tokens, record.detail) == (
            False,
            None,
            "the agent closed the connection, or the trial ended",
        )
        assert b.totals.uncounted == 1


BUSY = Turn(status=429, error="slow down")


class TestAskingAgain:
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("status", [429, 503, 529])
    def test_until_there_is_room(self, folder: Path, status: int, stream: bool) -> None:
        first = (Turn(status=status), Turn(status=status, raw=b"<html>", content_type="text/html"))
        with bench(folder, Turn("hello"), first=first, requests=1, tokens=200) as b:
            answer = b.ask(body=ASK | {"stream": stream})
        assert (answer.status, b"end_turn" in answer.body) == (200, True)
        assert [seen.json for seen in b.service.seen] == [b.service.seen[0].json] * 3
        assert all(seen.headers["x-api-key"] == KEY for seen in b.service.seen)
        (record,) = b.lines()
        once = Tokens(input=100, output=20, cache_read=0, cache_write=0, reasoning=0)
        assert (record.verdict, record.status, record.retries, record.tokens) == (Verdict.ALLOWED, 200, 2, once)
        assert record.bytes_up == len(b.service.seen[0].body), "counted once"
        assert (b.totals.requests, b.totals.tokens, b.totals.upstream_errors) == (1, once, 0)

    @pytest.mark.parametrize("status", [400, 404, 500, 502])
    def test_other_errors_are_passed_on_at_once(self, folder: Path, status: int) -> None:
        with bench(folder, first=(Turn(status=status),)) as b:
            assert b.ask().status == status
        assert [record.retries for record in b.lines()] == [0]

    def test_a_service_that_says_not_to(self, folder: Path) -> None:
        with bench(folder, Turn(status=429, headers={"x-should-retry": "false"})) as b:
            answer = b.ask()
        assert (answer.status, answer.headers["x-should-retry"], len(b.service.seen)) == (429, "false", 1)

    def test_what_it_asks_for_is_waited(self, folder: Path) -> None:
        patience = Patience(first_seconds=0.001, pause_seconds=0.3)
        first = (Turn(status=429, headers={"retry-after": "3600"}), Turn(status=429, headers={"retry-after-ms": "150"}))
        with bench(folder, first=first, patience=patience) as b:
            began = time.monotonic()
            assert b.ask().status == 200
            seconds = time.monotonic() - began
        assert 0.45 <= seconds < 5

    def test_no_page_of_a_server_between_reaches_the_agent(self, folder: Path) -> None:
        with bench(folder, Turn(status=503, raw=b"<html>busy</html>", content_type="text/html")) as b:
            answer = b.ask()
        assert (answer.status, b"<html>" in answer.body) == (503, False)
        assert [(record.status, record.retries) for record in b.lines()] == [(503, 5)]

    def test_all_pauses_together_are_bounded(self, folder: Path) -> None:
        patience = Patience(retries=1000, seconds=0.2, first_seconds=0.05, pause_seconds=0.05)
        with bench(folder, BUSY, patience=patience) as b:
            assert b.ask().status == 429
        assert [3 <= record.retries <= 5 for record in b.lines()] == [True]

    def test_no_pause_outlives_the_trial(self, folder: Path) -> None:
        turn = Turn(status=429, headers={"retry-after": "30"})
        with bench(folder, turn, patience=Patience(), seconds=20.0) as b:
            answer = b.ask()
        assert (answer.status, answer.message, answer.headers["retry-after"]) == (429, "scripted error", "30")
        assert [record.verdict for record in b.lines()] == [Verdict.UPSTREAM_ERROR]

    def test_never_once_a_stream_has_begun(self, folder: Path) -> None:
        with bench(folder, first=(Turn("broken", break_after=2),)) as b:
            assert not b.ask(body=ASK | {"stream": True}).whole
        assert [(record.retries, record.complete) for record in b.lines()] == [(0, False)]
        assert len(b.service.seen) == 1

    def test_an_answer_that_breaks_off_in_the_end_counts_with_all_that_was_held(self, folder: Path) -> None:
        with bench(folder, first=(BUSY, Turn("broken", break_after=2)), tokens=200) as b:
            assert not b.ask(body=ASK | {"stream": True}).whole
            assert b.ask().status == 429, "what was turned away first has not settled it"
        assert (b.totals.uncounted, b.totals.out_of_budget) == (1, 1)

    def test_an_agent_that_goes_away_meanwhile_has_used_nothing(self, folder: Path) -> None:
        patience = Patience(first_seconds=30.0)
        with bench(folder, first=(BUSY,), patience=patience, tokens=200) as b:
            body = json.dumps(ASK).encode()
            with connect(b.gateway.path) as connection:
                head = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
                connection.sendall(head + body)
                until = time.monotonic() + 10
                while not b.service.seen and time.monotonic() < until:
                    time.sleep(0.02)
                time.sleep(0.1)
            assert len(b.lines(1)) == 1
            assert b.ask().status == 200
        assert b.totals.uncounted == 0


class TestBudgets:
    def test_many_requests_at_once(self, folder: Path) -> None:
        with bench(folder, Turn(delay_seconds=0.05), requests=5) as b, ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda _: b.ask(), range(12)))
        assert sorted(answer.status for answer in answers) == [200] * 5 + [429] * 7
        assert len(b.service.seen) == 5
        refused = next(answer for answer in answers if answer.status == 429)
        assert refused.json["error"]["type"] == "rate_limit_error"
        assert refused.message == "akarena gateway: the trial's budget of 5 requests is used up"
        assert refused.headers["x-should-retry"] == "false"
        assert (b.totals.requests, b.totals.out_of_budget) == (5, 7)

    def test_tokens(self, folder: Path) -> None:
        with bench(folder, Turn(input_tokens=300, output_tokens=100), tokens=900) as b:
            statuses = [b.ask().status for _ in range(4)]
        assert statuses == [200, 200, 429, 429], "the third could take 100 more than are left with its prompt"
        assert b.totals.tokens == Tokens(input=600, output=200, cache_read=0, cache_write=0, reasoning=0)

    def test_dollars(self, folder: Path) -> None:
        # The prompt is held back at the dearest price for prompts: some 0.00003 + 0.01 dollars with the answer.
        prices = Prices(input=0.0, output=100.0, cache_read=0.0, cache_write=1.0)
        turn = Turn(input_tokens=300, output_tokens=50, cache_write_tokens=1000)
        with bench(folder, turn, usd=0.02, prices=prices) as b:
            answers = [b.ask() for _ in range(4)]
        assert [answer.status for answer in answers] == [200, 200, 429, 429], "0.012 are used after the second"
        message = answers[2].message
        assert "of the trial's budget of 0.02 dollars, 0.008 are left, and this request could cost 0.01" in message
        assert answers[2].headers["x-should-retry"] == "false"
        assert (b.totals.requests, b.totals.out_of_budget) == (2, 2)

    def test_concurrency(self, folder: Path) -> None:
        with bench(folder, Turn(delay_seconds=0.2), concurrent=2) as b:
            began = time.monotonic()
            with ThreadPoolExecutor(6) as pool:
                assert {answer.status for answer in pool.map(lambda _: b.ask(), range(6))} == {200}
        assert time.monotonic() - began > 0.55

    def test_time_cuts_a_running_answer(self, folder: Path) -> None:
        with bench(folder, Turn(text="slow", delay_seconds=0.4), seconds=1.5) as b:
            first = b.ask(body=ASK | {"stream": True})
            second = b.ask()
        assert (first.status, first.whole) == (200, False)
        assert second.status == 429
        assert [record.verdict for record in b.lines()] == [Verdict.OUT_OF_BUDGET] * 2


class TestProcess:
    def test_the_key_is_nowhere(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        with bench(folder, CALL) as b:
            process = b.gateway._process
            assert process is not None
            command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            held = Path(f"/proc/{process.pid}/environ").read_bytes() if os.geteuid() == 0 else b""
            b.ask(body=ASK | {"stream": True, "tools": [{"name": "Bash", "input_schema": {}}]})
            b.ask("/v1/nothing")
            ask(b.gateway.path, "POST", "/v1/messages", b"{")
            files = [path for place in (folder, b.gateway.path.parent) for path in place.rglob("*") if path.is_file()]
            texts = [command, *(path.read_bytes() for path in files), repr(b.gateway.__dict__).encode()]
        texts += [b.totals.to_json(), "".join(capfd.readouterr()).encode()]
        forms = [KEY.encode(), base64.b64encode(KEY.encode()), KEY.encode().hex().encode()]
        assert len(files) >= 2
        assert not [text for text in texts for form in forms if form in text]
        assert b"OTHER_SECRET" not in held

    def test_bodies_are_not_written_down(self, folder: Path) -> None:
        with bench(folder, Turn(text="the answer")) as b:
            b.ask()
            b.ask(body=ASK | {"extra": "the question"})
        text = b.audit.read_text()
        assert len(text.splitlines()) == 2
        assert "the answer" not in text
        assert "the question" not in text
        assert stat.S_IMODE(b.audit.stat().st_mode) == 0o600

    def test_a_missing_key_is_named(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for value in (None, "", "a b\nc"):
            if value is None:
                monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
            else:
                monkeypatch.setenv("ANTHROPIC_API_KEY", value)
            with pytest.raises(UserError, match="environment variable ANTHROPIC_API_KEY"):
                Gateway(find("anthropic"), folder / "gateway.jsonl")

    def test_the_socket_is_for_the_sandbox_alone(self, folder: Path) -> None:
        with bench(folder) as b:
            assert stat.S_IMODE(b.gateway.path.stat().st_mode) & 0o077 == 0
            assert stat.S_IMODE(b.gateway.path.parent.stat().st_mode) == 0o700
            where = b.gateway.path
        assert not where.parent.exists()

    def test_it_ends_with_its_caller(self, folder: Path) -> None:
        code = f"""
import os, signal
from pathlib import Path
from akarena.gateway import Gateway, find
gateway = Gateway(find("anthropic").at("http://127.0.0.1:9"), Path({str(folder / "a.jsonl")!r})).__enter__()
print(gateway._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
        assert done.returncode == -signal.SIGKILL
        pid = int(done.stdout)
        until = time.monotonic() + 10
        while _alive(pid) and time.monotonic() < until:
            time.sleep(0.02)
        assert not _alive(pid)

    def test_a_gateway_that_died_is_an_error(self, folder: Path) -> None:
        gateway = Gateway(find("anthropic").at("http://127.0.0.1:9"), folder / "gateway.jsonl").__enter__()
        assert gateway._process is not None
        gateway._process.kill()
        gateway._process.wait()
        with pytest.raises(InfrastructureError, match="ended without its totals"):
            gateway.__exit__(None, None, None)

    def test_a_gateway_that_can_not_start(self, folder: Path) -> None:
        gateway = Gateway(find("anthropic").at("http://127.0.0.1:9"), folder / "missing" / "gateway.jsonl")
        with pytest.raises(InfrastructureError, match="does not start: FileNotFoundError"):
            gateway.__enter__()

    def test_nothing_passes_that_can_not_be_written_down(self) -> None:
        with StandIn() as service:
            gateway = Gateway(find("anthropic").at(service.url), Path("/dev/full")).__enter__()
            with pytest.raises(ConnectionError):
                ask(gateway.path, "POST", "/v1/messages", ASK)
            assert gateway._process is not None
            assert gateway._process.wait(10) == 1
            with pytest.raises(OSError):
                connect(gateway.path)
        with pytest.raises(InfrastructureError, match="could not be written down"):
            gateway.__exit__(None, None, None)


def test_a_flood_does_not_fill_the_disk(folder: Path) -> None:
    get = b"GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with bench(folder) as b:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: exchange(b.gateway.path, get), range(2100)))
        assert b.ask().status == 200
    assert (b.totals.refused, b.totals.audit_lines, b.totals.audit_lines_dropped) == (2100, 2001, 100)
    assert b.lines()[-1].verdict is Verdict.ALLOWED, "what passed is still written down"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One gateway for many malformed requests, which it must outlive."""
    os.environ["TEST_SERVICE_KEY"] = KEY
    with bench(tmp_path_factory.mktemp("shared")) as b:
        yield b
        assert b.ask().status == 200
    del os.environ["TEST_SERVICE_KEY"]


def exchange_and_close(path: Path, data: bytes) -> bytes:
    """Send in the background, so that an answer to an unfinished request is read at once."""
    with connect(path) as connection:

        def send() -> None:
            with suppress(OSError):
                connection.sendall(data)

        thread = threading.Thread(target=send)
        thread.start()
        received = b""
        with suppress(ConnectionError):
            while piece := connection.recv(65536):
                received += piece
        thread.join()
    return received


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
