"""What passes to services of Anthropic's style. One table; to allow a new field, name it here."""

from __future__ import annotations

from akarena.gateway.shapes import (
    Shape,
    anything,
    array,
    count,
    fields,
    flag,
    mapping,
    matching,
    number,
    only,
    scalar,
    tagged,
    text,
    text_or,
)
from akarena.records.audit import RefusalReason

_CACHE = {"cache_control": fields({"type": scalar, "ttl": scalar, "scope": scalar})}
_TYPE = {"type": scalar}

_TEXT = fields({**_TYPE, **_CACHE, "text": text, "citations": only(None)})
_TEXTS = array(tagged({"text": _TEXT}, RefusalReason.CONTENT_TYPE))

# Content comes with the request. By URL or file id the service would fetch it, and a prompt could tell it from where.
_BYTES = fields({**_TYPE, "media_type": text, "data": text})
_IMAGE_SOURCE = tagged({"base64": _BYTES}, RefusalReason.CONTENT_TYPE)
_DOCUMENT_SOURCE = tagged(
    {"base64|text": _BYTES, "content": fields({**_TYPE, "content": text_or(_TEXTS)})}, RefusalReason.CONTENT_TYPE
)

_PLAIN_BLOCKS: dict[str, Shape] = {
    "text": _TEXT,
    "image": fields({**_TYPE, **_CACHE, "source": _IMAGE_SOURCE}, required=("source",)),
    "document": fields(
        {
            **_TYPE,
            **_CACHE,
            "source": _DOCUMENT_SOURCE,
            "title": text,
            "context": text,
            "citations": fields({"enabled": flag}),
        },
        required=("source",),
    ),
}
_RESULT_BLOCKS = array(
    tagged(
        {**_PLAIN_BLOCKS, "tool_reference": fields({**_TYPE, **_CACHE, "tool_name": text})}, RefusalReason.CONTENT_TYPE
    )
)
_BLOCKS = array(
    tagged(
        {
            **_PLAIN_BLOCKS,
            "tool_use": fields(
                {
                    **_TYPE,
                    **_CACHE,
                    "id": text,
                    "name": text,
                    "input": anything,
                    "caller": fields({"type": only("direct")}),
                }
            ),
            "tool_result": fields(
                {**_TYPE, **_CACHE, "tool_use_id": text, "content": text_or(_RESULT_BLOCKS), "is_error": flag}
            ),
            "thinking": fields({**_TYPE, "thinking": text, "signature": text}),
            "redacted_thinking": fields({**_TYPE, "data": text}),
            "compaction": fields({**_TYPE, **_CACHE, "content": text, "encrypted_content": text}),
        },
        RefusalReason.CONTENT_TYPE,
    )
)

_MESSAGE = fields({"role": only("user", "assistant", "system"), "content": text_or(_BLOCKS)}, required=("role",))

# Tools that the agent runs itself. A tool of any other type would run at the service, with its network.
_NAMED = {
    **_TYPE,
    **_CACHE,
    "name": matching(r"[A-Za-z0-9_.-]{1,128}", "a name of a tool"),
    "strict": flag,
    "defer_loading": flag,
    "eager_input_streaming": flag,
    "input_examples": anything,
}
_TOOL = tagged(
    {
        "custom": fields({**_NAMED, "description": text, "input_schema": anything}, required=("name",)),
        r"bash_\d{8}": fields(_NAMED, required=("name",)),
        r"text_editor_\d{8}": fields({**_NAMED, "max_characters": count}, required=("name",)),
        r"memory_\d{8}": fields(_NAMED, required=("name",)),
    },
    RefusalReason.TOOL_TYPE,
    default="custom",
)

_EDITS = array(
    tagged(
        {
            r"clear_thinking_\d{8}|clear_tool_uses_\d{8}|compact_\d{8}": mapping(anything),
        },
        RefusalReason.VALUE,
    )
)

REQUEST = fields(
    {
        "model": matching(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,99}", "a name of a model", RefusalReason.MODEL),
        "messages": array(_MESSAGE),
        "system": text_or(_TEXTS),
        "max_tokens": count,
        "stream": flag,
        "tools": array(_TOOL),
        "tool_choice": fields({"type": scalar, "name": text, "disable_parallel_tool_use": flag}),
        "thinking": fields({"type": scalar, "budget_tokens": count, "display": scalar}),
        "output_config": fields(
            {"effort": scalar, "format": anything, "task_budget": fields({"type": scalar, "total": count})}
        ),
        "output_format": anything,
        "context_management": fields({"edits": _EDITS}),
        "metadata": fields({"user_id": text}),
        "stop_sequences": array(text),
        "temperature": number,
        "top_p": number,
        "top_k": number,
        **_CACHE,
        # What costs more is the operator's to choose.
        "service_tier": only("auto", "standard_only", None),
        "speed": only("standard", None),
    },
    required=("model", "messages"),
)
"""The body of ``/v1/messages`` and ``/v1/messages/count_tokens``."""

BETAS = (
    "advanced-tool-use",
    "cache-diagnosis",
    "claude-code",
    "compact",
    "context-1m",
    "context-management",
    "effort",
    "extended-cache-ttl",
    "fine-grained-tool-streaming",
    "interleaved-thinking",
    "mid-conversation-system",
    "output-128k",
    "prompt-caching-scope",
    "redact-thinking",
    "structured-outputs",
    "task-budgets",
    "thinking-token-count",
    "token-counting",
    "token-efficient-tools",
)
"""Beta features that pass, without their dates. Others are taken out of the header, and the audit names them."""
