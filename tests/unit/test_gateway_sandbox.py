"""The gateway and the forwarder across the wall of a real sandbox, whose own network is loopback only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from akarena.gateway import Gateway, find, forwarder
from akarena.records.trial import Tokens
from akarena.sandbox.base import Command, End, Limits, Mount
from akarena.sandbox.runtime import python_of
from tests.contract import helpers
from tests.services import StandIn, Turn

KEY = "sk-secret-9c2e-stays-outside"
LIMITS = Limits(20.0, 512 << 20, 64, 1 << 20, 16 << 20, 16 << 20)
PORT = 8080
AGENT = f"""
import http.client, json, os, socket, sys
body = json.dumps({{"model": "m", "max_tokens": 9, "messages": [{{"role": "user", "content": "q"}}]}})
connection = http.client.HTTPConnection("127.0.0.1", {PORT}, timeout=10)
connection.request("POST", "/v1/messages", body, {{"x-api-key": "placeholder"}})
answer = json.loads(connection.getresponse().read())
try:
    socket.create_connection(("192.0.2.1", 80), timeout=2)
    outside = "reached"
except OSError as error:
    outside = type(error).__name__
seen = open("/proc/self/environ").read() + " ".join(os.listdir("/proc"))
print(json.dumps([answer["content"][0]["text"], outside, seen]))
sys.exit(5)
"""


@pytest.mark.parametrize("name", ["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)])
def test_a_request_from_inside(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = helpers.get(name)
    python = python_of(sandbox)
    monkeypatch.setenv("TEST_SERVICE_KEY", KEY)
    argv = [python.path, "-I", "-S"]
    with StandIn(Turn(text="from outside")) as service:
        at = find("anthropic").at(service.url, "TEST_SERVICE_KEY")
        with Gateway(at, tmp_path / "gateway.jsonl") as gateway:
            command = Command(
                (*argv, "/code/forwarder.py", str(PORT), "/code/gateway.sock", *argv, "-c", AGENT),
                {},
                (
                    *python.mounts,
                    Mount(Path(forwarder.__file__), "/code/forwarder.py"),
                    Mount(gateway.path, "/code/gateway.sock"),
                ),
                LIMITS,
            )
            result = sandbox.run(command)
    assert (result.end, result.exit_code, result.stderr) == (End.EXITED, 5, b"")
    said, outside, seen = json.loads(result.stdout)
    assert said == "from outside"
    assert outside in ("OSError", "TimeoutError"), "the network is unreachable"
    assert KEY not in seen
    assert service.seen[0].headers["x-api-key"] == KEY
    assert gateway.totals is not None
    assert gateway.totals.tokens == Tokens(input=100, output=20, cache_read=0, cache_write=0, reasoning=0)
