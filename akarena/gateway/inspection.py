"""From what an agent sends to what is sent on: route, query, headers and body, each by an allow-list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from akarena import strictjson
from akarena.errors import UserError
from akarena.gateway import anthropic, openai
from akarena.gateway.refusal import refused
from akarena.gateway.services import KeyHeader, Service, Style
from akarena.gateway.shapes import Shape
from akarena.records.audit import RefusalReason

_UNSTATED_OUTPUT_TOKENS = 32_000
"""Reserved for an answer when the request states no limit of its own."""
_BYTES_PER_TOKEN = 3
"""A low estimate for text and code, so that the tokens reserved for a prompt are rather too many."""


@dataclass(frozen=True)
class Route:
    """One method and path that passes.

    Attributes:
        method: HTTP method.
        path: Exact path, as it is written.
        body: Shape of the body; None where there is none.
        query: Names and patterns of the parameters that pass.
        metered: Whether the service charges tokens for it.
    """

    method: str
    path: str
    body: Shape | None = None
    query: Mapping[str, str] | None = None
    metered: bool = False


_LIST_QUERY = {
    "limit": r"[0-9]{1,4}",
    "after_id": r"[A-Za-z0-9._-]{1,100}",
    "before_id": r"[A-Za-z0-9._-]{1,100}",
    "client_version": r"[0-9A-Za-z.+-]{1,40}",
}
_BETA_QUERY = {"beta": "true"}

ROUTES = {
    Style.ANTHROPIC: (
        Route("POST", "/v1/messages", anthropic.REQUEST, _BETA_QUERY, metered=True),
        Route("POST", "/v1/messages/count_tokens", anthropic.REQUEST, _BETA_QUERY),
        Route("GET", "/v1/models", query=_LIST_QUERY | _BETA_QUERY),
    ),
    Style.OPENAI: (
        Route("POST", "/v1/responses", openai.RESPONSE, metered=True),
        Route("POST", "/v1/chat/completions", openai.CHAT, metered=True),
        Route("GET", "/v1/models", query=_LIST_QUERY),
    ),
}
"""All that passes, by style."""

_HEADERS = {
    Style.ANTHROPIC: {"anthropic-version": r"20[0-9]{2}-[0-9]{2}-[0-9]{2}"},
    Style.OPENAI: {},
}
_BETA = re.compile(r"([a-z0-9-]{1,60})-20[0-9]{2}-?[0-9]{2}-?[0-9]{2}")
_MAX_BETAS = 64


@dataclass(frozen=True)
class Inspected:
    """A body that may be sent on.

    Attributes:
        body: The bytes to send, written anew from what was checked; empty where there is none.
        model: What is asked.
        streamed: Whether the answer is to come as a stream.
        tools: Tools offered, as ``name`` or ``type:name``.
        reserve_tokens: What the answer and the prompt could use, to hold against the budget beforehand.
        answer_tokens: The answer's part of them.
    """

    body: bytes
    model: str | None
    streamed: bool
    tools: tuple[str, ...]
    reserve_tokens: int
    answer_tokens: int = 0


def find_route(style: Style, method: str, target: str) -> Route:
    """Find the route of a request.

    Args:
        style: Of the service.
        method: HTTP method.
        target: The request target as it was written: neither decoded nor normalised, so that there is one way to
            write each path.

    Raises:
        Denial: There is none, or the query string does not pass.
    """
    path, mark, query = target.partition("?")
    for route in ROUTES[style]:
        if (route.method, route.path) == (method, path):
            if mark:
                _check_query(route, query)
            return route
    raise refused(RefusalReason.ROUTE, f"{printable(method, 20)} {printable(path)} is not on the gateway's list")


def _check_query(route: Route, query: str) -> None:
    seen = set()
    for part in query.split("&"):
        name, _, value = part.partition("=")
        pattern = (route.query or {}).get(name)
        if pattern is None or not re.fullmatch(pattern, value) or name in seen:
            raise refused(RefusalReason.QUERY, f"query parameter {printable(part)!r} is not on the gateway's list")
        seen.add(name)


def check_headers(headers: Iterable[tuple[str, str]]) -> None:
    """Refuse headers that change what a request is; all others are simply not passed on."""
    for name, value in headers:
        lower = name.lower()
        if lower == "upgrade":
            raise refused(RefusalReason.HEADER, "upgrades, such as to a websocket, are not passed on")
        if lower == "content-encoding" and value.strip().lower() != "identity":
            raise refused(RefusalReason.HEADER, "compressed bodies are not passed on: switch request compression off")


def outgoing_headers(service: Service, headers: Mapping[str, str], key: str | None) -> tuple[dict[str, str], list[str]]:
    """Make the headers for the service: a few of the agent's, the rest our own.

    Args:
        service: Where the request goes.
        headers: The agent's, looked up without regard to case.
        key: The real key; None where the service needs none.

    Returns:
        The headers, and the beta features that were dropped.
    """
    result = {"Accept-Encoding": "identity", "Content-Type": "application/json", "User-Agent": "akarena-gateway"}
    for name, pattern in _HEADERS[service.style].items():
        value = headers.get(name)
        if value is not None and re.fullmatch(pattern, value):
            result[name] = value
    dropped: list[str] = []
    if service.style is Style.ANTHROPIC:
        kept = []
        for beta in headers.get("anthropic-beta", "").replace(" ", "").split(",")[:_MAX_BETAS]:
            match = _BETA.fullmatch(beta)
            if match and match[1] in anthropic.BETAS:
                kept.append(beta)
            elif beta:
                dropped.append(printable(beta, 100))
        if kept:
            result["anthropic-beta"] = ",".join(dict.fromkeys(kept))
    if key is not None:
        result[service.key_header.value] = f"Bearer {key}" if service.key_header is KeyHeader.BEARER else key
    return result, dropped


def inspect_body(route: Route, data: bytes, models: Sequence[str]) -> Inspected:
    """Check a body, and write it anew.

    Args:
        route: Its route.
        data: As it came.
        models: The only models that may be asked; empty for any.

    Raises:
        Denial: It does not pass.
    """
    if route.body is None:
        if data:
            raise refused(RefusalReason.VALUE, f"{route.method} {route.path} takes no body")
        return Inspected(b"", None, streamed=False, tools=(), reserve_tokens=0)
    try:
        document = strictjson.loads(data, "body")
    except UserError as error:
        raise refused(RefusalReason.NOT_JSON, printable(str(error), 250)) from None
    if not isinstance(document, dict):
        raise refused(RefusalReason.NOT_JSON, "the body is not a JSON object")
    route.body(document, ())
    model = document["model"]
    if models and model not in models:
        raise refused(RefusalReason.MODEL, f"model {model} is not one of this trial's: {', '.join(models)}"[:250])
    streamed = document.get("stream") is True
    if route.path in ("/v1/responses", "/v1/chat/completions"):
        document["store"] = False
    if route.path == "/v1/chat/completions" and streamed:
        document["stream_options"] = (document.get("stream_options") or {}) | {"include_usage": True}
    body = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    prompt, answer = (len(body) // _BYTES_PER_TOKEN, _output_limit(document)) if route.metered else (0, 0)
    return Inspected(body, model, streamed, _tools(document.get("tools") or ()), prompt + answer, answer)


def printable(value: str, limit: int = 200) -> str:
    """Write a text in printable ASCII, escaped and cut, for messages and records."""
    escaped = value[:limit].encode("unicode_escape").decode("ascii")
    return escaped if len(escaped) <= limit else f"{escaped[: limit - 3]}..."


def _output_limit(document: Mapping[str, Any]) -> int:
    for name in ("max_tokens", "max_output_tokens", "max_completion_tokens"):
        if isinstance(document.get(name), int):
            return int(document[name])
    return _UNSTATED_OUTPUT_TOKENS


def _tools(tools: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    names: list[str] = []
    for tool in tools:
        kind = str(tool.get("type") or "custom")
        inner = tool.get("function") or tool.get("custom") or {}
        name = str(tool.get("name") or inner.get("name") or "")
        plain = kind in ("custom", "function")
        names.append(printable(name if plain else f"{kind}:{name}" if name else kind, 100))
        names.extend(f"{names[-1]}."[:50] + part for part in _tools(tool.get("tools") or ()) if kind == "namespace")
    return tuple(name[:100] for name in names[:256])
