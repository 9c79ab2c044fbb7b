"""Command-line agents as programs: how they are found, started and supervised, and how their ends are told apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from akarena import agents, paths
from akarena.agents import installed, supervise
from akarena.agents.claude import ClaudeAgent
from akarena.agents.codex import CodexAgent
from akarena.agents.cursor import CursorAgent
from akarena.agents.openai_compatible import MiniParser, OpenAICompatibleAgent
from akarena.agents.program import Ran
from akarena.agents.vendor import CliAgent
from akarena.records.run import AgentConfiguration, Prices
from akarena.records.trial import AgentEnd, Cost, CostSource, Tokens
from akarena.sandbox.base import End, Result
from tests.unit.test_agent_streams import CLAUDE, CLAUDE_RESULT, CURSOR_RESULT, lines

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CURSOR_API_KEY")
AGENTS: tuple[CliAgent, ...] = (ClaudeAgent(), CodexAgent(), CursorAgent())
each = pytest.mark.parametrize("agent", AGENTS, ids=[agent.name for agent in AGENTS])


def configuration(agent: CliAgent, **settings: Any) -> AgentConfiguration:
    return AgentConfiguration(id=agent.name, agent=agent.name, service=agent.service, **settings)


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty checkout, all keys, and a PATH with one folder that holds no agent."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("AKARENA_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    for name in KEYS:
        monkeypatch.setenv(name, "sk-some-key-for-tests")
    return folder


def program(path: Path, text: str = "\x7fELF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@each
def test_registered_by_its_name(agent: CliAgent) -> None:
    assert type(agents.get(agent.name)) is type(agent)


@each
def test_a_missing_program_is_told_in_one_line_with_the_way_to_get_it(agent: CliAgent, bin_folder: Path) -> None:
    (problem,) = agent.problems(configuration(agent))
    assert agent.executable in problem
    assert agent.install in problem
    assert f"akarena build --agent {agent.name}" in problem
    program(bin_folder / agent.executable)
    assert agent.problems(configuration(agent)) == []


@each
def test_a_missing_key_is_told_by_its_variable(
    agent: CliAgent, bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(bin_folder / agent.executable)
    for name in KEYS:
        monkeypatch.delenv(name)
    (problem,) = agent.problems(configuration(agent))
    assert f"{agent.service.upper()}_API_KEY" in problem


@each
def test_a_setting_can_not_become_an_option(agent: CliAgent, bin_folder: Path) -> None:
    program(bin_folder / agent.executable)
    for model in ("--help", "", "a b", "$HOME", 'x"'):
        (problem,) = agent.problems(configuration(agent, model=model))
        assert problem.startswith(f"--model {model!r}: expected")


def test_argv_of_claude_names_the_model_for_side_tasks_too() -> None:
    asked = configuration(ClaudeAgent(), model="claude-opus-4-6", effort="high")
    argv = ClaudeAgent().argv(asked)
    assert argv[-4:] == ("--model", "claude-opus-4-6", "--effort", "high")
    assert {"-p", "--strict-mcp-config", "bypassPermissions", "stream-json"} <= set(argv)
    environment = ClaudeAgent().environment(asked)
    assert environment["ANTHROPIC_SMALL_FAST_MODEL"] == "claude-opus-4-6"
    assert "ANTHROPIC_SMALL_FAST_MODEL" not in ClaudeAgent().environment(configuration(ClaudeAgent()))


def test_argv_of_codex() -> None:
    argv = CodexAgent().argv(configuration(CodexAgent(), model="gpt-5.3-codex", effort="high"))
    assert argv[-1] == "-", "the prompt comes on standard input"
    for setting in (
        'model_providers.akarena.base_url="$OPENAI_BASE_URL"',
        'model_providers.akarena.wire_api="responses"',
        'web_search="disabled"',
        'model_reasoning_effort="high"',
        "features.memories=false",
    ):
        assert argv[argv.index(setting) - 1] == "-c"


def test_the_key_of_cursor_goes_into_the_sandbox_and_no_other_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURSOR_API_KEY", "revocable")
    assert CursorAgent().environment(configuration(CursorAgent())) == {"CURSOR_API_KEY": "revocable"}
    for agent in (ClaudeAgent(), CodexAgent()):
        assert not any("KEY" in name for name in agent.environment(configuration(agent)))


def test_a_binary_is_shown_alone(bin_folder: Path, tmp_path: Path) -> None:
    real = program(tmp_path / "share" / "versions" / "2.1")
    (bin_folder / "claude").symlink_to(real)
    found = installed.find("claude")
    assert found is not None
    assert found.path == "/akarena-agent/node_modules/2.1"
    assert [(mount.source, mount.target, mount.writable) for mount in found.mounts] == [(real, found.path, False)]


def test_a_package_is_shown_with_its_scope_and_its_interpreter(bin_folder: Path, tmp_path: Path) -> None:
    modules = tmp_path / "lib" / "node_modules"
    real = program(modules / "@openai" / "codex" / "bin" / "codex.js", "#!/usr/bin/env node\n")
    program(modules / "other" / "secret.js")
    (bin_folder / "codex").symlink_to(real)
    node = program(tmp_path / "nvm" / "node")
    (bin_folder / "node").symlink_to(node)
    found = installed.find("codex")
    assert found is not None
    assert found.path == "/akarena-agent/node_modules/@openai/codex/bin/codex.js"
    shown = {mount.target: mount.source for mount in found.mounts}
    assert shown == {"/akarena-agent/node_modules/@openai": modules / "@openai", "/akarena-agent/bin/node": node}
    assert found.folders == ("/akarena-agent/bin",)


def test_a_script_is_shown_with_its_folder_but_not_with_a_folder_of_programs(bin_folder: Path, tmp_path: Path) -> None:
    real = program(tmp_path / "versions" / "9" / "cursor-agent", "#!/usr/bin/env bash\n")
    (bin_folder / "cursor-agent").symlink_to(real)
    found = installed.find("cursor-agent")
    assert found is not None
    assert (found.path, [mount.source for mount in found.mounts]) == (
        "/akarena-agent/node_modules/9/cursor-agent",
        [real.parent],
    )
    (bin_folder / "cursor-agent").unlink()
    alone = program(bin_folder / "cursor-agent", "#!/bin/sh\n")
    found = installed.find("cursor-agent")
    assert found is not None
    assert [mount.source for mount in found.mounts] == [alone]


def supervised(
    code: str, *, grace: float = 30.0, stall: float = 30.0, stdin: Path | None = None, argument: str = ""
) -> tuple[int, list[tuple[float, bytes]], float]:
    """Run a program under the supervisor; returns its code, its lines with their times, and the seconds it took."""
    settings = {"final": ["result"], "grace_seconds": grace, "stall_seconds": stall, "stdin": stdin and str(stdin)}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-I", "-S", supervise.__file__, json.dumps(settings), sys.executable, "-c", code, argument],
        env={**os.environ, "GIVEN": "$HOME stays"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=25,
        check=False,
    )
    pairs = [line.split(b" ", 1) for line in done.stdout.splitlines()]
    return done.returncode, [(float(when[1:]), text) for when, text in pairs], time.monotonic() - began


def ended(found: list[tuple[float, bytes]]) -> dict[str, Any]:
    how: dict[str, Any] = json.loads(found[-1][1])
    return how


def test_the_supervisor_tells_when_lines_came_and_how_it_ended() -> None:
    code = "import sys, time; print('a', flush=True); time.sleep(0.4); print('b'); sys.exit(7)"
    exit_code, found, _ = supervised(code)
    assert (exit_code, [text for _, text in found[:2]]) == (7, [b"a", b"b"])
    assert found[1][0] - found[0][0] >= 0.3
    assert ended(found) == {"akarena_ended": "exited", "code": 7}


def test_an_agent_that_stays_after_its_final_event_is_ended_and_accepted() -> None:
    exit_code, found, seconds = supervised(
        'import time; print(\'{"type": "result"}\', flush=True); time.sleep(60)', grace=0.3
    )
    assert (exit_code, ended(found)["akarena_ended"]) == (0, "lingered")
    assert seconds < 15


def test_an_agent_that_goes_on_after_a_final_event_is_left_alone() -> None:
    code = 'import time; print(\'{"type": "result"}\', flush=True); print(\'{"type": "x"}\', flush=True); time.sleep(1)'
    assert ended(supervised(code, grace=0.3)[1])["akarena_ended"] == "exited"


def test_an_agent_that_prints_nothing_is_stalled() -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    exit_code, found, seconds = supervised(code, stall=0.5)
    assert (exit_code, ended(found)["akarena_ended"]) == (137, "stalled")
    assert seconds < 15


def test_what_an_agent_leaves_running_is_not_waited_for() -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '8']); print('x')"
    _, found, seconds = supervised(code)
    assert found[0][1] == b"x"
    assert seconds < 6


def test_the_prompt_comes_on_standard_input_or_as_an_argument(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.md"
    prompt.write_text("long " * 100_000)
    code = "import sys; print(len(sys.stdin.read()), sys.argv[1])"
    assert supervised(code, stdin=prompt, argument="$GIVEN")[1][0][1] == b"500000 $HOME stays"


def test_output_that_is_no_text_and_ends_without_a_newline_is_passed_on() -> None:
    assert supervised("import os; os.write(1, bytes([255, 10, 254]))")[1][:2][1][1] == b"\xfe"


def test_a_program_that_can_not_be_started_is_told() -> None:
    settings = json.dumps({"final": [], "grace_seconds": 1, "stall_seconds": 1, "stdin": None})
    argv = [sys.executable, supervise.__file__, settings, "/no/such/program"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (127, "/no/such/program: No such file or directory\n")


USED = Tokens(input=11, output=9, cache_read=5, cache_write=3, reasoning=2)


def ran(stdout: bytes, exit_code: int | None = 0, stderr: bytes = b"", audit: tuple[dict[str, Any], ...] = ()) -> Ran:
    result = Result(End.EXITED, exit_code, None, stdout, stderr, 0, 1.0, "")
    end = AgentEnd.FINISHED if exit_code == 0 else AgentEnd.CRASHED
    log = b"".join(json.dumps(entry).encode() + b"\n" for entry in audit)
    detail = "" if exit_code == 0 else f"the program ended with exit code {exit_code}"
    return Ran(result, end, detail, (), 0, None, {"gateway.jsonl": log} if audit else {})


def request(verdict: str, status: int | None, model: str | None = "m") -> dict[str, Any]:
    return {"model": model, "verdict": verdict, "status": status}


FAILED = lines(CLAUDE_RESULT | {"is_error": True, "result": "API Error"})


@pytest.mark.parametrize(
    ("found", "end", "detail"),
    [
        (ran(lines(*CLAUDE)), AgentEnd.FINISHED, ""),
        (ran(lines(*CLAUDE[:3])), AgentEnd.FINISHED, "it ended without a final event"),
        (ran(lines(*CLAUDE[:3]), 1, b"a\nboom\n"), AgentEnd.CRASHED, "boom"),
        (ran(b"", 1), AgentEnd.CRASHED, "the program ended with exit code 1"),
        (ran(FAILED), AgentEnd.CRASHED, "API Error"),
        (ran(FAILED, 1, audit=(request("upstream_error", 401),)), AgentEnd.REFUSED, "API Error"),
        (ran(FAILED, 1, audit=(request("upstream_error", 403),)), AgentEnd.REFUSED, "API Error"),
        (ran(FAILED, 1, audit=(request("upstream_error", 429),)), AgentEnd.RATE_LIMITED, "API Error"),
        (ran(FAILED, 1, audit=(request("upstream_error", 529),)), AgentEnd.RATE_LIMITED, "API Error"),
        (ran(FAILED, 1, audit=(request("upstream_error", 503),)), AgentEnd.RATE_LIMITED, "API Error"),
        (ran(FAILED, 1, audit=(request("upstream_error", 500),)), AgentEnd.CRASHED, "API Error"),
        (ran(FAILED, 1, audit=(request("out_of_budget", 429),)), AgentEnd.OUT_OF_BUDGET, "API Error"),
        (
            ran(FAILED, 1, audit=(request("out_of_budget", 429), request("refused", 403, None))),
            AgentEnd.OUT_OF_BUDGET,
            "API Error",
        ),
        (
            ran(FAILED, 1, audit=(request("upstream_error", 429), request("allowed", 200))),
            AgentEnd.CRASHED,
            "API Error",
        ),
        (ran(lines(*CLAUDE), audit=(request("upstream_error", 429), request("allowed", 200))), AgentEnd.FINISHED, ""),
        (
            ran(lines({"type": "result", "subtype": "error_max_budget_usd"}), 1),
            AgentEnd.OUT_OF_BUDGET,
            "error_max_budget_usd",
        ),
        (ran(b"", 1, b"Error: 401 Unauthorized\n"), AgentEnd.REFUSED, "Error: 401 Unauthorized"),
        (ran(b"", 1, b"Error: Invalid API key\n"), AgentEnd.REFUSED, "Error: Invalid API key"),
        (ran(b"", 1, b"rate limit exceeded\n"), AgentEnd.RATE_LIMITED, "rate limit exceeded"),
        (
            ran(lines(*CLAUDE) + b'@9.000 {"akarena_ended": "lingered", "code": 137}\n'),
            AgentEnd.FINISHED,
            "it did not end by itself after its final event",
        ),
        (
            ran(lines(*CLAUDE) + b'@9.000 {"akarena_ended": "stalled", "code": 137}\n', 137),
            AgentEnd.FINISHED,
            "it did not end by itself after its final event",
        ),
        (
            ran(lines(*CLAUDE[:3]) + b'@9.000 {"akarena_ended": "stalled", "code": 137}\n', 137),
            AgentEnd.STALLED,
            "it printed nothing for 1800 s",
        ),
        (
            replace(
                ran(FAILED, None, audit=(request("upstream_error", 429),)),
                result=Result(End.STOPPED, None, None, FAILED, b"", 0, 1.0, ""),
                detail="the workspace holds 3000 MiB",
            ),
            AgentEnd.CRASHED,
            "the workspace holds 3000 MiB",
        ),
        (replace(ran(b"", None), end=AgentEnd.TIMED_OUT, detail="over 2 s"), AgentEnd.TIMED_OUT, "over 2 s"),
        (replace(ran(b"", None), end=AgentEnd.OUT_OF_MEMORY, detail="full"), AgentEnd.OUT_OF_MEMORY, "full"),
    ],
)
def test_ends_are_told_apart(found: Ran, end: AgentEnd, detail: str) -> None:
    outcome = ClaudeAgent().outcome(found)
    assert (outcome.end, outcome.detail) == (end, detail)


def test_an_outcome_keeps_the_raw_stream_and_says_whether_it_was_whole() -> None:
    whole = ClaudeAgent().outcome(ran(lines(*CLAUDE), stderr=b"\xff"))
    assert (whole.complete, whole.exit_code) == (True, 0)
    assert whole.logs["agent.stdout"].splitlines() == [json.dumps(event).encode() for event in CLAUDE]
    assert whole.logs["agent.stderr"] == b"\xff"
    assert not ClaudeAgent().outcome(ran(lines(*CLAUDE[:-1]))).complete


def test_the_gateway_counts_and_a_difference_is_told() -> None:
    found = ran(lines(*CLAUDE))
    same = ClaudeAgent().outcome(replace(found, tokens=USED))
    reported = USED.model_copy(update={"reasoning": 0})
    assert (same.tokens, same.reported_tokens, same.notes) == (USED, reported, ())
    other = ClaudeAgent().outcome(replace(found, tokens=USED.model_copy(update={"output": 10})))
    assert other.tokens is not None
    assert other.tokens.output == 10
    assert other.notes == ("the agent reports other numbers of tokens than the gateway counted",)
    assert ClaudeAgent().outcome(found).tokens == reported


def test_a_cost_is_priced_by_what_the_gateway_counted() -> None:
    prices = Prices(input=1e6, output=1e6, cache_read=0.0, cache_write=0.0)
    found = replace(ran(lines(*CLAUDE)), tokens=USED)
    priced = ClaudeAgent().outcome(found, prices)
    assert priced.cost == Cost(usd=20.0, source=CostSource.PRICED)
    reported = ClaudeAgent().outcome(found).cost
    assert reported is not None
    assert reported.source is CostSource.REPORTED
    assert priced.notes == (f"the agent reports a cost of {reported.usd:.6g} dollars",)
    assert ClaudeAgent().outcome(ran(lines(*CLAUDE)), prices).cost == reported, "nothing was counted"


def test_nothing_is_known_of_tokens_in_a_tunnel() -> None:
    outcome = CursorAgent().outcome(ran(lines(CURSOR_RESULT)))
    assert (outcome.tokens, outcome.reported_tokens, outcome.cost) == (None, None, None)
    assert outcome.notes == ("vendor tunnel, not inspectable",)


def test_the_supervisor_is_part_of_the_package() -> None:
    assert Path(supervise.__file__) == paths.package() / "agents" / "supervise.py"


MINI = OpenAICompatibleAgent()


def mini(**settings: Any) -> AgentConfiguration:
    return configuration(MINI, **{"model": "some-lab/model:8b", "service_url": "http://127.0.0.1:8000", **settings})


SHORT = "#!{python}\n"
LONG = "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n"
"""What pip writes where the name of the interpreter is too long for a first line."""


def environment_with(script: str, folder: Path, first_line: str = SHORT) -> Path:
    """Make what looks like a virtual environment with one script; returns the script."""
    python = program(folder / "bin" / "python")
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.2\n")
    return program(folder / "bin" / script, first_line.format(python=python))


def test_an_open_model_needs_a_name_and_an_address_but_no_key(
    bin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS:
        monkeypatch.delenv(name)
    (bin_folder / "mini-swe-agent").symlink_to(environment_with("mini-swe-agent", tmp_path / "mini"))
    assert MINI.problems(mini()) == []
    assert MINI.problems(mini(arguments=("model.model_kwargs.temperature=0",))) == []
    wrong: dict[str, dict[str, Any]] = {
        "expected --model": {"model": None},
        "expected --service-url": {"service_url": None},
        "NO_SUCH_KEY": {"service_key": "NO_SUCH_KEY"},
        "--arguments '--yolo': expected a setting of mini-swe-agent": {"arguments": ("--yolo",)},
    }
    for message, settings in wrong.items():
        (problem,) = MINI.problems(mini(**settings))
        assert message in problem


def test_a_program_of_another_language_in_its_place_is_told(bin_folder: Path) -> None:
    program(bin_folder / "mini-swe-agent", "#!/bin/sh\n")
    (problem,) = MINI.problems(mini())
    assert problem.endswith("mini-swe-agent on the PATH is no script of Python's")


def test_argv_of_the_driver_has_a_place_for_the_effort() -> None:
    assert MINI.argv(mini())[2:] == ("some-lab/model:8b", "")
    assert MINI.argv(mini(effort="high", arguments=("agent.step_limit=5",)))[3:] == ("high", "agent.step_limit=5")


@pytest.mark.parametrize("first_line", [SHORT, LONG], ids=["short", "long"])
def test_a_virtual_environment_is_shown_and_nothing_around_it(
    first_line: str, bin_folder: Path, tmp_path: Path
) -> None:
    script = environment_with("mini-swe-agent", tmp_path / "mini", first_line)
    (bin_folder / "mini-swe-agent").symlink_to(script)
    found = installed.find_python("mini-swe-agent")
    assert found is not None
    assert found.path == "/akarena-agent/python/bin/python"
    shown = [(mount.source, mount.target, mount.writable) for mount in found.mounts]
    assert shown == [(tmp_path / "mini", "/akarena-agent/python", False)]


def test_a_script_that_names_no_python_is_not_taken(bin_folder: Path, tmp_path: Path) -> None:
    assert installed.find_python("mini-swe-agent") is None
    for first_line in ("#!/bin/sh\n", f"#!{tmp_path}/gone/python\n", "#!/usr/bin/env python3\n", "\x7fELF"):
        program(bin_folder / "mini-swe-agent", first_line)
        assert installed.find_python("mini-swe-agent") is None, first_line


def test_the_steps_of_the_driver() -> None:
    parser = MiniParser()
    for event in (
        {"type": "reasoning", "text": "hm"},
        {"type": "call", "id": 1, "tool": "bash", "command": "false"},
        {"type": "output", "id": 1, "code": 1, "text": "no"},
        {"type": "call", "id": 2, "tool": "bash", "command": "true"},
        {"type": "output", "id": 2, "code": 0, "text": ""},
        {"type": "format_error", "calls": "[]", "text": "a command, please"},
        {"type": "news", "text": 3},
        {"type": "result", "status": "Submitted", "text": "done"},
    ):
        parser.read(event)
    assert [(step.kind.value, step.result) for step in parser.work.steps()] == [
        ("reasoning", None),
        ("tool_call", "exit code 1\nno"),
        ("tool_call", ""),
        ("message", None),
        ("other", None),
        ("message", None),
    ]
    assert (parser.work.complete, parser.work.error, parser.work.end) == (True, "", None)


@pytest.mark.parametrize(
    ("event", "error", "end"),
    [
        ({"status": "LimitsExceeded"}, "LimitsExceeded", AgentEnd.OUT_OF_BUDGET),
        ({"status": "APIError", "error": "boom"}, "APIError: boom", None),
        ({"status": 7, "text": ["x"]}, "7", None),
        ({}, "error", None),
    ],
)
def test_an_end_that_is_no_success_is_an_error(event: dict[str, Any], error: str, end: AgentEnd | None) -> None:
    parser = MiniParser()
    parser.read({"type": "result", **event})
    assert (parser.work.complete, parser.work.error, parser.work.end) == (True, error, end)


@pytest.mark.parametrize(
    ("status", "end"), [(None, AgentEnd.CRASHED), (503, AgentEnd.RATE_LIMITED), (401, AgentEnd.REFUSED)]
)
def test_how_it_ends_without_a_service_is_what_the_gateway_saw(status: int | None, end: AgentEnd) -> None:
    failed = lines({"type": "result", "status": "InternalServerError", "error": "no answer"})
    outcome = MINI.outcome(ran(failed, 1, audit=(request("upstream_error", status),)))
    assert (outcome.end, outcome.detail, outcome.complete) == (end, "InternalServerError: no answer", True)
