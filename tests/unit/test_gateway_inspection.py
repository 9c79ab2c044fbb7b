"""What passes the gateway, and what does not, for each style."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from akarena.errors import UserError
from akarena.gateway import BUILT_IN, Service, Style, find
from akarena.gateway.inspection import (
    ROUTES,
    Inspected,
    Route,
    check_headers,
    find_route,
    inspect_body,
    outgoing_headers,
)
from akarena.gateway.refusal import Denial
from akarena.records.audit import RefusalReason as Why

MESSAGES, RESPONSES, CHAT = "/v1/messages", "/v1/responses", "/v1/chat/completions"
BASE: dict[str, dict[str, Any]] = {
    MESSAGES: {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]},
    RESPONSES: {"model": "m", "input": [{"type": "message", "role": "user", "content": "hello"}]},
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "hello"}]},
}


def route(path: str) -> Route:
    return next(item for routes in ROUTES.values() for item in routes if item.path == path and item.method == "POST")


def inspect(path: str, change: dict[str, Any], models: tuple[str, ...] = ()) -> Inspected:
    return inspect_body(route(path), json.dumps(copy.deepcopy(BASE[path]) | change).encode(), models)


def denial(path: str, change: dict[str, Any], models: tuple[str, ...] = ()) -> Denial:
    with pytest.raises(Denial) as caught:
        inspect(path, change, models)
    return caught.value


def user(*parts: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}]}


def item(value: Any) -> dict[str, Any]:
    return {"input": [value]}


PIXEL = "data:image/png;base64,iVBORw0KGgo="

PASSES: list[tuple[str, dict[str, Any]]] = [
    (MESSAGES, {}),
    (MESSAGES, {"stream": True, "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
    (MESSAGES, {"system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]}),
    (MESSAGES, {"metadata": {"user_id": "u"}, "context_management": {"edits": [{"type": "clear_thinking_20251015"}]}}),
    (MESSAGES, {"tools": [{"name": "Bash", "description": "d", "input_schema": {"type": "object", "x": [1]}}]}),
    (MESSAGES, {"tools": [{"type": "custom", "name": "web_search", "input_schema": {}}]}),
    (MESSAGES, {"tools": [{"type": "bash_20250124", "name": "bash"}]}),
    (MESSAGES, {"tools": [{"type": "text_editor_20250728", "name": "e", "max_characters": 10}]}),
    (MESSAGES, user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aa"}})),
    (MESSAGES, user({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "aa"}})),
    (MESSAGES, user({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}]})),
    (MESSAGES, user({"type": "tool_use", "id": "t", "name": "n", "input": {"type": "url", "url": "https://x"}})),
    (MESSAGES, user({"type": "thinking", "thinking": "t", "signature": "s"})),
    (RESPONSES, {}),
    (RESPONSES, {"input": "hello", "store": False, "include": ["reasoning.encrypted_content"]}),
    (RESPONSES, {"previous_response_id": None, "conversation": None, "background": False, "prompt": None}),
    (RESPONSES, {"reasoning": {"effort": "high", "summary": "auto"}, "client_metadata": {"a": "b"}}),
    (RESPONSES, {"tools": [{"type": "function", "name": "f", "parameters": {}, "strict": False}]}),
    (RESPONSES, {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]}]}),
    (RESPONSES, {"tools": [{"type": "local_shell"}, {"type": "apply_patch"}, {"type": "custom", "name": "c"}]}),
    (RESPONSES, {"tools": [{"type": "shell", "environment": {"type": "local"}}]}),
    (RESPONSES, item({"role": "user", "content": [{"type": "input_image", "image_url": PIXEL}]})),
    (RESPONSES, item({"type": "function_call_output", "call_id": "c", "output": "x"})),
    (RESPONSES, item({"type": "reasoning", "summary": [], "encrypted_content": "x"})),
    (CHAT, {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "n": 1}),
    (CHAT, user({"type": "image_url", "image_url": {"url": PIXEL}})),
]

REFUSED: list[tuple[str, dict[str, Any], Why, str]] = [
    (MESSAGES, {"mcp_servers": [{"type": "url", "url": "https://x"}]}, Why.FIELD, "mcp_servers"),
    (MESSAGES, {"container": "c"}, Why.FIELD, "container"),
    (MESSAGES, {"inference_geo": "x"}, Why.FIELD, "inference_geo"),
    (MESSAGES, {"service_tier": "priority"}, Why.VALUE, "service_tier"),
    (MESSAGES, {"speed": "fast"}, Why.VALUE, "speed"),
    (MESSAGES, {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, Why.TOOL_TYPE, "tools[0].type"),
    (MESSAGES, {"tools": [{"type": "web_fetch_20250910", "name": "w"}]}, Why.TOOL_TYPE, "tools[0].type"),
    (MESSAGES, {"tools": [{"type": "code_execution_20250825", "name": "c"}]}, Why.TOOL_TYPE, "tools[0].type"),
    (MESSAGES, {"tools": [{"type": "computer_20250124", "name": "c"}]}, Why.TOOL_TYPE, "tools[0].type"),
    (MESSAGES, {"tools": [{"type": "mcp_toolset", "name": "c"}]}, Why.TOOL_TYPE, "tools[0].type"),
    (MESSAGES, {"tools": [{"type": "bash_20250124x", "name": "c"}]}, Why.TOOL_TYPE, "tools[0].type"),
    (MESSAGES, {"tools": [{"type": ["custom"], "name": "c"}]}, Why.TOOL_TYPE, "tools[0].type"),
    (
        MESSAGES,
        {"tools": [{"name": "c", "allowed_callers": ["code_execution_20250825"]}]},
        Why.FIELD,
        "allowed_callers",
    ),
    (MESSAGES, user({"type": "image", "source": {"type": "url", "url": "https://x"}}), Why.CONTENT_TYPE, "source.type"),
    (MESSAGES, user({"type": "image", "source": {"type": "file", "file_id": "f"}}), Why.CONTENT_TYPE, "source.type"),
    (MESSAGES, user({"type": "document", "source": {"type": "url", "url": "x"}}), Why.CONTENT_TYPE, "source.type"),
    (
        MESSAGES,
        user({"type": "tool_result", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}),
        Why.CONTENT_TYPE,
        "messages[0].content[0].content[0].source.type",
    ),
    (
        MESSAGES,
        user({"type": "document", "source": {"type": "content", "content": [{"type": "image"}]}}),
        Why.CONTENT_TYPE,
        "source.content[0].type",
    ),
    (MESSAGES, user({"type": "image", "source": {"type": "base64", "url": "https://x"}}), Why.FIELD, "source.url"),
    (MESSAGES, user({"type": "container_upload", "file_id": "f"}), Why.CONTENT_TYPE, "content[0].type"),
    (MESSAGES, user({"type": "server_tool_use", "id": "i"}), Why.CONTENT_TYPE, "content[0].type"),
    (MESSAGES, {"system": [{"type": "image"}]}, Why.CONTENT_TYPE, "system[0].type"),
    (MESSAGES, {"messages": {"role": "user"}}, Why.VALUE, "messages"),
    (MESSAGES, {"max_tokens": {"a": 1}}, Why.VALUE, "max_tokens"),
    (MESSAGES, {"max_tokens": True}, Why.VALUE, "max_tokens"),
    (MESSAGES, {"model": {"id": "m"}}, Why.MODEL, "model"),
    (MESSAGES, {"model": "m\r\nx: y"}, Why.MODEL, "model"),
    (RESPONSES, {"store": True}, Why.VALUE, "store"),
    (RESPONSES, {"previous_response_id": "resp_1"}, Why.VALUE, "previous_response_id"),
    (RESPONSES, {"conversation": "conv_1"}, Why.VALUE, "conversation"),
    (RESPONSES, {"background": True}, Why.VALUE, "background"),
    (RESPONSES, {"prompt": {"id": "pmpt_1"}}, Why.VALUE, "prompt"),
    (RESPONSES, {"service_tier": "priority"}, Why.VALUE, "service_tier"),
    (RESPONSES, {"include": ["file_search_call.results"]}, Why.VALUE, "include[0]"),
    (RESPONSES, {"tools": [{"type": "web_search"}]}, Why.TOOL_TYPE, "tools[0].type"),
    (RESPONSES, {"tools": [{"type": "web_search_preview"}]}, Why.TOOL_TYPE, "tools[0].type"),
    (RESPONSES, {"tools": [{"type": "file_search", "vector_store_ids": []}]}, Why.TOOL_TYPE, "tools[0].type"),
    (RESPONSES, {"tools": [{"type": "code_interpreter", "container": {}}]}, Why.TOOL_TYPE, "tools[0].type"),
    (RESPONSES, {"tools": [{"type": "computer_use_preview"}]}, Why.TOOL_TYPE, "tools[0].type"),
    (RESPONSES, {"tools": [{"type": "mcp", "server_url": "https://x"}]}, Why.TOOL_TYPE, "tools[0].type"),
    (RESPONSES, {"tools": [{"type": "image_generation"}]}, Why.TOOL_TYPE, "tools[0].type"),
    (RESPONSES, {"tools": [{"name": "f"}]}, Why.TOOL_TYPE, "tools[0].type"),
    (RESPONSES, {"tools": [{"type": "shell"}]}, Why.FIELD, "environment"),
    (
        RESPONSES,
        {"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]},
        Why.VALUE,
        "environment.type",
    ),
    (RESPONSES, {"tools": [{"type": "tool_search"}]}, Why.FIELD, "execution"),
    (RESPONSES, {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "mcp"}]}]}, Why.TOOL_TYPE, "tools[0]"),
    (RESPONSES, item({"type": "tool_search_output", "tools": [{"type": "web_search"}]}), Why.TOOL_TYPE, "tools[0]"),
    (RESPONSES, {"tool_choice": {"type": "web_search"}}, Why.VALUE, "tool_choice.type"),
    (RESPONSES, item({"type": "item_reference", "id": "i"}), Why.CONTENT_TYPE, "input[0].type"),
    (RESPONSES, item({"type": "mcp_approval_response"}), Why.CONTENT_TYPE, "input[0].type"),
    (RESPONSES, item({"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}), Why.CONTENT_TYPE, "type"),
    (
        RESPONSES,
        item({"role": "user", "content": [{"type": "input_image", "image_url": "https://x/a.png"}]}),
        Why.CONTENT_TYPE,
        "image_url",
    ),
    (RESPONSES, item({"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}), Why.FIELD, "file_id"),
    (
        RESPONSES,
        item({"type": "function_call_output", "output": [{"type": "input_image", "image_url": "http://x"}]}),
        Why.CONTENT_TYPE,
        "output[0].image_url",
    ),
    (CHAT, {"store": True}, Why.VALUE, "store"),
    (CHAT, {"web_search_options": {}}, Why.FIELD, "web_search_options"),
    (CHAT, {"n": 5}, Why.VALUE, "n"),
    (CHAT, {"n": True}, Why.VALUE, "n"),
    (CHAT, user({"type": "image_url", "image_url": {"url": "https://x"}}), Why.CONTENT_TYPE, "image_url.url"),
    (CHAT, user({"type": "file", "file": {"file_id": "f"}}), Why.CONTENT_TYPE, "content[0].type"),
    (CHAT, {"tools": [{"type": "mcp"}]}, Why.TOOL_TYPE, "tools[0].type"),
]


@pytest.mark.parametrize(("path", "change"), PASSES)
def test_passes(path: str, change: dict[str, Any]) -> None:
    sent = json.loads(inspect(path, change).body)
    asked = BASE[path] | change
    assert sent == asked | ({} if path == MESSAGES else {"store": False})


@pytest.mark.parametrize(("path", "change", "reason", "place"), REFUSED)
def test_refused_and_the_place_is_named(path: str, change: dict[str, Any], reason: Why, place: str) -> None:
    found = denial(path, change)
    assert found.reason is reason
    assert place in found.detail.split(": ")[0]
    assert found.status == 403


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES, CHAT])
def test_an_unknown_field_is_refused_by_name(path: str) -> None:
    found = denial(path, {"brand_new": 1})
    assert found.reason is Why.FIELD
    assert found.detail.startswith("brand_new: ")


@pytest.mark.parametrize(
    "data",
    [
        b'{"model":"m","messages":[],"model":"n"}',
        b'{"model":"m","messages":[{"role":"user","content":"a","content":"b"}]}',
        b'{"model":"m","messages":[],"temperature":NaN}',
        b'{"model":"m","messages":[],"temperature":1e999}',
        b'{"model":"m","messages":[]} {}',
        b"[" * 100_000,
        b'{"model":"m","messages":' + b"[" * 70 + b"]" * 70 + b"}",
        b"\xff",
        b"",
        b'{"model":"m","messages":[{"role":"user","content":"\\ud800"}]}',
        b"[]",
    ],
)
def test_only_strict_json(data: bytes) -> None:
    with pytest.raises(Denial) as caught:
        inspect_body(route(MESSAGES), data, ())
    assert (caught.value.reason, caught.value.status) == (Why.NOT_JSON, 400)


def test_the_body_is_written_anew() -> None:
    data = b'{ "model" : "m", "messages":[{"role":"user","\\u0063ontent":"\\u00e4"}] , "max_tokens": 5 }\n'
    assert inspect_body(route(MESSAGES), data, ()).body == (
        '{"model":"m","messages":[{"role":"user","content":"ä"}],"max_tokens":5}'.encode()
    )


def test_models_are_pinned() -> None:
    assert inspect(MESSAGES, {}, ("m",)).model == "m"
    found = denial(MESSAGES, {"model": "m-large"}, ("m",))
    assert (found.reason, found.detail) == (Why.MODEL, "model m-large is not one of this trial's: m")


def test_usage_is_asked_for_in_a_stream_of_chat() -> None:
    change = {"stream": True, "stream_options": {"include_usage": False, "include_obfuscation": False}}
    sent = json.loads(inspect(CHAT, change).body)
    assert sent["stream_options"] == {"include_usage": True, "include_obfuscation": False}
    assert "stream_options" not in json.loads(inspect(CHAT, {}).body)


def test_tools_are_listed() -> None:
    tools = [{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]}, {"type": "local_shell"}]
    assert inspect(RESPONSES, {"tools": tools}).tools == ("namespace:n", "namespace:n.f", "local_shell")
    assert inspect(MESSAGES, {"tools": [{"name": "Bash"}]}).tools == ("Bash",)
    assert inspect(CHAT, {"tools": [{"type": "function", "function": {"name": "f"}}]}).tools == ("f",)


def test_the_reservation_covers_prompt_and_answer() -> None:
    assert inspect(MESSAGES, {"max_tokens": 5000}).reserve_tokens >= 5000
    assert inspect(RESPONSES, {}).reserve_tokens > 30_000
    assert inspect_body(route("/v1/messages/count_tokens"), json.dumps(BASE[MESSAGES]).encode(), ()).reserve_tokens == 0


@pytest.mark.parametrize(
    "target",
    ["/v1/messages", "/v1/messages?beta=true", "/v1/messages/count_tokens", "/v1/messages/count_tokens?beta=true"],
)
def test_routes(target: str) -> None:
    assert find_route(Style.ANTHROPIC, "POST", target).path == target.partition("?")[0]


@pytest.mark.parametrize(
    "target",
    [
        "/v1/messages/",
        "//v1/messages",
        "/v1/../v1/messages",
        "/v1/messages/..",
        "/v1/messages/batches",
        "/v1/%6dessages",
        "/v1/messages%2f",
        "/v1/messages%3fbeta=true",
        "/v1/messages#x",
        "/V1/messages",
        "http://api.anthropic.com/v1/messages",
        "https://evil.example/v1/messages",
        "*",
        "",
        "/v1/files",
        "/v1/responses",
        "/v1/organizations",
    ],
)
def test_one_way_to_write_each_path(target: str) -> None:
    with pytest.raises(Denial) as caught:
        find_route(Style.ANTHROPIC, "POST", target)
    assert caught.value.reason is Why.ROUTE


@pytest.mark.parametrize("query", ["", "beta=false", "beta=true&beta=true", "beta=true&x=1", "beta=tru%65", "x"])
def test_queries_are_listed(query: str) -> None:
    with pytest.raises(Denial) as caught:
        find_route(Style.ANTHROPIC, "POST", f"/v1/messages?{query}")
    assert caught.value.reason is Why.QUERY


@pytest.mark.parametrize(
    ("method", "target"), [("GET", MESSAGES), ("PUT", MESSAGES), ("DELETE", "/v1/models"), ("CONNECT", "x:443")]
)
def test_methods_are_listed(method: str, target: str) -> None:
    with pytest.raises(Denial):
        find_route(Style.ANTHROPIC, method, target)
    assert find_route(Style.OPENAI, "GET", "/v1/models?client_version=0.171.0").body is None


@pytest.mark.parametrize(("name", "value"), [("Upgrade", "websocket"), ("Content-Encoding", "gzip")])
def test_headers_that_change_the_request(name: str, value: str) -> None:
    check_headers([("Content-Encoding", "identity"), ("X-Anything", "passes, and is dropped")])
    with pytest.raises(Denial) as caught:
        check_headers([(name, value)])
    assert caught.value.reason is Why.HEADER


def test_outgoing_headers_are_ours() -> None:
    sent = {
        "authorization": "Bearer placeholder",
        "x-api-key": "placeholder",
        "cookie": "a=b",
        "x-forwarded-for": "127.0.0.1",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "effort-2025-11-24, files-api-2025-04-14,claude-code-20250219,effort-2025-11-24,x\ty",
    }
    headers, dropped = outgoing_headers(find("anthropic"), sent, "the-key")
    assert headers == {
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "akarena-gateway",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "effort-2025-11-24,claude-code-20250219",
        "x-api-key": "the-key",
    }
    assert dropped == ["files-api-2025-04-14", "x\\ty"]
    assert outgoing_headers(find("openai"), sent, "the-key")[0]["authorization"] == "Bearer the-key"
    assert "authorization" not in outgoing_headers(find("openai"), sent, None)[0]


class TestServices:
    def test_built_in(self) -> None:
        assert {name: service.style.value for name, service in BUILT_IN.items()} == {
            "anthropic": "anthropic",
            "openai": "openai",
            "cursor": "tunnel",
        }
        assert [service.inspectable for service in BUILT_IN.values()] == [True, True, False]
        assert [service.note for service in BUILT_IN.values()] == ["", "", "vendor tunnel, not inspectable"]
        with pytest.raises(UserError, match="did you mean openai"):
            find("opnai")

    def test_another_address_does_not_get_the_vendors_key(self) -> None:
        assert find("openai").at("http://127.0.0.1:8000").key_variable is None
        assert find("openai").at("https://models.example/openai", "MY_KEY").key_variable == "MY_KEY"

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "api.openai.com",
            "ftp://x.example",
            "https://user:secret@x.example",
            "https://x.example/?key=1",
            "https://x.example?",
            "https://x.example/#a",
            "https://x.example/",
            "https://x.example/v1",
            "https://x.example/../y",
            "https://x.example:99999",
            "https://",
        ],
    )
    def test_base_urls(self, url: str) -> None:
        with pytest.raises(UserError, match=r"base URL|port|Port"):
            find("openai").at(url)

    @pytest.mark.parametrize(
        "host", ["127.0.0.1", "1.1", "[::1]", "0x7f.1", "localhost", "A.example", "a.example.", ""]
    )
    def test_hosts_of_tunnels_are_exact_names(self, host: str) -> None:
        with pytest.raises(UserError, match="exact lower-case host names"):
            Service("x", Style.TUNNEL, hosts=(host,))
        with pytest.raises(UserError, match="takes no base URL"):
            find("cursor").at("https://x.example")
