"""What an agent is: something that works on a copy of a task's files until it says that it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from akarena.records.run import AgentConfiguration
from akarena.records.trial import AgentEnd, Cost, Step, Tokens
from akarena.sandbox.base import Sandbox
from akarena.targets import Target
from akarena.tasks import Task

Check = Callable[[], bytes]
"""Judges the files as they are in the workspace and returns a check record as JSON."""


@dataclass(frozen=True)
class Assignment:
    """One piece of work for an agent.

    Attributes:
        task: The task; only its agent-visible files are in the workspace.
        configuration: The agent with its settings.
        workspace: Folder that the agent works in.
        prompt: What it is asked.
        sandbox: Where hostile programs run.
        target: Hardware and tool chain.
        seconds: Wall time that it has.
        check: Its way to ask for a judgement.
        check_calls: How often it may.
        attempt: Number of the attempt.
    """

    task: Task
    configuration: AgentConfiguration
    workspace: Path
    prompt: str
    sandbox: Sandbox
    target: Target
    seconds: float
    check: Check
    check_calls: int
    attempt: int


@dataclass(frozen=True)
class Outcome:
    """How the agent's work ended, and what is known of it."""

    end: AgentEnd
    exit_code: int | None = None
    detail: str = ""
    complete: bool = True
    check_calls: int = 0
    steps: tuple[Step, ...] = ()
    tokens: Tokens | None = None
    """As the gateway counted them, or as the agent reports them where the gateway could not."""
    reported_tokens: Tokens | None = None
    """As the agent reports them."""
    cost: Cost | None = None
    notes: tuple[str, ...] = ()
    """What a reader of the trajectory has to know, one line each."""
    logs: dict[str, bytes] = field(default_factory=dict)
    """Raw streams, by file name."""


class Agent(Protocol):
    """An agent of one kind; settings come with each assignment."""

    name: str
    summary: str
    """One line for ``agents list``."""
    program: str | None
    """Name of its program, where an image has to hold one; None for an agent that needs nothing installed."""
    takes: frozenset[str]
    """Settings of a configuration that it has a use for, by field of `AgentConfiguration`."""

    @property
    def service(self) -> str | None:
        """The model service that it always speaks to; None where it has none, or the user chooses."""

    def problems(self, configuration: AgentConfiguration) -> list[str]:
        """Return what is missing or wrong before anything starts, one line each."""

    def work(self, assignment: Assignment) -> Outcome:
        """Work on the assignment to its end. Nothing of the agent runs any more when this returns."""
