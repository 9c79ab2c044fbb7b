"""What all command-line agents of vendors share: how they are found and run, and how their ends are told apart."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from pathlib import Path

from akarena import costs, gateway, paths
from akarena.agents import installed, outcomes, program, stream, way_out
from akarena.agents.base import Assignment, Outcome
from akarena.agents.installed import Installed
from akarena.agents.program import PROMPT_FILE, Program, Ran
from akarena.agents.stream import Parser, Work
from akarena.errors import AkarenaError, InfrastructureError
from akarena.gateway import missing_key
from akarena.images import lock as image_lock
from akarena.records.run import AgentConfiguration, Prices
from akarena.records.task import TargetName
from akarena.records.trial import AgentEnd
from akarena.sandbox.base import Command, End, Limits, Mount, Role, Sandbox
from akarena.targets import Target, host
from akarena.targets.image import ImageTarget

GRACE_SECONDS = 20.0
"""An agent that has printed its final event may go on for so long."""
STALL_SECONDS = 1800.0
"""An agent that prints nothing for so long is stalled."""
_OUTPUT_BYTES = 32 << 20
_VERSION_LIMITS = Limits(60.0, 4 << 30, 256, 1 << 20, 256 << 20, 256 << 20)
_SUPERVISOR = f"{host.CODE}/supervise.py"
_SETTING = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*")


class CliAgent(ABC):
    """One vendor's command line. A subclass says how it is started and how its stream is read."""

    name: str
    summary: str
    program: str | None
    """Name of the agent image that holds it."""
    service: str
    """The service that it speaks to, as the gateway knows it."""
    executable: str
    install: str
    """How a user gets it."""
    final_events: tuple[str, ...]
    """Types of events after which nothing more is to come."""
    prompt_on_stdin: bool = True
    takes = frozenset(
        ("model", "effort", "arguments", "service_url", "service_key", "prices", "token_budget", "usd_budget")
    )

    @abstractmethod
    def argv(self, configuration: AgentConfiguration) -> tuple[str, ...]:
        """Return its arguments; ``$NAME`` stands for a variable of the sandbox's environment."""

    @abstractmethod
    def environment(self, configuration: AgentConfiguration) -> dict[str, str]:
        """Return variables of its own; those of the gateway come by themselves."""

    @abstractmethod
    def parser(self) -> Parser:
        """Return a parser of one stream."""

    def problems(self, configuration: AgentConfiguration) -> list[str]:
        """Say what is missing: the program, the key, or a setting that it can take."""
        problems = []
        for flag, value in (("--model", configuration.model), ("--effort", configuration.effort)):
            if value is not None and not _SETTING.fullmatch(value):
                problems.append(f"{flag} {value!r}: expected letters, digits and . _ : / @ [ ] -")
        service = way_out.service_of(configuration)
        if service is None:
            problems.append(f"agent {self.name}: its configuration names no service, expected {self.service}")
        elif missing := missing_key(service):
            problems.append(missing)
        if installed.find(self.executable) is None and not self._is_in_an_image():
            problems.append(self._not_found())
        return problems

    def work(self, assignment: Assignment) -> Outcome:
        """Run it to its end, and read what it printed."""
        found = self._find(assignment.target)
        settings = {
            "final": self.final_events,
            "grace_seconds": GRACE_SECONDS,
            "stall_seconds": STALL_SECONDS,
            "stdin": PROMPT_FILE if self.prompt_on_stdin else None,
        }
        python = assignment.target.python(Role.AGENT).bare_executable
        supervised = (python, "-I", "-S", _SUPERVISOR, json.dumps(settings), found.path)
        ran = program.run(
            assignment,
            Program(
                argv=(*supervised, *self.argv(assignment.configuration)),
                environment=self.environment(assignment.configuration),
                mounts=(*found.mounts, Mount(paths.package() / "agents" / "supervise.py", _SUPERVISOR)),
                folders=found.folders,
                output_bytes=_OUTPUT_BYTES,
            ),
        )
        return self.outcome(ran, assignment.configuration.prices)

    def outcome(self, ran: Ran, prices: Prices | None = None) -> Outcome:
        """Put together what the sandbox, the stream and the gateway say.

        Args:
            ran: How the program ended.
            prices: For the cost; None: no cost but what the agent reports.
        """
        parser = self.parser()
        raw = stream.parse(ran.result.stdout, parser)
        work = parser.work
        end, detail = _end(ran, work)
        service = gateway.find(self.service)
        notes = [*([service.note] if service.note else []), *work.notes()]
        if (
            ran.tokens
            and work.tokens
            and ran.tokens.model_copy(update={"reasoning": 0}) != work.tokens.model_copy(update={"reasoning": 0})
        ):
            notes.append("the agent reports other numbers of tokens than the gateway counted")
        cost, note = costs.settled(ran.tokens, prices, work.cost)
        if note:
            notes.append(note)
        return Outcome(
            end=end,
            exit_code=ran.result.exit_code,
            detail=detail[:2000],
            complete=work.complete,
            check_calls=ran.check_calls,
            steps=tuple(sorted((*work.steps(), *ran.checks), key=lambda step: step.seconds)),
            # The gateway is the authority wherever it can look inside.
            tokens=ran.tokens or work.tokens,
            reported_tokens=work.tokens,
            cost=cost,
            notes=tuple(note[:500] for note in notes),
            logs={"agent.stdout": raw, "agent.stderr": ran.result.stderr, **ran.audit},
        )

    def version(self, sandbox: Sandbox, target: Target) -> str:
        """Start the program for what it says of its version.

        Raises:
            InfrastructureError: It is not there, or does not start.
        """
        found = self._find(target)
        provision = target.torch_process()
        folders = (str(Path(target.python(Role.AGENT).executable).parent), provision.environment["PATH"])
        result = sandbox.run(
            Command(
                argv=(found.path, "--version"),
                environment={**provision.environment, "PATH": ":".join((*folders, *found.folders))},
                mounts=(*provision.mounts, *found.mounts),
                limits=_VERSION_LIMITS,
                role=Role.AGENT,
            )
        )
        said = result.stdout.decode("utf-8", "replace").strip().splitlines()
        if result.end is not End.EXITED or result.exit_code != 0 or not said:
            why = result.stderr.decode("utf-8", "replace").strip()[-300:]
            raise InfrastructureError(
                f"agent {self.name}: {self.executable} --version gave no answer "
                f"({result.end} {result.exit_code} {result.detail} {why})"
            )
        return said[0][:200]

    def _find(self, target: Target) -> Installed:
        if isinstance(target, ImageTarget):
            return Installed(self.executable)
        found = installed.find(self.executable)
        if found is None:
            raise InfrastructureError(self._not_found())
        return found

    def _is_in_an_image(self) -> bool:
        """Say whether any image that was built here holds it."""
        for target in TargetName:
            try:
                lock = image_lock.load(target)
            except AkarenaError:
                # None was built for this target.
                continue
            if any(image.agent == self.program for image in lock.images):
                return True
        return False

    def _not_found(self) -> str:
        return (
            f"agent {self.name}: the program {self.executable} is neither on the PATH nor in an image "
            f"({self.install}, or run `akarena build --agent {self.program}`)"
        )


def _end(ran: Ran, work: Work) -> tuple[AgentEnd, str]:
    """Tell apart how it ended. What the gateway saw comes before what the agent says."""
    if ran.end not in (AgentEnd.FINISHED, AgentEnd.CRASHED) or ran.result.end not in outcomes.BY_ITSELF:
        return ran.end, ran.detail
    killed = work.exited in ("stalled", "lingered")
    if killed and work.complete and not work.error:
        return AgentEnd.FINISHED, "it did not end by itself after its final event"
    if work.exited == "stalled":
        return AgentEnd.STALLED, f"it printed nothing for {STALL_SECONDS:g} s"
    if ran.end is AgentEnd.FINISHED and not work.error:
        return AgentEnd.FINISHED, ran.detail if work.complete else "it ended without a final event"
    last = ran.result.stderr[-2000:].decode("utf-8", "replace").strip()
    said = work.error or (last.splitlines()[-1] if last else "")
    detail = said or ran.detail
    return outcomes.why_failed(ran, said, work.end), detail
