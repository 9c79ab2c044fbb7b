"""What passes to services of OpenAI's style. One table for each API; to allow a new field, name it here."""

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

_TYPE = {"type": scalar}
_CONTENT = RefusalReason.CONTENT_TYPE
_ITEM = {**_TYPE, "id": text, "status": scalar}

_NAME = matching(r"[A-Za-z0-9_.-]{1,128}", "a name of a tool")
_MODEL = matching(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}", "a name of a model", RefusalReason.MODEL)
# Pictures come with the request; from any other address, or by file id, the service would fetch them.
_INLINE = matching(
    r"data:image/[a-z0-9.+-]{1,40};base64,[A-Za-z0-9+/=]*", "an image as data:image/...;base64", _CONTENT
)

_COMMON: dict[str, Shape] = {
    "model": _MODEL,
    "stream": flag,
    "store": only(False, None),
    "parallel_tool_calls": flag,
    "temperature": number,
    "top_p": number,
    "top_logprobs": count,
    "metadata": mapping(scalar),
    "user": text,
    "safety_identifier": text,
    "prompt_cache_key": text,
    "prompt_cache_retention": scalar,
    # What costs more is the operator's to choose.
    "service_tier": only("auto", "default", "flex", None),
}

_PARTS = array(
    tagged(
        {
            "input_text|output_text": fields(
                {**_TYPE, "text": text, "annotations": array(anything), "logprobs": array(anything)}
            ),
            "refusal": fields({**_TYPE, "refusal": text}),
            "input_image": fields({**_TYPE, "image_url": _INLINE, "detail": scalar}, required=("image_url",)),
        },
        _CONTENT,
    )
)
_OUTPUT = text_or(_PARTS)

_CALL = {**_ITEM, "call_id": text, "name": text, "namespace": text}
_ANSWER = {**_ITEM, "call_id": text, "output": _OUTPUT}

_FUNCTION = fields(
    {**_TYPE, "name": _NAME, "description": text, "parameters": anything, "strict": flag, "defer_loading": flag},
    required=("name",),
)
_CUSTOM = fields(
    {**_TYPE, "name": _NAME, "description": text, "format": anything, "defer_loading": flag}, required=("name",)
)
_OWN_TOOLS: dict[str, Shape] = {"function": _FUNCTION, "custom": _CUSTOM}
_LOCAL = fields({"type": only("local")}, required=("type",))

# Tools that the agent runs itself. A tool of any other type would run at the service, with its network.
_TOOL = tagged(
    {
        **_OWN_TOOLS,
        "namespace": fields(
            {
                **_TYPE,
                "name": _NAME,
                "description": text,
                "tools": array(tagged(_OWN_TOOLS, RefusalReason.TOOL_TYPE)),
            },
            required=("name",),
        ),
        "local_shell|apply_patch": fields(_TYPE),
        "shell": fields({**_TYPE, "environment": _LOCAL}, required=("environment",)),
        "tool_search": fields(
            {**_TYPE, "execution": only("client"), "description": text, "parameters": anything},
            required=("execution",),
        ),
    },
    RefusalReason.TOOL_TYPE,
)

_INPUT = tagged(
    {
        "message": fields(
            {
                **_ITEM,
                "role": only("user", "assistant", "system", "developer"),
                "content": text_or(_PARTS),
                "phase": scalar,
            }
        ),
        "reasoning": fields(
            {
                **_ITEM,
                "summary": array(fields({**_TYPE, "text": text})),
                "content": array(fields({**_TYPE, "text": text})),
                "encrypted_content": text,
            }
        ),
        "function_call": fields({**_CALL, "arguments": text}),
        "custom_tool_call": fields({**_CALL, "input": text}),
        "local_shell_call|shell_call": fields({**_CALL, "action": anything, "environment": _LOCAL}),
        "apply_patch_call": fields({**_CALL, "operation": anything}),
        "function_call_output|custom_tool_call_output": fields({**_ANSWER, "name": text}),
        "local_shell_call_output|apply_patch_call_output": fields({**_ANSWER, "output": text}),
        "shell_call_output": fields({**_ANSWER, "output": anything, "max_output_length": count}),
        "tool_search_call": fields({**_CALL, "arguments": anything, "execution": only("client")}),
        "tool_search_output": fields({**_ITEM, "call_id": text, "execution": only("client"), "tools": array(_TOOL)}),
        "compaction|context_compaction": fields({**_ITEM, "encrypted_content": text}),
        "compaction_trigger": fields(_TYPE),
    },
    _CONTENT,
    default="message",
)

RESPONSE = fields(
    {
        **_COMMON,
        "input": text_or(array(_INPUT)),
        "instructions": text,
        "tools": array(_TOOL),
        "tool_choice": text_or(
            fields({"type": only("function", "custom", "allowed_tools"), "name": text, "mode": text, "tools": anything})
        ),
        "reasoning": fields({"effort": scalar, "summary": scalar, "generate_summary": scalar, "context": scalar}),
        "include": array(only("reasoning.encrypted_content", "message.output_text.logprobs")),
        "text": fields({"verbosity": scalar, "format": anything}),
        "stream_options": fields({"include_obfuscation": flag}),
        "truncation": scalar,
        "max_output_tokens": count,
        "max_tool_calls": count,
        "client_metadata": mapping(scalar),
        "context_management": array(fields({"type": only("compaction"), "compact_threshold": count})),
        # State at the service would outlive the trial and could come from another one.
        "background": only(False, None),
        "previous_response_id": only(None),
        "conversation": only(None),
        "prompt": only(None),
    },
    required=("model", "input"),
)
"""The body of ``/v1/responses``."""

_CHAT_PARTS = array(
    tagged(
        {
            "text": fields({**_TYPE, "text": text}),
            "refusal": fields({**_TYPE, "refusal": text}),
            "image_url": fields(
                {**_TYPE, "image_url": fields({"url": _INLINE, "detail": scalar}, required=("url",))},
                required=("image_url",),
            ),
        },
        _CONTENT,
    )
)
_CHAT_CALL = tagged(
    {
        "function": fields({**_TYPE, "id": text, "function": fields({"name": text, "arguments": text})}),
        "custom": fields({**_TYPE, "id": text, "custom": fields({"name": text, "input": text})}),
    },
    _CONTENT,
    default="function",
)
_CHAT_TOOL = tagged(
    {
        "function": fields({**_TYPE, "function": _FUNCTION}, required=("function",)),
        "custom": fields({**_TYPE, "custom": _CUSTOM}, required=("custom",)),
    },
    RefusalReason.TOOL_TYPE,
)

CHAT = fields(
    {
        **_COMMON,
        "messages": array(
            fields(
                {
                    "role": only("system", "developer", "user", "assistant", "tool"),
                    "content": text_or(_CHAT_PARTS),
                    "name": text,
                    "refusal": text,
                    "reasoning": text,
                    "reasoning_content": text,
                    "tool_call_id": text,
                    "tool_calls": array(_CHAT_CALL),
                },
                required=("role",),
            )
        ),
        "tools": array(_CHAT_TOOL),
        "tool_choice": text_or(
            fields({"type": only("function", "custom"), "function": fields({"name": text}), "custom": anything})
        ),
        "stream_options": fields({"include_usage": flag, "include_obfuscation": flag}),
        "reasoning_effort": scalar,
        "verbosity": scalar,
        "response_format": anything,
        "max_tokens": count,
        "max_completion_tokens": count,
        "stop": text_or(array(text)),
        "seed": count,
        "presence_penalty": number,
        "frequency_penalty": number,
        "logprobs": flag,
        "logit_bias": mapping(number),
        "n": only(1, None),
    },
    required=("model", "messages"),
)
"""The body of ``/v1/chat/completions``."""
