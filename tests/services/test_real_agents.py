"""The real ``claude`` and ``codex``: sessions through the gateway, and how they end when something goes wrong."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from akarena import schemas
from akarena.gateway import Budgets, Gateway, Totals, find, forwarder
from akarena.records import AuditRecord
from akarena.records.audit import RefusalReason, Verdict
from akarena.records.trial import Tokens
from tests.e2e.conftest import SOFTMAX, Cli, attempt, record
from tests.services import StandIn, ToolCall, Turn
from tests.services.real import KEY, call, program

pytestmark = pytest.mark.npm

FINAL = Turn(text="finished", cache_read_tokens=50)
CLAUDE = (
    Turn(text="I write.", calls=(ToolCall("Bash", {"command": "echo hi > out.txt", "description": "write"}),)),
    Turn(text="I look.", calls=(ToolCall("Bash", {"command": "cat out.txt", "description": "read"}),)),
    FINAL,
)
CODEX = (
    Turn(text="I write.", calls=(ToolCall("exec_command", {"cmd": "echo hi > out.txt"}),)),
    Turn(text="I look.", calls=(ToolCall("exec_command", {"cmd": "cat out.txt"}),)),
    FINAL,
)
DROPPED = {"thinking-display-updates-2026-08-18"}
"""Beta features that the gateway takes out of a request; the programs work without them."""
NO_SEARCH = ("-c", 'web_search="disabled"')


@dataclass(frozen=True)
class Session:
    """How one run of an agent ended.

    Attributes:
        code: Its exit code.
        events: The JSON lines that it printed.
        records: The audit.
        totals: What it used.
        service: The stand-in.
        folder: Where it worked.
    """

    code: int
    events: list[dict[str, Any]]
    records: list[AuditRecord]
    totals: Totals
    service: StandIn
    folder: Path


def run(tmp_path: Path, kind: str, script: tuple[Turn, ...], *further: str, **budgets: Any) -> Session:
    """Run one agent to its end."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    argv = _claude(port, environment) if kind == "anthropic" else _codex(port, environment, home, work)
    audit = tmp_path / "gateway.jsonl"
    with StandIn(*script) as service:
        at = find(kind).at(service.url, "TEST_SERVICE_KEY")
        with Gateway(at, audit, budgets=Budgets(**budgets)) as gateway:
            done = subprocess.run(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    forwarder.__file__,
                    str(port),
                    str(gateway.path),
                    *argv,
                    *further,
                    "do it",
                ],
                env=environment,
                cwd=work,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=90,
                check=False,
            )
    everything = done.stdout + done.stderr
    everything += b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY.encode() not in everything
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    records = [schemas.parse(AuditRecord, line, "audit") for line in audit.read_bytes().splitlines()]
    assert gateway.totals is not None
    return Session(done.returncode, events, records, gateway.totals, service, work)


def _claude(port: int, environment: dict[str, str]) -> list[str]:
    environment |= {
        "ANTHROPIC_API_KEY": "placeholder",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
        # It refuses to skip permissions as root otherwise.
        "IS_SANDBOX": "1",
    }
    flags = "-p --verbose --output-format stream-json --permission-mode bypassPermissions --strict-mcp-config"
    return [program("claude"), *flags.split(), "--model", "claude-sonnet-4-6", "--effort", "high"]


def _codex(port: int, environment: dict[str, str], home: Path, work: Path) -> list[str]:
    provider = f'name = "gateway"\nbase_url = "http://127.0.0.1:{port}/v1"\nenv_key = "OPENAI_API_KEY"\n'
    text = f'model_provider = "gateway"\n[model_providers.gateway]\n{provider}wire_api = "responses"\n'
    (home / "config.toml").write_text(text)
    environment |= {"OPENAI_API_KEY": "placeholder", "CODEX_HOME": str(home)}
    flags = "exec --json --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check"
    return [program("codex"), *flags.split(), "--cd", str(work), "--model", "gpt-5.3-codex"]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_SERVICE_KEY", KEY)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command line, with a folder for the runs of one test."""
    return Cli(tmp_path)


@pytest.mark.parametrize(
    ("kind", "script", "further"), [("anthropic", CLAUDE, ()), ("openai", CODEX, NO_SEARCH)], ids=["claude", "codex"]
)
def test_a_session_with_tools(tmp_path: Path, kind: str, script: tuple[Turn, ...], further: tuple[str, ...]) -> None:
    session = run(tmp_path, kind, script, *further)
    assert session.code == 0
    assert (session.folder / "out.txt").read_text() == "hi\n"
    assert "finished" in json.dumps(session.events[-3:])
    asked = [record for record in session.records if record.model is not None]
    assert len(asked) == len(session.service.conversation()) == 3
    assert {record.verdict for record in asked} == {Verdict.ALLOWED}
    assert all(record.complete and record.streamed for record in asked)
    assert {feature for record in asked for feature in record.dropped} <= DROPPED
    assert session.totals.tokens == Tokens(input=300, output=60, cache_read=50, cache_write=0, reasoning=0)
    tools = set(asked[0].tools)
    assert "Bash" in tools if kind == "anthropic" else "exec_command" in tools


@pytest.mark.parametrize(
    ("kind", "script", "further"), [("anthropic", CLAUDE, ()), ("openai", CODEX, NO_SEARCH)], ids=["claude", "codex"]
)
def test_out_of_budget(tmp_path: Path, kind: str, script: tuple[Turn, ...], further: tuple[str, ...]) -> None:
    session = run(tmp_path, kind, script, *further, requests=1)
    assert session.code == 1
    assert (session.totals.requests, session.totals.out_of_budget) == (1, 1), "the agent does not ask again"


def test_the_search_of_codex_is_refused(tmp_path: Path) -> None:
    session = run(tmp_path, "openai", CODEX, "-c", "model_providers.gateway.stream_max_retries=0")
    assert session.code == 1
    assert {record.reason for record in session.records} == {RefusalReason.TOOL_TYPE}
    assert "'web_search' is not on the gateway's list" in json.dumps(session.events)
    assert session.service.seen == []


MODELS = {"claude": "claude-opus-4-6", "codex": "gpt-5.3-codex"}
agents = pytest.mark.parametrize("agent", MODELS)


def evaluate(cli: Cli, agent: str, run_id: str, *script: Turn, further: tuple[str, ...] = ()) -> tuple[Path, StandIn]:
    """Let a real agent work on a task through the whole command line; returns its try."""
    program(agent)
    with StandIn(*script) as service:
        run = cli.evaluate(
            *(run_id, "--agent", agent, "--model", MODELS[agent], "--effort", "high", "--sandbox", "bubblewrap"),
            *("--service-url", service.url, "--service-key", "TEST_SERVICE_KEY", "--tasks", SOFTMAX, *further),
        )
    assert [path for path in run.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == []
    return attempt(run, SOFTMAX, agent), service


@pytest.mark.parametrize(("agent", "status"), [("claude", 401), ("claude", 403), ("codex", 401)])
def test_a_key_that_the_service_refuses(agent: str, status: int, cli: Cli) -> None:
    folder, _ = evaluate(cli, agent, f"{agent}-refused-{status}", Turn(status=status, error="bad key"))
    trajectory, trial = record(folder, "trajectory.json"), record(folder, "trial.json")
    assert (trajectory["end"], trial["status"], trial["agent_end"]) == ("refused", "void", "refused")
    assert str(status) in trajectory["detail"]


@agents
def test_an_agent_whose_time_is_up(agent: str, cli: Cli) -> None:
    # Claude Code runs no plain `sleep`.
    slow = Turn(text="I wait.", calls=(call(agent, "python3 -c 'import time; time.sleep(300)'"),))
    folder, _ = evaluate(cli, agent, f"{agent}-late", slow, further=("--agent-seconds", "8"))
    trajectory = record(folder, "trajectory.json")
    assert (trajectory["end"], trajectory["complete"], trajectory["reported_tokens"]) == ("timed_out", False, None)
    assert trajectory["tokens"]["input"] == 100, "the gateway counted all the same"
