"""What a stand-in service answers, and how it picks the answer.

An answer is chosen by the request alone: turn ``n`` of the script answers a conversation that holds ``n`` results of
tools. So repeated requests get the same answer, and side requests (titles, summaries) do not use up the script.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

JsonObject = dict[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool that the model makes.

    Attributes:
        name: The tool, as the agent named it.
        arguments: What it is called with.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """One answer of the model.

    Attributes:
        text: What it says.
        calls: Tools that it calls afterwards; an answer without any ends the conversation.
        input_tokens: Tokens of the prompt, without those from a cache.
        output_tokens: Tokens of the answer, reasoning included.
        cache_read_tokens: Tokens of the prompt that came from a cache.
        cache_write_tokens: Tokens of the prompt that went into a cache (Anthropic only).
        reasoning_tokens: Tokens of the answer that were reasoning (OpenAI only).
        status: Another HTTP status than 200 gives an error in the style of the service.
        error: The message of that error.
        delay_seconds: Waits before the answer, and between the pieces of a stream.
        break_after: Cuts the connection after so many events of a stream, or so many bytes of a plain answer.
        raw: Bytes sent in place of the body, for answers that are no API's.
        headers: Further headers of the answer.
        content_type: Of an answer that is no stream.
        number: Place in the script; set when the turn is chosen. Agents drop results whose call id they have seen.
    """

    text: str = "done"
    calls: tuple[ToolCall, ...] = ()
    input_tokens: int = 100
    output_tokens: int = 20
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    status: int = 200
    error: str = "scripted error"
    delay_seconds: float = 0.0
    break_after: int | None = None
    raw: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    number: int = 0


@dataclass(frozen=True)
class Seen:
    """One request as it reached the service."""

    method: str
    path: str
    """With its query string."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    json: Any
    """The parsed body; None where there is none."""


def tool_results(body: JsonObject) -> int:
    """Count the results of tools in a conversation, in any of the three request forms."""
    items = body.get("messages") or body.get("input") or []
    if isinstance(items, str):
        return 0
    count = 0
    for item in items:
        if item.get("role") == "tool" or str(item.get("type", "")).endswith("_call_output"):
            count += 1
        elif isinstance(item.get("content"), list):
            count += sum(part.get("type") == "tool_result" for part in item["content"])
    return count


def choose(script: tuple[Turn, ...], body: JsonObject) -> Turn:
    """Give the turn that answers a request; one that offers no tools gets words only."""
    number = min(tool_results(body), len(script) - 1)
    turn = script[number]
    if turn.calls and not body.get("tools"):
        return Turn(text="a title")
    return replace(turn, number=number)
