"""An agent that asks a model through the gateway, and tries everything else that a gateway or a network could give."""

from __future__ import annotations

import base64
import json
import shlex
from pathlib import Path

import pytest

from akarena import schemas
from akarena.records import AuditRecord
from akarena.records.audit import RefusalReason, Verdict
from tests.e2e.conftest import ROOT, SOFTMAX, Cli, attempt, record
from tests.services import StandIn, Turn

MARK = "zq9-key-begins"
KEY = f"{MARK}-4f1c77ab9e"
ANSWER = "use more threads"
# One task of each category, with the file to hand in, by a file that only this category's agents see.
TASKS = {
    "kernel.py": ("triton2triton/rms_norm", "kernel.py"),
    "module.py": ("pytorch2hip/cross_entropy", "kernel.hip"),
    "kernel.hip": (SOFTMAX, "kernel.hip"),
}
SOLUTIONS = {
    mark: (name, (ROOT / "tasks" / task / "solution" / name).read_text("utf-8")) for mark, (task, name) in TASKS.items()
}

# Prints one JSON object. It knows how the key begins, so that it can look for the rest.
AGENT = """
import json, os, socket, subprocess, urllib.request
base, mark = os.environ["ANTHROPIC_BASE_URL"], "MARK"
found = {}

def ask(name, path="/v1/messages", method="POST", **fields):
    body = {"model": "standin-model", "max_tokens": 64, "messages": [{"role": "user", "content": "How?"}], **fields}
    data = json.dumps(body).encode() if method == "POST" else None
    request = urllib.request.Request(base + path, data, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            found[name] = [answer.status, json.load(answer)]
    except urllib.error.HTTPError as error:
        found[name] = [error.code, error.read().decode(errors="replace")]

def reach(name, action):
    try:
        action()
        found[name] = "reached"
    except OSError as error:
        found[name] = f"refused: {error}"

ask("model")
ask("web search", tools=[{"type": "web_search_20250305", "name": "web_search"}])
ask("remote mcp", mcp_servers=[{"type": "url", "url": "https://example.com/mcp", "name": "x"}])
ask("file by address", messages=[{"role": "user", "content": [
    {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}]}])
ask("other path", path="/v1/files", method="GET")
reach("name", lambda: socket.getaddrinfo("example.com", 443))
for host in ("1.1.1.1", "169.254.169.254", "10.0.0.1", "172.17.0.1"):
    reach(host, lambda: socket.create_connection((host, 80), 2))
reach("stand-in by its port", lambda: socket.create_connection(("127.0.0.1", PORT), 2))

def texts():
    yield "environment", json.dumps(dict(os.environ))
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for part in ("cmdline", "environ", "maps"):
            yield f"/proc/{pid}/{part}", f"/proc/{pid}/{part}"
    for root in ("/akarena", "/workspace", "/tmp", "/home", "/run", "/etc"):
        for folder, _, names in os.walk(root):
            for name in names:
                yield f"{folder}/{name}", f"{folder}/{name}"

held = []
for name, text in texts():
    if os.path.isfile(text) or text.startswith("/proc/"):
        try:
            with open(text, "rb") as file:
                text = file.read(1 << 22).decode("utf-8", "replace")
        except OSError:
            continue
    held += [f"{name}: {piece[:12]}" for piece in text.split(mark)[1:] if piece.startswith("-")]
found["key"] = held
name, solution = next(pair for mark, pair in SOLUTIONS.items() if os.path.exists(mark))
open(name, "w").write(solution)
print(json.dumps(found))
"""

SANDBOXES = ("bubblewrap", pytest.param("docker", marks=pytest.mark.docker))


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_the_model_answers_and_nothing_else_is_reached(sandbox: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_KEY", KEY)
    with StandIn(Turn(text=ANSWER, input_tokens=111, output_tokens=7)) as service:
        port = service.url.rpartition(":")[2]
        text = AGENT.replace("MARK", MARK).replace("PORT", port).replace("SOLUTIONS", repr(SOLUTIONS))
        program = base64.b64encode(text.encode()).decode()
        run = cli.evaluate(
            f"way-out-{sandbox}",
            *("--agent", "command", "--command", shlex.join(["python3", "-c", f"import base64; {_run(program)}"])),
            *("--service", "anthropic", "--service-url", service.url, "--service-key", "STANDIN_KEY"),
            *("--sandbox", sandbox, "--tasks", *(task for task, _ in TASKS.values())),
        )
        seen = list(service.seen)
    # The first one is that of the preflight.
    asked = [("/v1/models", KEY)] + [("/v1/messages", KEY)] * len(TASKS)
    assert [(request.path, request.headers["x-api-key"]) for request in seen] == asked
    for task, _ in TASKS.values():
        _check_trial(attempt(run, task, "command"))
    assert [path for path in run.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == []
    assert cli("verify", str(run)).code == 0


def _check_trial(folder: Path) -> None:
    found = json.loads((folder / "logs" / "agent.stdout").read_bytes())
    assert found["model"][0] == 200
    assert found["model"][1]["content"][0]["text"] == ANSWER
    refused = ("web search", "remote mcp", "file by address", "other path")
    assert [found[name][0] for name in refused] == [403] * 4
    reached = [name for name, what in found.items() if what == "reached"]
    assert reached == []
    assert found["key"] == []
    _check_audit(folder)
    assert record(folder, "trajectory.json")["tokens"]["input"] == 111
    assert record(folder, "trajectory.json")["tokens"]["output"] == 7
    trial = record(folder, "trial.json")
    assert (trial["status"], trial["seen"]["state"], trial["unseen"]["state"]) == ("judged", "correct", "correct")


def _run(program: str) -> str:
    return f"exec(base64.b64decode({program!r}))"


def _check_audit(folder: Path) -> None:
    log = (folder / "logs" / "gateway.jsonl").read_bytes()
    lines = [schemas.parse(AuditRecord, line, "audit") for line in log.splitlines()]
    verdicts = [(line.verdict, line.reason) for line in lines]
    assert verdicts[0] == (Verdict.ALLOWED, None)
    assert {verdict for verdict, _ in verdicts[1:]} == {Verdict.REFUSED}
    assert RefusalReason.TOOL_TYPE in {reason for _, reason in verdicts}


def test_a_service_that_does_not_answer_stops_the_run(cli: Cli) -> None:
    nowhere = ("--service", "openai", "--service-url", "http://127.0.0.1:9")
    done = cli(
        *cli.evaluate_arguments("unreached", "--agent", "command", "--command", "true", *nowhere),
        *("--sandbox", "bubblewrap", "--tasks", SOFTMAX),
    )
    assert (done.code, len(done.told)) == (3, 1)
    assert "service openai is reached" in done.err
    assert not (cli.runs / "unreached").exists()


def test_a_missing_key_is_told_before_anything_starts(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    done = cli(
        *cli.evaluate_arguments("keyless", "--agent", "command", "--command", "true", "--service", "anthropic"),
        *("--sandbox", "bubblewrap"),
    )
    assert done.code == 2
    assert "ANTHROPIC_API_KEY" in done.err
    assert not (cli.runs / "keyless").exists()


def test_an_agent_with_a_service_is_not_let_out_of_an_automatic_sandbox(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    done = cli(*cli.evaluate_arguments("auto", "--agent", "command", "--command", "true", "--service", "anthropic"))
    assert done.code == 3
    assert "--sandbox bubblewrap" in done.err
