"""What went wrong elsewhere before an agent began: names, keys, and programs that do not like where they are."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, SOFTMAX, Cli
from tests.field.conftest import VENDORS

KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "cursor": "CURSOR_API_KEY"}
SERVICES = {"claude": "anthropic", "codex": "openai", "cursor": "cursor"}
TASKS = sorted(str(file.parent.relative_to(ROOT / "tasks")) for file in (ROOT / "tasks").glob("*/*/task.toml"))


def told(cli: Cli, *arguments: str) -> str:
    """Run a command that a user got wrong: one line, exit code 2, and nothing was begun."""
    done = cli(*arguments)
    assert (done.code, len(done.told), done.out) == (2, 1, ""), done.err
    assert "Traceback" not in done.err
    assert not cli.runs.exists()
    assert not cli.seeds.exists()
    return done.told[0]


@pytest.fixture
def fresh(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.mark.parametrize("names", [("nope",), (SOFTMAX, "nope")], ids=["alone", "beside a right one"])
def test_f28_an_unknown_task_names_those_that_exist(fresh: Cli, names: tuple[str, ...]) -> None:
    line = told(fresh, "evaluate", "--target", "cpu", "--tasks", *names)
    assert line.startswith("akarena: --tasks: task 'nope' does not exist")
    assert len(TASKS) >= 9
    assert all(task in line for task in TASKS)


@pytest.mark.parametrize(
    ("name", "near"),
    [("sofmax", "softmax"), ("hip2hip/sofmax", SOFTMAX), ("hip2hop", "hip2hip"), ("pytorch2hip/atention", "attention")],
)
def test_f28_a_misspelt_task_names_the_nearest(fresh: Cli, name: str, near: str) -> None:
    hint = told(fresh, "evaluate", "--target", "cpu", "--tasks", name).partition("did you mean ")[2].partition("?")[0]
    assert near in hint


def test_f29_an_unknown_agent_names_the_nearest_and_all(fresh: Cli) -> None:
    line = told(fresh, "evaluate", "--target", "cpu", "--agent", "curser", "--tasks", SOFTMAX)
    assert "agent 'curser' does not exist; did you mean cursor" in line
    assert all(name in line.partition("(known: ")[2] for name in (*VENDORS, "command", "nop", "replay", "solution"))
    file = fresh.folder / "agents.toml"
    file.write_text('schema_version = 1\n[[agents]]\nid = "mine"\nagent = "curser"\n')
    assert "did you mean cursor" in told(fresh, "evaluate", "--target", "cpu", "--agents-file", str(file))
    assert "did you mean cursor" in told(fresh, "preflight", "--target", "cpu", "--agent", "curser")


@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize("value", [None, "", " sk-1\n"], ids=["no key", "an empty key", "a key with a newline"])
@pytest.mark.parametrize("agent", KEYS)
def test_f30_a_missing_key_is_named(fresh: Cli, monkeypatch: pytest.MonkeyPatch, agent: str, value: str | None) -> None:
    monkeypatch.delenv(KEYS[agent])
    if value is not None:
        monkeypatch.setenv(KEYS[agent], value)
    line = told(fresh, "evaluate", "--target", "cpu", "--sandbox", "bubblewrap", "--agent", agent, "--tasks", SOFTMAX)
    assert line.startswith(f"akarena: environment variable {KEYS[agent]}: ")
    if not value:
        assert f"set it to a key of the service {SERVICES[agent]}" in line
    else:
        assert value.strip() not in line, "a key is told to nobody"


@pytest.mark.usefixtures("fakes")
def test_f30_all_that_is_missing_is_named_at_once(fresh: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in KEYS.values():
        monkeypatch.delenv(variable)
    chosen = [word for agent in KEYS for word in ("--agent", agent)]
    line = told(fresh, "evaluate", "--target", "cpu", "--sandbox", "bubblewrap", *chosen)
    assert all(f"environment variable {variable}: is not set" in line for variable in KEYS.values())


@pytest.mark.usefixtures("fakes")
def test_f30_a_run_is_not_resumed_without_its_key(fresh: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("--agent", "cursor", "--arguments", "play=silent", "--sandbox", "bubblewrap", "--tasks", SOFTMAX)
    process = fresh.start(*fresh.evaluate_arguments("cut", *arguments))
    try:
        end = time.monotonic() + 60
        while not list(fresh.runs.glob("cut/trials/*/*/*/a1/t1/logs/prompt.md")) and time.monotonic() < end:
            time.sleep(0.05)
    finally:
        process.kill()
        process.communicate()
    before = sorted(fresh.runs.rglob("*"))
    assert [path for path in before if path.name == "prompt.md"]
    monkeypatch.delenv("CURSOR_API_KEY")
    done = fresh("resume", "cut")
    assert (done.code, len(done.told)) == (2, 1), done.err
    assert "environment variable CURSOR_API_KEY: is not set" in done.told[0]
    assert sorted(fresh.runs.rglob("*")) == before


def test_f13_the_preflight_names_the_user_and_a_program_that_refuses(cli: Cli, fakes: None, tmp_path: Path) -> None:
    program = tmp_path / "fakes" / "claude" / "claude"
    program.write_text("#!/bin/sh\necho 'cannot be used with root privileges' >&2\nexit 1\n")
    done = cli("preflight", "--target", "cpu", "--sandbox", "bubblewrap", "--agent", "claude")
    assert done.code == 3
    (line,) = (line for line in done.out.splitlines() if line.startswith("FAILED  agent claude"))
    assert "cannot be used with root privileges" in line
    alone = cli("preflight", "--target", "cpu", "--sandbox", "bubblewrap")
    assert alone.code == 0
    (user,) = (line for line in alone.out.splitlines() if "agent: the user inside is not root" in line)
    assert user.startswith("ok")
