"""The flags that say which agents work, with which settings, and what their values may be."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from akarena.errors import UserError


def add_agents(parser: argparse.ArgumentParser) -> None:
    """Add what chooses agents and their settings."""
    parser.add_argument("--agent", action="append", default=[], help="a name of `akarena agents list`; repeatable")
    parser.add_argument("--agents-file", type=Path, help="TOML file of agents and settings to compare, instead")
    parser.add_argument("--model", help="model that the agent asks, by its full name; no other one is let through")
    parser.add_argument("--effort", help="how hard the model thinks, in the words of the agent's command line")
    parser.add_argument("--arguments", help="further arguments of the agent's own program, as one quoted string")
    parser.add_argument("--command", help="program of the agent `command`, as one quoted string", dest="program")
    parser.add_argument("--service", help="model service that the agent `command` may reach: anthropic or openai")
    parser.add_argument("--service-url", help="its address, where it is not the vendor's")
    parser.add_argument("--service-key", help="name of the environment variable with the key for --service-url")
    parser.add_argument("--prices", type=_prices, help="input=,output=,cache_read=,cache_write= (USD, million tokens)")
    parser.add_argument("--token-budget", type=_amount, help="tokens of one trial, prompts and answers together")
    parser.add_argument("--usd-budget", type=_dollars, help="dollars of one trial, by --prices")
    parser.add_argument("--replay", help="RUN:CONFIGURATION whose candidates the agent `replay` hands in")


def choose_agents(arguments: argparse.Namespace) -> Any:
    """Return the agents with their settings; what is missing for them is not looked at.

    Raises:
        UserError: A name, a value or a file is wrong, or nobody takes a setting that was given.
    """
    from akarena import configure

    settings = {
        "model": arguments.model,
        "effort": arguments.effort,
        "arguments": _words("--arguments", arguments.arguments),
        "command": _words("--command", arguments.program),
        "replay_of": arguments.replay,
        "service": arguments.service,
        "service_url": arguments.service_url,
        "service_key": arguments.service_key,
        "prices": arguments.prices,
        "token_budget": arguments.token_budget,
        "usd_budget": arguments.usd_budget,
    }
    if arguments.agents_file is not None:
        given = [configure.FLAGS[name] for name, value in settings.items() if value is not None]
        if arguments.agent or given:
            other = "--agent" if arguments.agent else given[0]
            raise UserError(f"--agents-file {arguments.agents_file}: says it all, expected no {other} beside it")
        return configure.from_file(arguments.agents_file, arguments.runs_dir)
    return configure.from_flags(arguments.agent or ["solution"], settings, arguments.runs_dir)


def _words(flag: str, text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UserError(f"{flag} {text!r}: {error}") from None


def count(text: str) -> int:
    """Read a whole number from 1 to 1000."""
    return _whole(text, 1)


def calls(text: str) -> int:
    """Read a whole number from 0 to 1000."""
    return _whole(text, 0)


def _amount(text: str) -> int:
    return _whole(text, 1, 10**12)


def _dollars(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1000000 dollars")
    return value


def _prices(text: str) -> Any:
    from akarena import configure

    try:
        return configure.prices(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not input=A,output=B,cache_read=C,cache_write=D in US dollars for a million tokens"
        ) from None


def _whole(text: str, least: int, most: int = 1000) -> int:
    value = int(text) if text.isdecimal() and len(text) < 20 else -1
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{text} is not between {least} and {most}")
    return value


def seconds(text: str) -> float:
    """Read a time of at most a day."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 86400 seconds")
    return value
