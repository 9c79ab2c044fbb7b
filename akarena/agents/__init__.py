"""Agents by name."""

from __future__ import annotations

from akarena.agents.base import Agent, Assignment, Outcome
from akarena.errors import unknown_name
from akarena.registry import Registry

_AGENTS: Registry[Agent] = Registry(
    group="akarena.agents",
    builtin={
        "solution": "akarena.agents.builtin:SolutionAgent",
        "nop": "akarena.agents.builtin:NopAgent",
        "command": "akarena.agents.command:CommandAgent",
        "replay": "akarena.agents.replay:ReplayAgent",
        "claude": "akarena.agents.claude:ClaudeAgent",
        "codex": "akarena.agents.codex:CodexAgent",
        "cursor": "akarena.agents.cursor:CursorAgent",
        "openai-compatible": "akarena.agents.openai_compatible:OpenAICompatibleAgent",
    },
)


def names() -> tuple[str, ...]:
    """Return the registered names."""
    return _AGENTS.names()


def get(name: str) -> Agent:
    """Return an agent by name.

    Raises:
        UserError: No agent has that name.
    """
    if name not in _AGENTS.names():
        raise unknown_name("--agent: agent", name, names())
    return _AGENTS.create(name)


__all__ = ["Agent", "Assignment", "Outcome", "get", "names"]
