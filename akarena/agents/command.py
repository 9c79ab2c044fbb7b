"""``command``: any program, in the sandbox, with the prompt in a file and in an environment variable."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

from akarena import paths
from akarena.agents import way_out
from akarena.agents.base import Assignment, Outcome
from akarena.agents.check import CheckServer
from akarena.agents.watch import WorkspaceWatch
from akarena.agents.way_out import WayOut
from akarena.gateway import missing_key
from akarena.prompt import WORKSPACE
from akarena.records.run import AgentConfiguration
from akarena.records.trial import AgentEnd, Step, StepKind
from akarena.sandbox.base import Command, End, Limits, Mount, Role
from akarena.sandbox.ownership import prepare_writable, reclaim
from akarena.targets import host

_OUTPUT_BYTES = 4 << 20
_MEMORY_BYTES = 32 << 30
_MAX_ENVIRONMENT_BYTES = 100_000
_ENDS = {
    End.TIMEOUT: AgentEnd.TIMED_OUT,
    End.OUT_OF_MEMORY: AgentEnd.OUT_OF_MEMORY,
}


class CommandAgent:
    """Runs an argument vector that the user gave."""

    name = "command"
    summary = "runs any program in the sandbox (--command 'PROGRAM ARGUMENT ...')"
    program = None

    def problems(self, configuration: AgentConfiguration) -> list[str]:
        """Say whether there is a command."""
        problems = []
        if not (configuration.command and configuration.command[0]):
            problems.append("--agent command needs --command 'PROGRAM ARGUMENT ...'")
        service = way_out.service_of(configuration)
        if service is not None and (missing := missing_key(service)):
            problems.append(missing)
        return problems

    def work(self, assignment: Assignment) -> Outcome:
        """Run the program to its end, or to the end of its time."""
        return run_program(assignment, assignment.configuration.command, {})


def run_program(assignment: Assignment, argv: tuple[str, ...], environment: dict[str, str]) -> Outcome:
    """Run one program as an agent: workspace writable, prompt and ``check`` at hand, no network but the gateway.

    Args:
        assignment: The work.
        argv: The program with its arguments.
        environment: Variables of its own.
    """
    cancel = threading.Event()
    with tempfile.TemporaryDirectory(prefix="akarena-agent-") as name:
        private = Path(name)
        prompt = private / "prompt.md"
        prompt.write_text(assignment.prompt, "utf-8")
        server = CheckServer(private / "check.sock", assignment.check, assignment.check_calls)
        prepare_writable(assignment.workspace)
        opened = WayOut(assignment, private)
        with server, WorkspaceWatch(assignment.workspace, cancel) as watch, opened:
            prepare_writable(server.path)
            command = _command(assignment, argv, environment, prompt, server.path)
            started = time.monotonic()
            result = assignment.sandbox.run(opened.through(command), cancel=cancel)
            seconds = time.monotonic() - started
        reclaim(assignment.workspace)
        used, audit = opened.used(), opened.audit()
    end = _ENDS.get(result.end, AgentEnd.FINISHED if result.exit_code == 0 else AgentEnd.CRASHED)
    detail = watch.fault or result.detail
    if end is AgentEnd.CRASHED and not detail:
        how = f"signal {result.signal}" if result.signal else f"exit code {result.exit_code}"
        detail = f"the program ended with {how}"
    step = Step(kind=StepKind.TOOL_CALL, seconds=seconds, text=" ".join(argv)[:20000], tool="program")
    return Outcome(
        end=end,
        exit_code=result.exit_code,
        detail=detail[:2000],
        complete=result.end is End.EXITED,
        check_calls=server.calls,
        steps=(step, *server.steps(started)),
        tokens=used,
        logs={"agent.stdout": result.stdout, "agent.stderr": result.stderr, **audit},
    )


def _command(
    assignment: Assignment, argv: tuple[str, ...], environment: dict[str, str], prompt: Path, check: Path
) -> Command:
    provision = assignment.target.torch_process()
    python = assignment.target.python(Role.AGENT)
    text = assignment.prompt
    if len(text.encode()) > _MAX_ENVIRONMENT_BYTES:
        text = "(longer than an environment variable may be; read the file AKARENA_PROMPT_FILE)"
    headers = paths.package() / "targets" / "include" / assignment.target.name.value
    mounts = [
        *provision.mounts,
        Mount(assignment.workspace, WORKSPACE, writable=True),
        Mount(prompt, f"{host.CODE}/prompt.md"),
        Mount(paths.package() / "agents" / "check_client.py", f"{host.CODE}/check"),
        Mount(check, f"{host.CODE}/check.sock"),
    ]
    if headers.is_dir():
        mounts.append(Mount(headers, f"{host.CODE}/include"))
    return Command(
        argv=argv,
        environment={
            **provision.environment,
            **environment,
            "PATH": f"{Path(python.executable).parent}:{provision.environment['PATH']}",
            "AKARENA_PROMPT": text,
            "AKARENA_PROMPT_FILE": f"{host.CODE}/prompt.md",
            "LC_ALL": "C.UTF-8",
        },
        mounts=tuple(mounts),
        limits=Limits(
            wall_seconds=assignment.seconds,
            memory_bytes=_MEMORY_BYTES,
            processes=1024,
            output_bytes=_OUTPUT_BYTES,
            file_bytes=2 << 30,
            tmp_bytes=2 << 30,
        ),
        working_directory=WORKSPACE,
        role=Role.AGENT,
    )
