"""``openai-compatible``: mini-swe-agent, through the gateway to any server with OpenAI's chat completions."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from akarena import paths
from akarena.agents import installed
from akarena.agents.installed import Installed
from akarena.agents.stream import Event, Work, text_of
from akarena.agents.vendor import CliAgent
from akarena.errors import InfrastructureError
from akarena.records.run import AgentConfiguration
from akarena.records.trial import AgentEnd, StepKind
from akarena.sandbox.base import Command, End, Limits, Mount, Role, Sandbox
from akarena.targets import Target, host
from akarena.targets.image import ImageTarget

_DRIVER = f"{host.CODE}/mini_driver.py"
_IN_IMAGE = "/opt/agents/openai-compatible/bin/python"
"""The interpreter of mini-swe-agent's environment in an image."""
_LOCAL = "http://127.0.0.1:8000"
_VERSION_LIMITS = Limits(60.0, 4 << 30, 256, 1 << 20, 256 << 20, 256 << 20)
_ARGUMENT = re.compile(r"(agent|environment|model)(\.\w+)+=.*", re.DOTALL)
_ENDS = {"LimitsExceeded": AgentEnd.OUT_OF_BUDGET, "TimeExceeded": AgentEnd.OUT_OF_BUDGET}


class OpenAICompatibleAgent(CliAgent):
    """Any model behind a server of one's own, driven by mini-swe-agent: one tool, a shell."""

    name = "openai-compatible"
    summary = "any model behind an OpenAI-compatible server, by mini-swe-agent (--model, --service-url, --effort)"
    program = "openai-compatible"
    service = "openai"
    executable = "mini-swe-agent"
    install = "pip install mini-swe-agent"
    final_events = ("result",)

    def problems(self, configuration: AgentConfiguration) -> list[str]:
        """Say what is missing: model, address, program, key; no key is needed unless the user names one."""
        problems = []
        if configuration.model is None:
            problems.append(f"agent {self.name}: expected --model, the name that the server knows the model by")
        if configuration.service_url is None:
            problems.append(f"agent {self.name}: expected --service-url, the server's address, such as {_LOCAL}")
            # Nobody is asked for the vendor's key.
            configuration = configuration.model_copy(update={"service_url": _LOCAL})
        problems += [
            f"--arguments {argument!r}: expected a setting of mini-swe-agent, such as model.model_kwargs.temperature=0"
            for argument in configuration.arguments
            if not _ARGUMENT.fullmatch(argument)
        ]
        problems += super().problems(configuration)
        if installed.find(self.executable) is not None and installed.find_python(self.executable) is None:
            problems.append(f"agent {self.name}: the program {self.executable} on the PATH is no script of Python's")
        return problems

    def argv(self, configuration: AgentConfiguration) -> tuple[str, ...]:
        """Return the arguments of the interpreter; the prompt comes on standard input."""
        return ("-I", _DRIVER, configuration.model or "", configuration.effort or "", *configuration.arguments)

    def environment(self, configuration: AgentConfiguration) -> dict[str, str]:
        """Return nothing: the driver sets what is needed."""
        return {}

    def parser(self) -> MiniParser:
        """Return a parser of one stream."""
        return MiniParser()

    def version(self, sandbox: Sandbox, target: Target) -> str:
        """Ask the driver, which asks the installed package.

        Raises:
            InfrastructureError: It is not there, or does not start.
        """
        found = self._find(target)
        provision = target.torch_process()
        folders = (str(Path(target.python(Role.AGENT).executable).parent), provision.environment["PATH"])
        result = sandbox.run(
            Command(
                argv=(found.path, "-I", _DRIVER, "--version"),
                environment={**provision.environment, "PATH": ":".join(folders)},
                mounts=(*provision.mounts, *found.mounts),
                limits=_VERSION_LIMITS,
                role=Role.AGENT,
            )
        )
        said = result.stdout.decode("utf-8", "replace").strip().splitlines()
        if result.end is not End.EXITED or result.exit_code != 0 or not said:
            why = (result.stderr.decode("utf-8", "replace").strip().splitlines() or [""])[-1]
            raise InfrastructureError(
                f"agent {self.name}: mini-swe-agent does not start "
                f"({result.end} {result.exit_code} {result.detail} {why[:300]})"
            )
        return said[0][:200]

    def _find(self, target: Target) -> Installed:
        found = Installed(_IN_IMAGE) if isinstance(target, ImageTarget) else installed.find_python(self.executable)
        if found is None:
            raise InfrastructureError(self._not_found())
        driver = Mount(paths.package() / "agents" / "mini_driver.py", _DRIVER)
        return replace(found, mounts=(*found.mounts, driver))


class MiniParser:
    """Reads what ``mini_driver.py`` prints."""

    def __init__(self) -> None:
        self.work = Work()

    def read(self, event: Event) -> None:
        """Take the next event."""
        work = self.work
        match event.get("type"):
            case "message":
                work.say(event.get("text"))
            case "reasoning":
                work.say(event.get("text"), StepKind.REASONING)
            case "call":
                work.call(event.get("id"), event.get("tool"), event.get("command"))
            case "output":
                code, text = event.get("code"), text_of(event.get("text"))
                work.result(event.get("id"), text if code in (0, None) else f"exit code {text_of(code)}\n{text}")
            case "format_error":
                calls = text_of(event.get("calls"))
                work.say(f"mini-swe-agent took no command from this answer: {calls}\n{text_of(event.get('text'))}")
            case "result":
                self._result(event)
            case _:
                work.other(event)

    def _result(self, event: Event) -> None:
        work, status = self.work, text_of(event.get("status"))
        work.say(event.get("text"))
        # Last: a step takes it back.
        work.complete = True
        work.end = _ENDS.get(status)
        said = text_of(event.get("error"))
        work.error = "" if status == "Submitted" else f"{status}: {said}" if said else status or "error"
