"""Answers in the form of Anthropic's Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.services.script import JsonObject, Turn


def plain(turn: Turn, model: str) -> JsonObject:
    """Make a whole message."""
    content: list[JsonObject] = [{"type": "text", "text": turn.text}] if turn.text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{turn.number}_{index}", "name": call.name, "input": dict(call.arguments)}
        for index, call in enumerate(turn.calls)
    ]
    return {
        "id": f"msg_{turn.number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if turn.calls else "end_turn",
        "stop_sequence": None,
        "usage": _usage(turn, turn.output_tokens),
    }


def events(turn: Turn, model: str) -> Iterator[bytes]:
    """Make the events of a stream, each as it goes over the wire."""
    message = plain(turn, model)
    start = message | {"content": [], "stop_reason": None, "usage": _usage(turn, 1)}
    yield _event("message_start", {"message": start})
    yield _event("ping", {})
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, pieces = {"type": "text", "text": ""}, _halves(block["text"])
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        else:
            empty, pieces = block | {"input": {}}, _halves(json.dumps(block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        yield _event("content_block_start", {"index": index, "content_block": empty})
        for delta in deltas:
            yield _event("content_block_delta", {"index": index, "delta": delta})
        yield _event("content_block_stop", {"index": index})
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", {"delta": end, "usage": {"output_tokens": turn.output_tokens}})
    yield _event("message_stop", {})


def error(turn: Turn) -> JsonObject:
    """Make an error."""
    return {"type": "error", "error": {"type": "api_error", "message": turn.error}}


def _usage(turn: Turn, output: int) -> JsonObject:
    return {
        "input_tokens": turn.input_tokens,
        "output_tokens": output,
        "cache_read_input_tokens": turn.cache_read_tokens,
        "cache_creation_input_tokens": turn.cache_write_tokens,
    }


def _event(name: str, data: JsonObject) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def _halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2
    return text[:middle], text[middle:]
