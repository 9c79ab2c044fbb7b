"""The agent ``cursor`` end to end, with a program that prints what the vendor documents."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, SOFTMAX, Cli, attempt, record

KEY = "key-of-cursor-5512-secret"
SOLUTION = (ROOT / "tasks" / SOFTMAX / "solution" / "kernel.hip").read_text("utf-8")
FAKE = """#!/usr/bin/env python3
import json, os, socket, subprocess, sys

def show(**event):
    print(json.dumps(event), flush=True)

if sys.argv[1:] == ["--version"]:
    print("fake 1.0")
    sys.exit()
prompt = sys.argv[-1]
model = sys.argv[sys.argv.index("--model") + 1]
assert sys.argv[1:5] == ["-p", "--force", "--output-format", "stream-json"], sys.argv
assert prompt == open(os.environ["AKARENA_PROMPT_FILE"]).read()
assert len(os.environ["CURSOR_API_KEY"]) == 25
show(type="system", subtype="init", session_id="s", model=model, cwd=os.getcwd())
if model == "bad-key":
    print("Error: Invalid API key", file=sys.stderr)
    sys.exit(1)
show(type="user", message={"role": "user", "content": [{"type": "text", "text": prompt}]})
show(type="assistant", message={"role": "assistant", "content": [{"type": "text", "text": "I look at the kernel."}]})
if model == "dies":
    os.write(1, b'{"type": "tool_call", "subty')
    os.kill(os.getpid(), 9)
arguments = {"path": "kernel.hip"}
show(type="tool_call", subtype="started", call_id="c1", tool_call={"writeToolCall": {"args": arguments}})
open("kernel.hip", "w").write(SOLUTION)
show(type="tool_call", subtype="completed", call_id="c1", tool_call={"writeToolCall": {
    "args": arguments, "result": {"success": {"linesCreated": 3}}}})
done = subprocess.run([sys.executable, "/akarena/check"], capture_output=True, text=True)
show(type="tool_call", subtype="completed", call_id="c2", tool_call={"shellToolCall": {
    "args": {"command": "check"}, "result": {"success": {"stdout": done.stdout}}}})
host, port = os.environ["HTTPS_PROXY"].rpartition("/")[2].split(":")
with socket.create_connection((host, int(port)), 5) as proxy:
    proxy.sendall(b"CONNECT example.com:443 HTTP/1.1\\r\\nHost: example.com:443\\r\\n\\r\\n")
    show(type="notice", proxy=proxy.recv(200).decode().splitlines()[0])
show(type="result", subtype="success", is_error=model == "says-no", duration_ms=10, result="done", session_id="s")
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the program on the PATH, and a key into the environment."""
    path = tmp_path / "versions" / "1" / "cursor-agent"
    path.parent.mkdir(parents=True)
    path.write_text(FAKE.replace("SOLUTION", repr(SOLUTION)))
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent), prepend=":")
    monkeypatch.setenv("CURSOR_API_KEY", KEY)


def evaluate(cli: Cli, model: str) -> Path:
    run = cli.evaluate(
        f"cursor-{model}", "--agent", "cursor", "--model", model, "--sandbox", "bubblewrap", "--tasks", SOFTMAX
    )
    assert [path for path in run.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == []
    return attempt(run, SOFTMAX, "cursor")


@pytest.mark.usefixtures("fake")
def test_it_solves_a_task(cli: Cli) -> None:
    folder = evaluate(cli, "composer-2")
    trajectory, trial = record(folder, "trajectory.json"), record(folder, "trial.json")
    assert (trial["status"], trial["seen"]["state"], trial["unseen"]["state"]) == ("judged", "correct", "correct")
    assert (trajectory["end"], trajectory["complete"], trajectory["check_calls"]) == ("finished", True, 1)
    assert [(step["kind"], step["tool"]) for step in trajectory["steps"] if step["kind"] != "check"] == [
        ("message", None),
        ("tool_call", "write"),
        ("tool_call", "shell"),
        ("other", None),
    ]
    assert "5 of" not in trajectory["steps"][0]["text"]
    assert "correct" in next(step["result"] for step in trajectory["steps"] if step["tool"] == "shell")
    assert "403" in trajectory["steps"][-1]["text"], "the tunnel leads to the vendor's hosts alone"
    assert (trajectory["tokens"], trajectory["cost"]) == (None, None)
    assert "vendor tunnel, not inspectable" in trajectory["notes"]


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    ("model", "end", "complete", "detail"),
    [
        ("bad-key", "refused", False, "Error: Invalid API key"),
        ("dies", "crashed", False, "the program ended with signal 9"),
        ("says-no", "crashed", True, "done"),
    ],
)
def test_its_failures_are_told(cli: Cli, model: str, end: str, complete: bool, detail: str) -> None:
    trajectory = record(evaluate(cli, model), "trajectory.json")
    assert (trajectory["end"], trajectory["complete"], trajectory["detail"]) == (end, complete, detail)


@pytest.mark.usefixtures("fake")
def test_a_missing_key_is_told_before_anything_starts(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CURSOR_API_KEY")
    began = time.monotonic()
    done = cli(*cli.evaluate_arguments("keyless", "--agent", "cursor", "--sandbox", "bubblewrap"))
    assert (done.code, len(done.told)) == (2, 1)
    assert "CURSOR_API_KEY" in done.err
    assert time.monotonic() - began < 10
    assert not (cli.runs / "keyless").exists()


def test_a_model_that_no_agent_takes_is_told(cli: Cli) -> None:
    done = cli(*cli.evaluate_arguments("nobody", "--agent", "nop", "--model", "m"))
    assert (done.code, done.told) == (2, ["akarena: --model: none of the chosen agents takes it (nop)"])
