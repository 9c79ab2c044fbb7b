"""Answers in the forms of OpenAI's Responses and Chat Completions APIs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.services.script import JsonObject, Turn


def response(turn: Turn, model: str) -> JsonObject:
    """Make a whole response."""
    prompt = turn.input_tokens + turn.cache_read_tokens
    return {
        "id": f"resp_{turn.number}",
        "object": "response",
        "created_at": 1767322800,
        "status": "completed",
        "model": model,
        "output": _output(turn),
        "usage": {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": turn.cache_read_tokens},
            "output_tokens": turn.output_tokens,
            "output_tokens_details": {"reasoning_tokens": turn.reasoning_tokens},
            "total_tokens": prompt + turn.output_tokens,
        },
    }


def response_events(turn: Turn, model: str) -> Iterator[bytes]:
    """Make the events of a streamed response, each as it goes over the wire."""
    whole = response(turn, model)
    begun = whole | {"status": "in_progress", "output": [], "usage": None}
    yield _event("response.created", {"response": begun})
    for index, item in enumerate(whole["output"]):
        if item["type"] == "message":
            empty = item | {"content": [], "status": "in_progress"}
            place = {"item_id": item["id"], "output_index": index, "content_index": 0}
            yield _event("response.output_item.added", {"output_index": index, "item": empty})
            yield _event("response.content_part.added", {**place, "part": {**item["content"][0], "text": ""}})
            yield _event("response.output_text.delta", {**place, "delta": turn.text})
            yield _event("response.output_text.done", {**place, "text": turn.text})
        else:
            yield _event("response.output_item.added", {"output_index": index, "item": item | {"arguments": ""}})
        yield _event("response.output_item.done", {"output_index": index, "item": item})
    yield _event("response.completed", {"response": whole})


def completion(turn: Turn, model: str) -> JsonObject:
    """Make a whole chat completion."""
    message: JsonObject = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = _chat_calls(turn)
    return {
        **_chat_head(model, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(turn)}],
        "usage": _chat_usage(turn),
    }


def completion_events(turn: Turn, model: str, *, usage: bool) -> Iterator[bytes]:
    """Make the events of a streamed chat completion, with the final usage only where it was asked for."""
    head = _chat_head(model, "chat.completion.chunk")
    deltas: list[JsonObject] = [{"role": "assistant", "content": turn.text}]
    if turn.calls:
        deltas.append({"tool_calls": [{"index": place, **call} for place, call in enumerate(_chat_calls(turn))]})
    for delta in deltas:
        yield _data(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _data(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(turn)}]})
    if usage:
        yield _data(head | {"choices": [], "usage": _chat_usage(turn)})
    yield b"data: [DONE]\n\n"


def error(turn: Turn) -> JsonObject:
    """Make an error."""
    return {"error": {"message": turn.error, "type": "server_error", "param": None, "code": None}}


def _output(turn: Turn) -> list[JsonObject]:
    output: list[JsonObject] = []
    if turn.text:
        part = {"type": "output_text", "text": turn.text, "annotations": []}
        output.append(
            {
                "type": "message",
                "id": f"msg_{turn.number}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for index, call in enumerate(turn.calls):
        arguments = json.dumps(dict(call.arguments))
        names = {"id": f"fc_{turn.number}_{index}", "call_id": f"call_{turn.number}_{index}", "name": call.name}
        output.append({"type": "function_call", **names, "arguments": arguments, "status": "completed"})
    return output


def _chat_head(model: str, kind: str) -> JsonObject:
    return {"id": "chatcmpl-standin", "object": kind, "created": 1767322800, "model": model}


def _chat_calls(turn: Turn) -> list[JsonObject]:
    return [
        {
            "id": f"call_{turn.number}_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
        }
        for index, call in enumerate(turn.calls)
    ]


def _chat_usage(turn: Turn) -> JsonObject:
    prompt = turn.input_tokens + turn.cache_read_tokens
    return {
        "prompt_tokens": prompt,
        "prompt_tokens_details": {"cached_tokens": turn.cache_read_tokens},
        "completion_tokens": turn.output_tokens,
        "completion_tokens_details": {"reasoning_tokens": turn.reasoning_tokens},
        "total_tokens": prompt + turn.output_tokens,
    }


def _finish(turn: Turn) -> str:
    return "tool_calls" if turn.calls else "stop"


def _event(name: str, data: JsonObject) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def _data(data: JsonObject) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()
