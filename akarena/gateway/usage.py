"""Counts of tokens, read from answers as they pass: streams and plain JSON, of all three APIs."""

from __future__ import annotations

import json
from typing import Any

from akarena.gateway.services import Style
from akarena.records.trial import Tokens

_MAX_LINE_BYTES = 8 << 20
_FINAL = ("response.completed", "response.incomplete", "response.failed")


class StreamMeter:
    """Reads a stream of server-sent events beside its way to the agent.

    Attributes:
        complete: Whether the last event was seen.

    Args:
        style: Of the service.
    """

    def __init__(self, style: Style) -> None:
        self.complete = False
        self._style = style
        self._line = bytearray()
        self._skipping = False
        self._usage: dict[str, Any] = {}

    def feed(self, piece: bytes) -> None:
        """Take the next piece, cut anywhere."""
        *lines, rest = piece.split(b"\n")
        for part in lines:
            self._take(part)
            if not self._skipping:
                self._read(bytes(self._line))
            self._line.clear()
            self._skipping = False
        self._take(rest)

    def tokens(self) -> Tokens | None:
        """Give what the service counted; None where the stream broke off or said nothing."""
        return read_usage(self._style, self._usage) if self.complete else None

    def _take(self, part: bytes) -> None:
        if self._skipping or len(self._line) + len(part) > _MAX_LINE_BYTES:
            self._skipping = True
            self._line.clear()
        else:
            self._line += part

    def _read(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        data = line[5:].strip()
        if data == b"[DONE]":
            self.complete = True
            return
        if b'"usage"' not in data and b'"message_stop"' not in data and b'"response.' not in data:
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            return
        if isinstance(event, dict):
            self._event(event)

    def _event(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        holder: Any = event
        if self._style is Style.ANTHROPIC:
            if kind == "message_stop":
                self.complete = True
            if kind not in ("message_start", "message_delta"):
                return
            holder = event.get("message") if kind == "message_start" else event
        elif kind is not None:
            if kind not in _FINAL:
                return
            self.complete = True
            holder = event.get("response")
        usage = holder.get("usage") if isinstance(holder, dict) else None
        if isinstance(usage, dict):
            # The counts are cumulative: a later one replaces an earlier one.
            self._usage |= {name: value for name, value in usage.items() if value is not None}


def read_plain(style: Style, body: bytes) -> Tokens | None:
    """Read the counts from a plain answer; None where it says nothing."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    usage = document.get("usage") if isinstance(document, dict) else None
    return read_usage(style, usage) if isinstance(usage, dict) else None


def read_usage(style: Style, usage: dict[str, Any]) -> Tokens | None:
    """Bring the counts of any of the APIs into one form, with ``input`` free of cached tokens."""
    if style is Style.ANTHROPIC:
        given, answered = _whole(usage, "input_tokens"), _whole(usage, "output_tokens")
        read, written = _whole(usage, "cache_read_input_tokens"), _whole(usage, "cache_creation_input_tokens")
        reasoning = _whole(usage, "output_tokens_details", "thinking_tokens")
    else:
        chat = "prompt_tokens" in usage
        prompt, answer = ("prompt_tokens", "completion_tokens") if chat else ("input_tokens", "output_tokens")
        given, answered = _whole(usage, prompt), _whole(usage, answer)
        read, written = _whole(usage, f"{prompt}_details", "cached_tokens"), 0
        reasoning = _whole(usage, f"{answer}_details", "reasoning_tokens")
        if given is not None:
            given = max(0, given - (read or 0))
    if given is None or answered is None:
        return None
    return Tokens(
        input=given, output=answered, cache_read=read or 0, cache_write=written or 0, reasoning=reasoning or 0
    )


def add(first: Tokens | None, second: Tokens) -> Tokens:
    """Sum two counts."""
    if first is None:
        return second
    return Tokens(**{name: getattr(first, name) + getattr(second, name) for name in Tokens.model_fields})


def _whole(value: Any, *path: str) -> int | None:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if type(value) is int and 0 <= value < 1 << 48 else None
