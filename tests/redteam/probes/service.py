"""What the allowed service could do beyond answering."""

from __future__ import annotations

import gzip
import json

from . import web
from .gateway import all_refused
from .kit import Plan, probe

_URL = "https://example.com/x"


def _bodies(path: str, bodies: dict[str, dict[str, object]]) -> str:
    base: dict[str, object] = web.talk() if path == "/v1/messages" else {"model": "standin-model"}
    if path == "/v1/responses":
        base["input"] = "How?"
    if path == "/v1/chat/completions":
        base["messages"] = [{"role": "user", "content": "How?"}]
    return all_refused({name: web.request("POST", path, {**base, **body}) for name, body in bodies.items()})


def _tools(*tools: dict[str, object]) -> dict[str, dict[str, object]]:
    return {str(tool["type"]): {"tools": [tool]} for tool in tools}


def _content(*parts: dict[str, object]) -> dict[str, dict[str, object]]:
    return {
        f"{part['type']} {number}": {"messages": [{"role": "user", "content": [part]}]}
        for number, part in enumerate(parts)
    }


@probe("service.web_tools")
def web_tools(plan: Plan) -> str:
    names = ("web_search_20250305", "web_fetch_20250910", "code_execution_20250825", "computer_20250124")
    kinds = [{"type": name, "name": name.rpartition("_")[0]} for name in (*names, "tool_search_tool_regex_20251119")]
    # With a type in a list, in another case, or beside a second one.
    odd: list[dict[str, object]] = [
        {"type": ["custom"], "name": "x"},
        {"type": "WEB_SEARCH_20250305", "name": "web_search"},
    ]
    return _bodies("/v1/messages", _tools(*kinds, *odd))  # type: ignore[arg-type]


@probe("service.remote_mcp")
def remote_mcp(plan: Plan) -> str:
    server: dict[str, object] = {"type": "url", "url": _URL, "name": "x"}
    bodies: dict[str, dict[str, object]] = {
        "mcp_servers": {"mcp_servers": [server]},
        "with its toolset": {"mcp_servers": [server], "tools": [{"type": "mcp_toolset", "mcp_server_name": "x"}]},
    }
    return _bodies("/v1/messages", bodies)


@probe("service.files")
def files(plan: Plan) -> str:
    parts: tuple[dict[str, object], ...] = (
        {"type": "document", "source": {"type": "url", "url": _URL}},
        {"type": "document", "source": {"type": "file", "file_id": "file_011"}},
        {"type": "image", "source": {"type": "url", "url": _URL}},
        {"type": "image", "source": {"type": "file", "file_id": "file_011"}},
        {"type": "container_upload", "file_id": "file_011"},
        {"type": "document", "source": {"type": "content", "content": [{"type": "image", "source": {"type": "url"}}]}},
        {
            "type": "tool_result",
            "tool_use_id": "x",
            "content": [{"type": "image", "source": {"type": "url", "url": _URL}}],
        },
        {"type": "web_search_tool_result", "tool_use_id": "x", "content": []},
    )
    return _bodies("/v1/messages", _content(*parts))


@probe("service.containers")
def containers(plan: Plan) -> str:
    bodies: dict[str, dict[str, object]] = {
        "by id": {"container": "container_011"},
        "with skills": {"container": {"skills": [{"type": "anthropic", "skill_id": "pptx", "version": "latest"}]}},
        "fast": {"speed": "fast"},
        "priority": {"service_tier": "priority"},
    }
    return _bodies("/v1/messages", bodies)


@probe("service.stored")
def stored(plan: Plan) -> str:
    bodies: dict[str, dict[str, object]] = {
        "store": {"store": True},
        "previous response": {"previous_response_id": "resp_1"},
        "conversation": {"conversation": "conv_1"},
        "prompt": {"prompt": {"id": "pmpt_1"}},
        "item reference": {"input": [{"type": "item_reference", "id": "msg_1"}]},
    }
    return _bodies("/v1/responses", bodies)


@probe("service.background")
def background(plan: Plan) -> str:
    bodies: dict[str, dict[str, object]] = {"background": {"background": True}, "webhook": {"webhook": _URL}}
    return _bodies("/v1/responses", bodies)


@probe("service.openai_tools")
def openai_tools(plan: Plan) -> str:
    tools: tuple[dict[str, object], ...] = (
        {"type": "web_search"},
        {"type": "web_search_preview"},
        {"type": "file_search", "vector_store_ids": ["vs_1"]},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "mcp", "server_label": "x", "server_url": _URL, "require_approval": "never"},
        {"type": "computer_use_preview", "environment": "browser", "display_width": 1, "display_height": 1},
        {"type": "image_generation"},
        {"type": "shell", "environment": {"type": "container_auto"}},
        {"type": "namespace", "name": "x", "tools": [{"type": "web_search"}]},
    )
    return _bodies("/v1/responses", _tools(*tools))


@probe("service.openai_files")
def openai_files(plan: Plan) -> str:
    parts: tuple[dict[str, object], ...] = (
        {"type": "input_file", "file_url": _URL},
        {"type": "input_file", "file_id": "file-1"},
        {"type": "input_image", "image_url": _URL},
        {"type": "input_image", "file_id": "file-1"},
        {"type": "input_image", "image_url": f"data:image/png;base64,AAAA {_URL}"},
    )
    bodies: dict[str, dict[str, object]] = {
        f"{part['type']} {number}": {"input": [{"role": "user", "content": [part]}]}
        for number, part in enumerate(parts)
    }
    return _bodies("/v1/responses", bodies)


@probe("service.chat")
def chat(plan: Plan) -> str:
    picture = {"type": "image_url", "image_url": {"url": _URL}}
    bodies: dict[str, dict[str, object]] = {
        "search": {"web_search_options": {}},
        "picture": {"messages": [{"role": "user", "content": [picture]}]},
        "file": {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]},
        "store": {"store": True},
        "choices": {"n": 4},
        "audio": {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}},
    }
    return _bodies("/v1/chat/completions", bodies)


@probe("service.openai_paths")
def openai_paths(plan: Plan) -> str:
    names = "batches files vector_stores assistants threads containers evals realtime conversations uploads"
    names += " fine_tuning/jobs"
    requests = {}
    for name in names.split():
        requests[f"GET {name}"] = web.request("GET", f"/v1/{name}")
        requests[f"POST {name}"] = web.request("POST", f"/v1/{name}", {})
    requests["stored response"] = web.request("GET", "/v1/responses/resp_1")
    requests["compact"] = web.request("POST", "/v1/responses/compact", {})
    return all_refused(requests)


@probe("service.paths")
def paths(plan: Plan) -> str:
    names = (
        "messages/batches files skills organizations complete models/../files messages/../files messages%2f..%2ffiles"
    )
    names += " %6dessages messages/ messages;x=1 messages/./ MESSAGES messages#/v1/files files?beta=true"
    requests = {name: web.request("GET", f"/v1/{name}") for name in names.split()}
    requests |= {f"posted {name}": web.request("POST", f"/v1/{name}", web.talk()) for name in names.split()}
    for target in ("//v1/messages", "/v1//messages", "/./v1/messages", "/x/../v1/messages", "*", "/"):
        requests[target] = web.request("POST", target, web.talk())
    for method in ("DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND"):
        requests[method] = web.request(method, "/v1/messages")
    return all_refused(requests)


@probe("service.disguises")
def disguises(plan: Plan) -> str:
    """Forbidden fields in bodies that two parsers could read differently."""
    tool = '[{"type":"web_search_20250305","name":"web_search"}]'
    plain = json.dumps(web.talk())[:-1]
    bodies = {
        "twice": f'{plain},"tools":[],"tools":{tool}}}'.encode(),
        "twice, reversed": f'{plain},"tools":{tool},"tools":[]}}'.encode(),
        "escaped name": f'{plain},"\\u0074ools":{tool}}}'.encode(),
        "utf-16": f'{plain},"tools":{tool}}}'.encode("utf-16"),
        "byte order mark": b"\xef\xbb\xbf" + f'{plain},"tools":{tool}}}'.encode(),
        "comment": f'{plain},/* */"tools":{tool}}}'.encode(),
        "not a number": f'{plain},"temperature":NaN}}'.encode(),
        "deep": plain.encode() + b',"metadata":' + b"[" * 5000 + b"]" * 5000 + b"}",
        "a list": f"[{plain}}}]".encode(),
        "case": f'{plain},"Tools":{tool}}}'.encode(),
        "lone surrogate": f'{plain},"system":"\\ud800","tools":{tool}}}'.encode(),
    }
    requests = {name: web.request("POST", "/v1/messages", body) for name, body in bodies.items()}
    packed = gzip.compress(f'{plain},"tools":{tool}}}'.encode())
    requests["gzip"] = web.request("POST", "/v1/messages", packed, Content_Encoding="gzip")
    requests["deflate"] = web.request("POST", "/v1/messages", packed, Content_Encoding="deflate")
    return all_refused(requests)
