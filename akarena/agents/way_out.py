"""The one way out of an agent's sandbox: a gateway beside it, and a forwarder in front of the agent's program."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from akarena import gateway, paths
from akarena.agents.base import Assignment
from akarena.errors import UserError
from akarena.gateway import Budgets, Gateway, Service, Style
from akarena.records.run import AgentConfiguration
from akarena.records.trial import Tokens
from akarena.sandbox.base import Command, Mount, Role
from akarena.store import AUDIT_LOG
from akarena.targets import host

PORT = 8089
_SOCKET = f"{host.CODE}/gateway.sock"
_FORWARDER = f"{host.CODE}/forwarder.py"
_PLACEHOLDER = "placeholder-the-gateway-has-the-key"


def service_of(configuration: AgentConfiguration) -> Service | None:
    """Return the service that a configuration names, or None.

    Raises:
        UserError: No service has that name, or its address is malformed.
    """
    if configuration.service is None:
        if configuration.service_url is not None:
            raise UserError("--service-url: names no service, expected --service too, which says how it is spoken to")
        return None
    service = gateway.find(configuration.service)
    if configuration.service_url is None:
        return service
    return service.at(configuration.service_url, configuration.service_key)


def behind_forwarder(command: Command, python: str, socket: Path) -> Command:
    """Return a command with the forwarder in front, which leads from the loopback port `PORT` to a gateway.

    Args:
        command: What to run.
        python: Path of an interpreter in the sandbox.
        socket: The gateway's.
    """
    forwarder = paths.package() / "gateway" / "forwarder.py"
    return replace(
        command,
        argv=(python, "-I", "-S", _FORWARDER, str(PORT), _SOCKET, *command.argv),
        mounts=(*command.mounts, Mount(socket, _SOCKET), Mount(forwarder, _FORWARDER)),
    )


class WayOut:
    """The gateway of one agent, or nothing at all where it needs none. A context manager.

    Args:
        assignment: The work.
        folder: A private folder, outside the sandbox.
    """

    def __init__(self, assignment: Assignment, folder: Path) -> None:
        self._assignment = assignment
        self._audit = folder / AUDIT_LOG
        self._stack = ExitStack()
        self._service = service_of(assignment.configuration)
        self._gateway: Gateway | None = None

    def __enter__(self) -> WayOut:
        """Start the gateway."""
        if self._service is not None:
            configuration = self._assignment.configuration
            model = configuration.model
            budgets = Budgets(
                seconds=self._assignment.seconds + 60, usd=configuration.usd_budget, prices=configuration.prices
            )
            if configuration.token_budget is not None:
                budgets = replace(budgets, tokens=configuration.token_budget)
            self._gateway = self._stack.enter_context(
                Gateway(self._service, self._audit, models=(model,) if model else (), budgets=budgets)
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self._stack.__exit__(kind, value, trace)

    def through(self, command: Command) -> Command:
        """Return the command with the forwarder in front, and with the addresses that API clients look for."""
        if self._gateway is None or self._service is None:
            return command
        python = self._assignment.target.python(Role.AGENT).bare_executable
        forwarded = behind_forwarder(command, python, self._gateway.path)
        return replace(forwarded, environment={**_addresses(self._service), **command.environment})

    def used(self) -> Tokens | None:
        """Return the tokens that the gateway counted; None without one, or where it could not look inside."""
        return self._gateway.totals.tokens if self._gateway is not None and self._gateway.totals is not None else None

    def audit(self) -> dict[str, bytes]:
        """Return the audit log by its name; empty without a gateway."""
        return {AUDIT_LOG: self._audit.read_bytes()} if self._audit.exists() else {}


def _addresses(service: Service) -> dict[str, str]:
    here = f"http://127.0.0.1:{PORT}"
    found = {"AKARENA_SERVICE": service.name, "AKARENA_SERVICE_URL": here}
    match service.style:
        case Style.ANTHROPIC:
            return {**found, "ANTHROPIC_BASE_URL": here, "ANTHROPIC_API_KEY": _PLACEHOLDER}
        case Style.OPENAI:
            return {**found, "OPENAI_BASE_URL": f"{here}/v1", "OPENAI_API_KEY": _PLACEHOLDER}
        case Style.TUNNEL:
            return {**found, "HTTPS_PROXY": here, "https_proxy": here}
