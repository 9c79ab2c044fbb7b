"""The reverse proxy: takes one request, checks it, sends it on with the real key, and passes the answer back."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Callable

import aiohttp
from aiohttp import HttpVersion10, HttpVersion11, web
from yarl import URL

from akarena.gateway import usage
from akarena.gateway.audit import AuditLog
from akarena.gateway.budget import Ledger, Reservation
from akarena.gateway.entry import Entry
from akarena.gateway.inspection import (
    Inspected,
    Route,
    check_headers,
    find_route,
    inspect_body,
    outgoing_headers,
    printable,
)
from akarena.gateway.redaction import Redactor
from akarena.gateway.refusal import KEY_REFUSED, Denial, error_body, error_headers, refused, upstream_error
from akarena.gateway.settings import Settings
from akarena.gateway.upstream import SILENCE_SECONDS, Upstream
from akarena.records.audit import RefusalReason, Verdict

_BODY_SECONDS = 60.0
_MAX_PLAIN_BYTES = 64 << 20
_ANSWER_HEADERS = ("request-id", "x-request-id", "retry-after", "retry-after-ms", "x-should-retry")
_ANSWER_HEADER_PREFIXES = ("anthropic-ratelimit-", "x-ratelimit-")


_GONE = "the agent closed the connection, or the trial ended"


class _AgentGoneError(Exception):
    """Nobody is left to answer."""


class Proxy:
    """Serves the requests of one trial.

    Args:
        settings: What is allowed.
        key: The real key; None where the service needs none.
        audit: Where each request is written down.
        ledger: The budgets.
        client: The way to the service.
        fail: Called when a request can't be written down: nothing may pass any more.
    """

    def __init__(
        self,
        settings: Settings,
        key: str | None,
        audit: AuditLog,
        ledger: Ledger,
        client: aiohttp.ClientSession,
        fail: Callable[[], None],
    ) -> None:
        self._service = settings.service
        self._models = settings.models
        self._most_bytes = settings.budgets.request_bytes
        self._key = key
        self._audit = audit
        self._ledger = ledger
        self._upstream = Upstream(client, settings.patience, ledger)
        self._fail = fail

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        entry = Entry(self._service.name, request.method, request.raw_path)
        answer = web.StreamResponse()
        try:
            return await self._pass(request, entry, answer)
        except Denial as denial:
            return self._end(request, entry, answer, denial)
        except _AgentGoneError:
            entry.detail = _GONE
            return answer
        except asyncio.CancelledError:
            entry.detail = _GONE
            raise
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            # Without the message: it could quote a header.
            print(f"{type(error).__name__} at {where.filename}:{where.lineno}", file=sys.stderr)
            failure = upstream_error(f"the gateway failed ({type(error).__name__})", 500)
            return self._end(request, entry, answer, failure)
        finally:
            self._write(entry)

    def malformed(self) -> web.StreamResponse:
        """Answer what is no HTTP request."""
        entry = Entry(self._service.name, "", "")
        denial = refused(RefusalReason.MALFORMED_HTTP, "this is not well-formed HTTP/1.1")
        entry.deny(denial)
        self._write(entry)
        return self._denied(denial)

    def _end(
        self, request: web.BaseRequest, entry: Entry, answer: web.StreamResponse, denial: Denial
    ) -> web.StreamResponse:
        """Answer with an error, or cut an answer that has begun so that it is not taken for a whole one."""
        entry.deny(denial, answered=not answer.prepared)
        if not answer.prepared:
            return self._denied(denial)
        if request.transport is not None:
            request.transport.abort()
        return answer

    def _write(self, entry: Entry) -> None:
        try:
            self._audit.write(entry.record(), charged=entry.charged)
        except Exception:
            self._fail()
            raise

    def _denied(self, denial: Denial) -> web.Response:
        body = error_body(self._service.style, denial)
        answer = web.Response(
            status=denial.status, body=body, content_type="application/json", headers=error_headers(denial)
        )
        answer.force_close()
        return answer

    async def _pass(self, request: web.BaseRequest, entry: Entry, answer: web.StreamResponse) -> web.StreamResponse:
        # First what can be decided without the body: a refused request costs little, and waits for no slot.
        if request.version not in (HttpVersion10, HttpVersion11):
            # Without a version a request line alone is a request, and headers are what follows it.
            raise refused(RefusalReason.MALFORMED_HTTP, "this is not HTTP/1.1")
        check_headers(request.headers.items())
        route = find_route(self._service.style, request.method, request.raw_path)
        async with self._ledger.time_limit(), self._ledger.slots:
            inspected = inspect_body(route, await self._read(request), self._models)
            entry.model, entry.tools = inspected.model, inspected.tools
            reservation = await self._ledger.reserve(
                inspected.reserve_tokens, len(inspected.body), inspected.answer_tokens
            )
            try:
                return await self._forward(request, route, inspected, reservation, entry, answer)
            finally:
                entry.charged = entry.tokens is None and reservation.used is None and route.metered
                await self._ledger.release(reservation)

    async def _read(self, request: web.BaseRequest) -> bytes:
        too_large = refused(RefusalReason.TOO_LARGE, f"the body is larger than {self._most_bytes} bytes")
        if (request.content_length or 0) > self._most_bytes:
            raise too_large
        data = bytearray()
        try:
            async with asyncio.timeout(_BODY_SECONDS) as limit:
                async for piece in request.content.iter_any():
                    data += piece
                    if len(data) > self._most_bytes:
                        raise too_large
        except TimeoutError:
            if not limit.expired():
                raise
            raise refused(RefusalReason.TOO_SLOW, f"the body took longer than {_BODY_SECONDS:g} s") from None
        except (aiohttp.ClientError, web.RequestPayloadError):
            raise refused(RefusalReason.MALFORMED_HTTP, "the body is not well-formed") from None
        return bytes(data)

    async def _forward(
        self,
        request: web.BaseRequest,
        route: Route,
        inspected: Inspected,
        reservation: Reservation,
        entry: Entry,
        answer: web.StreamResponse,
    ) -> web.StreamResponse:
        headers, dropped = outgoing_headers(self._service, request.headers, self._key)
        entry.dropped = tuple(dropped)
        entry.bytes_up = len(inspected.body)
        query = request.raw_path.partition("?")[2]
        url = URL(self._service.base_url + route.path + (f"?{query}" if query else ""), encoded=True)
        try:
            async with self._upstream.ask(route.method, url, inspected.body, headers, entry, reservation) as upstream:
                entry.upstream_request_id = _request_id(upstream)
                if upstream.status != 200:
                    reservation.settle(None)
                self._check_answer(upstream)
                if upstream.content_type == "text/event-stream" and upstream.status == 200:
                    await self._stream(request, upstream, reservation, entry, answer)
                    return answer
                return await self._plain(upstream, route, reservation, entry)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            reservation.settle(None)
            raise upstream_error(f"the service can't be reached ({type(error).__name__})") from None
        except aiohttp.SocketTimeoutError:
            raise upstream_error(f"the service was silent for {SILENCE_SECONDS:g} s", 504) from None
        except aiohttp.ClientError as error:
            raise upstream_error(f"the service's answer broke off ({type(error).__name__})") from None

    def _check_answer(self, upstream: aiohttp.ClientResponse) -> None:
        status, kind = upstream.status, upstream.content_type
        if status in KEY_REFUSED:
            # Vendors quote parts of the key in these answers.
            raise upstream_error(
                f"the service answered {status}: it does not accept the gateway's key for this", status
            )
        if not (200 <= status < 300 or 400 <= status < 600):
            raise upstream_error(f"the service answered {status}; redirects are not followed")
        if kind not in ("application/json", "text/event-stream"):
            detail = f"the service answered {status} with {printable(kind, 60)}, expected JSON or a stream"
            raise upstream_error(detail, status if status >= 400 else 502)

    async def _plain(
        self, upstream: aiohttp.ClientResponse, route: Route, reservation: Reservation, entry: Entry
    ) -> web.Response:
        body = bytearray()
        async for piece in upstream.content.iter_any():
            body += piece
            self._ledger.receive(len(piece))
            if len(body) > _MAX_PLAIN_BYTES:
                raise upstream_error(f"the service's answer is larger than {_MAX_PLAIN_BYTES} bytes")
        entry.status, entry.complete = upstream.status, True
        if upstream.status != 200:
            entry.verdict, entry.detail = Verdict.UPSTREAM_ERROR, f"the service answered {upstream.status}"
        elif route.metered:
            entry.tokens = usage.read_plain(self._service.style, bytes(body))
            if entry.tokens is not None:
                reservation.settle(entry.tokens)
        else:
            reservation.settle(None)
        data = Redactor(self._key).whole(bytes(body))
        entry.bytes_down = len(data)
        return web.Response(
            status=upstream.status, body=data, content_type="application/json", headers=self._answer_headers(upstream)
        )

    async def _stream(
        self,
        request: web.BaseRequest,
        upstream: aiohttp.ClientResponse,
        reservation: Reservation,
        entry: Entry,
        answer: web.StreamResponse,
    ) -> None:
        answer.headers.update(self._answer_headers(upstream))
        answer.headers["Content-Type"] = "text/event-stream; charset=utf-8"
        answer.headers["Cache-Control"] = "no-cache"
        entry.status, entry.streamed = 200, True
        try:
            await answer.prepare(request)
        except ConnectionError:
            raise _AgentGoneError from None
        meter = usage.StreamMeter(self._service.style)
        redactor = Redactor(self._key)
        async for piece in upstream.content.iter_any():
            meter.feed(piece)
            if meter.complete and entry.tokens is None:
                # At once: an agent that goes away after the last event is still charged what it used.
                entry.tokens, entry.complete = meter.tokens(), True
                if entry.tokens is not None:
                    reservation.settle(entry.tokens)
            self._ledger.receive(len(piece))
            await self._send(answer, redactor.feed(piece), entry)
        await self._send(answer, redactor.end(), entry)
        if not entry.complete:
            entry.detail = "the stream ended before its last event"

    async def _send(self, answer: web.StreamResponse, piece: bytes, entry: Entry) -> None:
        if not piece:
            return
        try:
            await answer.write(piece)
        except ConnectionError:
            raise _AgentGoneError from None
        entry.bytes_down += len(piece)

    def _answer_headers(self, upstream: aiohttp.ClientResponse) -> dict[str, str]:
        return {
            name: value
            for name, value in upstream.headers.items()
            if (name.lower() in _ANSWER_HEADERS or name.lower().startswith(_ANSWER_HEADER_PREFIXES))
            and value.isascii()
            and value.isprintable()
            and not (self._key and self._key in value)
        }


def _request_id(upstream: aiohttp.ClientResponse) -> str | None:
    value = upstream.headers.get("request-id") or upstream.headers.get("x-request-id")
    return None if value is None else printable(value, 100)
