"""Runs one program as an agent: what it sees, what it may use, and what is known when it has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from akarena import paths
from akarena.agents.base import Assignment
from akarena.agents.check import CheckServer
from akarena.agents.take_back import take_back
from akarena.agents.watch import WorkspaceWatch
from akarena.agents.way_out import WayOut
from akarena.prompt import WORKSPACE
from akarena.records.trial import AgentEnd, Step, Tokens
from akarena.sandbox.base import Command, End, Limits, Mount, Result, Role
from akarena.sandbox.ownership import prepare_writable
from akarena.targets import host
from akarena.temporary import OwnedFolder

PROMPT_FILE = f"{host.CODE}/prompt.md"
"""Where the prompt lies in the sandbox; AKARENA_PROMPT_FILE names it."""
_MOST_MEMORY_BYTES = 32 << 30
"""But no more than half of the machine's, so that an agent without a hard limit can't use up the machine."""
_MAX_ENVIRONMENT_BYTES = 100_000
_ENDS = {
    End.TIMEOUT: AgentEnd.TIMED_OUT,
    End.OUT_OF_MEMORY: AgentEnd.OUT_OF_MEMORY,
}


@dataclass(frozen=True)
class Program:
    """What is run.

    Attributes:
        argv: The program with its arguments.
        environment: Variables of its own.
        mounts: What it sees besides the tool chain and the workspace.
        folders: Further folders of its PATH.
        output_bytes: Kept of each of its output streams.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    folders: tuple[str, ...] = ()
    output_bytes: int = 4 << 20


@dataclass(frozen=True)
class Ran:
    """How a program ended.

    Attributes:
        result: What the sandbox says.
        end: Told from the sandbox and the exit code alone.
        detail: One line for people; empty where there is nothing to tell.
        checks: Its calls of ``check``.
        check_calls: How many there were.
        tokens: What the gateway counted; None where it could not.
        audit: Log of the gateway, by its name; empty without one.
    """

    result: Result
    end: AgentEnd
    detail: str
    checks: tuple[Step, ...]
    check_calls: int
    tokens: Tokens | None
    audit: dict[str, bytes]


def run(assignment: Assignment, program: Program) -> Ran:
    """Run one program: workspace writable, prompt and ``check`` at hand, no network but the gateway.

    Args:
        assignment: The work.
        program: What is run.
    """
    cancel = threading.Event()
    with OwnedFolder("agent") as name:
        private = Path(name)
        prompt = private / "prompt.md"
        prompt.write_text(assignment.prompt, "utf-8")
        server = CheckServer(private / "check.sock", assignment.check, assignment.check_calls)
        prepare_writable(assignment.workspace)
        opened = WayOut(assignment, private)
        with server, WorkspaceWatch(assignment.workspace, cancel) as watch, opened:
            prepare_writable(server.path)
            command = _command(assignment, program, prompt, server.path)
            started = time.monotonic()
            result = assignment.sandbox.run(opened.through(command), cancel=cancel)
        take_back(assignment.workspace)
        used, audit = opened.used(), opened.audit()
    end = _ENDS.get(result.end, AgentEnd.FINISHED if result.exit_code == 0 else AgentEnd.CRASHED)
    detail = watch.fault or result.detail
    if end is AgentEnd.CRASHED and not detail:
        how = f"signal {result.signal}" if result.signal else f"exit code {result.exit_code}"
        detail = f"the program ended with {how}"
    return Ran(result, end, detail[:2000], server.steps(started), server.calls, used, audit)


def _command(assignment: Assignment, program: Program, prompt: Path, check: Path) -> Command:
    provision = assignment.target.torch_process()
    python = assignment.target.python(Role.AGENT)
    text = assignment.prompt
    if len(text.encode()) > _MAX_ENVIRONMENT_BYTES:
        text = f"Read the file {PROMPT_FILE} and do what it says."
    headers = paths.package() / "targets" / "include" / assignment.target.name.value
    mounts = [
        *provision.mounts,
        *program.mounts,
        Mount(assignment.workspace, WORKSPACE, writable=True),
        Mount(prompt, PROMPT_FILE),
        Mount(paths.package() / "agents" / "check_client.py", f"{host.CODE}/check"),
        Mount(check, f"{host.CODE}/check.sock"),
    ]
    if headers.is_dir():
        mounts.append(Mount(headers, f"{host.CODE}/include"))
    folders = (str(Path(python.executable).parent), provision.environment["PATH"], *program.folders)
    return Command(
        argv=program.argv,
        environment={
            **provision.environment,
            **program.environment,
            "PATH": ":".join(folders),
            "AKARENA_PROMPT": text,
            "AKARENA_PROMPT_FILE": PROMPT_FILE,
            "LC_ALL": "C.UTF-8",
        },
        mounts=tuple(mounts),
        limits=Limits(
            wall_seconds=assignment.seconds,
            memory_bytes=min(_MOST_MEMORY_BYTES, psutil.virtual_memory().total // 2),
            processes=1024,
            output_bytes=program.output_bytes,
            file_bytes=2 << 30,
            tmp_bytes=2 << 30,
        ),
        working_directory=WORKSPACE,
        role=Role.AGENT,
    )
