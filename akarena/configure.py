"""Which agents with which settings: from flags, or from a file that names several configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from akarena import agents, schemas, store
from akarena.agents import Agent
from akarena.errors import UserError
from akarena.records import AgentsRecord
from akarena.records.run import AgentConfiguration, Prices
from akarena.strictjson import shorten

FLAGS = {
    "model": "--model",
    "effort": "--effort",
    "arguments": "--arguments",
    "command": "--command",
    "replay_of": "--replay",
    "service": "--service",
    "service_url": "--service-url",
    "service_key": "--service-key",
    "prices": "--prices",
    "token_budget": "--token-budget",
    "usd_budget": "--usd-budget",
}
"""The settings of a configuration, each with its flag."""


def from_flags(names: Sequence[str], settings: Mapping[str, Any], runs_dir: Path) -> tuple[AgentConfiguration, ...]:
    """Give each agent the settings that it takes.

    Args:
        names: Agents; each one's configuration is called like it.
        settings: By field of `AgentConfiguration`; None where the flag was not given.
        runs_dir: Where runs to replay are looked for.

    Raises:
        UserError: An agent does not exist, or a flag was given that none of them takes.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    chosen = [(name, agents.get(name)) for name in names]
    for setting in given:
        if not any(setting in agent.takes for _, agent in chosen):
            raise UserError(f"{FLAGS[setting]}: none of the chosen agents takes it ({', '.join(names)})")
    found = []
    for name, agent in chosen:
        taken = {setting: value for setting, value in given.items() if setting in agent.takes}
        try:
            configuration = AgentConfiguration(id=name, agent=name, **taken)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            flag = FLAGS.get(str(first["loc"][0]), "--agent")
            raise UserError(f"{flag} {shorten(first['input'])}: {first['msg']}") from None
        found.append(_resolved(configuration, agent, runs_dir))
    return tuple(found)


def from_file(path: Path, runs_dir: Path) -> tuple[AgentConfiguration, ...]:
    """Read a TOML file with one ``[[agents]]`` table for each configuration.

    Raises:
        UserError: The file is malformed, names an agent that does not exist, or gives one a setting that it lacks.
    """
    found = []
    for one in schemas.load_toml(AgentsRecord, path).agents:
        agent = agents.get(one.agent)
        for setting in FLAGS:
            if getattr(one, setting) not in (None, ()) and setting not in agent.takes:
                takes = ", ".join(name for name in FLAGS if name in agent.takes) or "no setting"
                raise UserError(f"{path}: {one.id}: agent {one.agent} has no {setting} (it takes {takes})")
        found.append(_resolved(one, agent, runs_dir))
    return tuple(found)


def require_ready(configurations: Sequence[AgentConfiguration]) -> None:
    """Check that nothing is missing for any of them.

    Raises:
        UserError: Something is; one line names all of it.
    """
    ids = [configuration.id for configuration in configurations]
    for one in ids:
        if ids.count(one) > 1:
            raise UserError(f"two configurations are called {one}; each needs an id of its own")
    problems: list[str] = []
    for configuration in configurations:
        problems += agents.get(configuration.agent).problems(configuration)
        if configuration.usd_budget is not None and configuration.prices is None:
            problems.append(f"{configuration.id}: --usd-budget needs --prices, by which dollars are counted")
    if problems:
        raise UserError("; ".join(dict.fromkeys(problems)))


def prices(text: str) -> Prices:
    """Read ``input=3,output=15,cache_read=0.3,cache_write=3.75``, in US dollars for a million tokens.

    Raises:
        ValueError: It is something else, or one of the four is not there.
    """
    given: dict[str, float] = {}
    for pair in text.split(","):
        name, _, amount = pair.partition("=")
        if name in given:
            raise ValueError(f"{name} is given twice")
        given[name] = float(amount)
    return Prices(**given)


def _resolved(configuration: AgentConfiguration, agent: Agent, runs_dir: Path) -> AgentConfiguration:
    """Fill in the service that an agent always speaks to, and the place of a run to replay."""
    changes: dict[str, Any] = {}
    if agent.service is not None:
        changes["service"] = agent.service
    if configuration.replay_of is not None:
        run_name, _, wanted = configuration.replay_of.rpartition(":")
        if not run_name:
            raise UserError(f"--replay {configuration.replay_of}: expected RUN:CONFIGURATION")
        changes["replay_of"] = f"{store.find_run(runs_dir, run_name).root.resolve()}:{wanted}"
    return configuration.model_copy(update=changes)
