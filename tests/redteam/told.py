"""What the agents are told of the host, and what the model service answers them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.redteam import host
from tests.services import StandIn, Turn

CHECK_CALLS = 24
DEPTH = 4000


def error_turns(key: str) -> tuple[Turn, ...]:
    """Give answers of a service that quotes the key where it refuses, redirects or fails."""
    said = f"the key {key} is not allowed"
    statuses = (400, 401, 403, 404, 429, 500)
    more = (
        Turn(status=302, error=said, headers={"Location": f"https://example.com/?key={key}"}),
        Turn(raw=f"<html>{key}</html>".encode(), status=502),
        Turn(raw=json.dumps({"type": "message", "content": [{"type": "text", "text": key}]}).encode()),
    )
    return (*(Turn(status=status, error=said) for status in statuses), *more)


def echo_turns(key: str) -> tuple[Turn, ...]:
    """Give answers of a service that quotes the key in what it says and in headers."""
    names = ("x-ratelimit-limit-requests", "anthropic-ratelimit-tokens-limit", "retry-after", "Set-Cookie", "X-Echo")
    return (
        Turn(text=f"{key} {key} {key}"),
        Turn(headers=dict.fromkeys(names, f"for {key}")),
        Turn(text=key, headers={"x-ratelimit-remaining": key}),
    )


def facts(sandbox_facts: Mapping[str, Any], listeners: host.Listeners, service: StandIn) -> dict[str, Any]:
    """Give the facts of a plan that do not depend on where the agent runs."""
    errors, echoes = len(error_turns("")), len(echo_turns(""))
    return {
        "addresses": host.addresses(),
        "port": listeners.port,
        "abstract": listeners.abstract,
        "service_port": int(service.url.rpartition(":")[2]),
        "sockets": [os.environ.get("DOCKER_HOST", "").removeprefix("unix://")] * ("DOCKER_HOST" in os.environ),
        "gateway": "/akarena/gateway.sock",
        "check": "/akarena/check.sock",
        "inodes": {name: Path(name).stat().st_ino for name in _HOST_FILES if Path(name).exists()},
        "pid": os.getpid(),
        "check_calls": CHECK_CALLS,
        "depth": DEPTH,
        "error_turns": list(range(1, 1 + errors)),
        "echo_turns": list(range(1 + errors, 1 + errors + echoes)),
        **sandbox_facts,
    }


_HOST_FILES = ("/etc/shadow", "/etc/machine-id", "/root/.bashrc", "/var/log", "/boot")
