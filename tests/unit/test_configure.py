"""Agents with their settings, from flags and from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from akarena import configure
from akarena.errors import UserError
from akarena.records.run import AgentConfiguration, Prices

PRICES = Prices(input=3, output=15, cache_read=0.3, cache_write=3.75)
TWO = """
schema_version = 1

[[agents]]
id = "claude-high"
agent = "claude"
model = "claude-opus-4-6"
effort = "high"
arguments = ["--max-turns", "60"]
token_budget = 2000000
usd_budget = 5
prices = { input = 3, output = 15, cache_read = 0.3, cache_write = 3.75 }

[[agents]]
id = "mine"
agent = "command"
command = ["sh", "-c", "true"]
"""


def from_text(tmp_path: Path, text: str) -> tuple[AgentConfiguration, ...]:
    path = tmp_path / "agents.toml"
    path.write_text(text)
    return configure.from_file(path, tmp_path)


def from_flags(*names: str, **settings: Any) -> tuple[AgentConfiguration, ...]:
    return configure.from_flags(names, settings, Path("runs"))


def test_each_agent_gets_the_flags_that_it_takes() -> None:
    claude, cursor, command = from_flags(
        *("claude", "cursor", "command"), model="m-1", effort="high", command=("sh",), usd_budget=2.0, prices=PRICES
    )
    assert (claude.model, claude.effort, claude.command, claude.service) == ("m-1", "high", (), "anthropic")
    assert (cursor.model, cursor.effort, cursor.usd_budget, cursor.service) == ("m-1", None, None, "cursor")
    assert (command.command, command.prices, command.effort, command.service) == (("sh",), PRICES, None, None)


def test_a_file_names_several_configurations(tmp_path: Path) -> None:
    high, mine = from_text(tmp_path, TWO)
    assert (high.id, high.agent, high.effort, high.arguments) == (
        "claude-high",
        "claude",
        "high",
        ("--max-turns", "60"),
    )
    assert (high.prices, high.usd_budget, high.token_budget, high.service) == (PRICES, 5.0, 2_000_000, "anthropic")
    assert (mine.command, mine.service) == (("sh", "-c", "true"), None)


@pytest.mark.parametrize(
    ("names", "settings", "said"),
    [
        (("cursor",), {"effort": "high"}, "--effort: none of the chosen agents takes it (cursor)"),
        (("solution", "nop"), {"model": "m"}, "--model: none of the chosen agents takes it (solution, nop)"),
        (("claud",), {}, "did you mean claude"),
        (("command",), {"service": "No Service"}, "--service 'No Service': "),
        (("replay",), {"replay_of": "nothing"}, "expected RUN:CONFIGURATION"),
    ],
)
def test_a_flag_that_is_wrong(names: tuple[str, ...], settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as raised:
        from_flags(*names, **settings)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('id = "mine"', 'id = "Mine"', "agents.toml: agents[1].id"),
        ('agent = "command"', 'agent = "comand"', "did you mean command"),
        ('command = ["sh"', 'effort = "high"\ncommand = ["sh"', "mine: agent command has no effort (it takes model, "),
        ("usd_budget = 5", "usd_budget = -5", "agents.toml: agents[0].usd_budget"),
        ("usd_budget = 5", "budget = 5", "agents.toml: agents[0].budget"),
        (", cache_write = 3.75", "", "agents.toml: agents[0].prices"),
        ("schema_version = 1", "schema_version = 2", "schema_version"),
        ("[[agents]]", "[[agents]", "agents.toml: is not TOML"),
    ],
)
def test_a_file_that_is_wrong(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in TWO
    with pytest.raises(UserError) as raised:
        from_text(tmp_path, TWO.replace(old, new, 1))
    assert said in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.toml: cannot be read"):
        configure.from_file(tmp_path / "nowhere.toml", tmp_path)


def test_what_is_not_ready_is_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UserError) as raised:
        configure.require_ready(from_flags("claude", "command", usd_budget=1.0))
    for part in ("ANTHROPIC_API_KEY", "claude: --usd-budget needs --prices", "--agent command needs --command"):
        assert part in str(raised.value)
    assert str(raised.value).count("ANTHROPIC_API_KEY: ") == 1


def test_two_configurations_of_one_name() -> None:
    with pytest.raises(UserError, match="two configurations are called nop"):
        configure.require_ready(from_flags("nop", "nop"))


def test_prices() -> None:
    assert configure.prices("input=3,output=15,cache_read=0.3,cache_write=3.75") == PRICES
    for text in ("", "3", "input=3", "input=3,input=4", "input=x,output=1,cache_read=1,cache_write=1"):
        with pytest.raises(ValueError):
            configure.prices(text)
    with pytest.raises(ValueError):
        configure.prices("input=-3,output=15,cache_read=0.3,cache_write=3.75")
