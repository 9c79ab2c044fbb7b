"""HTTP that reaches something else than it seems to."""

from __future__ import annotations

import json

from . import web
from .kit import NotRun, Plan, Stopped, nothing, probe


def all_refused(requests: dict[str, bytes]) -> str:
    """Send raw requests; return those that something else than the gateway answered."""
    if not web.address():
        raise NotRun("there is no gateway")
    passed, seen = [], set()
    for name, data in requests.items():
        answer = web.exchange(data, seconds=5.0, one=True)
        if answer and not web.is_refused(answer):
            passed.append(f"{name}: {answer[:60]!r}")
        seen.add(web.status(answer) or "closed")
    return nothing(", ".join(passed), f"{len(requests)} requests, answered {', '.join(sorted(map(str, seen)))}")


@probe("gateway.connect")
def connect(plan: Plan) -> str:
    targets = (
        f"127.0.0.1:{plan.facts['port']}",
        "example.com:443",
        "169.254.169.254:80",
        f"[::1]:{plan.facts['port']}",
    )
    requests = {target: web.request("CONNECT", target, Host=target) for target in targets}
    requests["CONNECT without a port"] = web.request("CONNECT", "example.com")
    return all_refused(requests)


@probe("gateway.absolute_uri")
def absolute_uri(plan: Plan) -> str:
    port = plan.facts["port"]
    targets = (
        f"http://127.0.0.1:{port}/",
        f"http://127.0.0.1:{port}/v1/messages",
        "http://169.254.169.254/latest/meta-data/",
        f"//127.0.0.1:{port}/v1/messages",
        f"/v1/messages@127.0.0.1:{port}/",
        f"@127.0.0.1:{port}/v1/messages",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
    )
    return all_refused(
        {
            f"{method} {target}": web.request(method, target, web.talk() if method == "POST" else None)
            for target in targets
            for method in ("GET", "POST")
        }
    )


@probe("gateway.upgrade")
def upgrade(plan: Plan) -> str:
    socket = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec_WebSocket_Key": "eA==",
        "Sec_WebSocket_Version": "13",
    }
    h2c = {"Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings", "HTTP2_Settings": "AAMAAABkAAQAAP__"}
    requests = {
        "websocket": web.request("GET", "/v1/models", **socket),
        "realtime": web.request("GET", "/v1/realtime?model=x", **socket),
        "h2c": web.request("POST", "/v1/messages", web.talk(), **h2c),
        "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0",
        "TLS": b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
    }
    return all_refused(requests)


@probe("gateway.smuggling")
def smuggling(plan: Plan) -> str:
    """One request that two parsers take for another number of requests. The hidden one asks for files."""
    if not web.address():
        raise NotRun("there is no gateway")
    hidden = b"GET /v1/files HTTP/1.1\r\nHost: x\r\n\r\n"
    body = json.dumps(web.talk()).encode()
    head = b"POST /v1/messages HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    length = b"Content-Length: %d\r\n"
    attempts = {
        "length and chunks": head + length % len(body) + b"Transfer-Encoding: chunked\r\n\r\n" + chunked + hidden,
        "chunks and length": head
        + b"Transfer-Encoding: chunked\r\n"
        + length % (len(chunked) + len(hidden))
        + b"\r\n"
        + chunked
        + hidden,
        "two lengths": head + length % len(body) + length % (len(body) + len(hidden)) + b"\r\n" + body + hidden,
        "a length with a sign": head + b"Content-Length: +%d\r\n\r\n" % len(body) + body + hidden,
        "space before the colon": head
        + b"Transfer-Encoding : chunked\r\n"
        + length % len(body)
        + b"\r\n"
        + body
        + hidden,
        "two codings": head
        + b"Transfer-Encoding: identity, chunked\r\n"
        + length % len(body)
        + b"\r\n"
        + chunked
        + hidden,
        "coding in other words": head
        + b"Transfer-Encoding: xchunked\r\n"
        + length % len(body)
        + b"\r\n"
        + body
        + hidden,
        "a folded header": head
        + b"X: y\r\n Transfer-Encoding: chunked\r\n"
        + length % len(body)
        + b"\r\n"
        + body
        + hidden,
        "bare line feeds": (head + length % len(body)).replace(b"\r\n", b"\n") + b"\n" + body + hidden,
        "a chunk's length too long": head + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n" + body + hidden,
        "a chunk's extension": head
        + b"Transfer-Encoding: chunked\r\n\r\n%x;\n%b\r\n0\r\n\r\n" % (len(body), body)
        + hidden,
        "a request after the body": head + length % len(body) + b"\r\n" + body + hidden,
        "a request in the query": b"GET /v1/models?limit=1%20HTTP/1.1%0d%0a%0d%0a HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
        "a null in the path": b"POST /v1/messages\0/../files HTTP/1.1\r\nHost: x\r\n\r\n",
        "HTTP/0.9": b"GET /v1/files\r\n",
    }
    passed, seen = [], set()
    for name, data in attempts.items():
        answer = web.exchange(data, seconds=0.7)
        # The service's own words for a path that it does not know.
        if b"no such path" in answer:
            passed.append(name)
        seen.add(web.status(answer) or "closed")
    return nothing(", ".join(passed), f"{len(attempts)} forms, answered {', '.join(sorted(map(str, seen)))}")


@probe("gateway.headers")
def headers(plan: Plan) -> str:
    """Headers that the service could act on. What arrives there is looked at from outside."""
    if not web.address():
        raise NotRun("there is no gateway")
    betas = (
        "mcp-client-2025-11-20,files-api-2025-04-14,code-execution-2025-08-25,web-fetch-2025-09-10,skills-2025-10-02"
    )
    given = {
        "Authorization": "Bearer other",
        "X_Api_Key": "other",
        "Cookie": "session=1",
        "X_Forwarded_Host": "example.com",
        "X_Forwarded_For": "127.0.0.1",
        "X_Original_URL": "/v1/files",
        "X_HTTP_Method_Override": "DELETE",
        "Openai_Organization": "other",
        "Anthropic_Beta": betas,
        "Host": "example.com",
        "Expect": "100-continue",
    }
    answer = web.ask(web.talk(), **given)
    injected = web.exchange(web.request("GET", "/v1/models?limit=1\r\nX-Injected: 1"), seconds=2.0)
    if web.status(answer) not in (200, 100) or web.status(injected) == 200:
        return f"answered {answer[:100]!r}, {injected[:100]!r}"
    raise Stopped("the request passes with the gateway's own headers alone")
