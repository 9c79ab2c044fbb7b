"""Everything that a run needs, looked at before anything starts: one line for each, and all that is missing at once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from akarena import agents, reach, site
from akarena.agents.vendor import CliAgent
from akarena.errors import AkarenaError
from akarena.records.run import AgentConfiguration, Package, PreflightCheck
from akarena.sandbox.preflight import preflight
from akarena.site import Site

_LEAST_FREE_BYTES = 5 << 30
"""A run folder is small; workspaces, compiler caches and an agent's own files are not."""


@dataclass(frozen=True)
class Readiness:
    """What was found.

    Attributes:
        place: Where a run would take place; None where it could not.
        isolation: What was seen from inside.
        others: Everything else.
    """

    place: Site | None
    isolation: tuple[PreflightCheck, ...]
    others: tuple[PreflightCheck, ...]

    @property
    def checks(self) -> tuple[PreflightCheck, ...]:
        """All of them."""
        return (*self.isolation, *self.others)


def look(sandbox: str, target: str, configurations: Sequence[AgentConfiguration], runs_dir: Path) -> Readiness:
    """Look at everything.

    Args:
        sandbox: A registered sandbox, or ``auto``.
        target: A registered target, or ``auto``.
        configurations: The agents to look at; may be empty.
        runs_dir: Where runs will lie.
    """
    others = [_disk("runs", runs_dir), _disk("temporary files", Path(tempfile.gettempdir()))]
    inside: list[PreflightCheck] = []
    place = None
    try:
        place = site.choose(sandbox, target, needs_service=any(one.service for one in configurations))
        facts = place.target.facts()
    except AkarenaError as error:
        others.append(_check("sandbox and target", False, str(error)))
    else:
        speed = "speed is measured" if place.target.measures_speed else "speed is not measured there"
        where = f"{facts.device}, {facts.architecture}, {facts.compiler}; {speed}"
        others += [
            _check(f"target {place.target.name.value}", True, where),
            _check(f"sandbox {place.sandbox.name}", True, "it starts"),
        ]
        inside += isolation(place)
    ready = []
    for configuration in configurations:
        problems = agents.get(configuration.agent).problems(configuration)
        others += [_check(f"agent {configuration.id}", False, problem) for problem in problems]
        if not problems and place is not None:
            own, program = _program(place, configuration)
            inside += own
            others.append(program)
            if program.ok:
                ready.append(configuration)
    if place is not None:
        others += services(place, ready)
    return Readiness(place, tuple(inside), tuple(others))


def _program(place: Site, configuration: AgentConfiguration) -> tuple[list[PreflightCheck], PreflightCheck]:
    """Start the agent's program for its version in the sandbox that it will have; check that sandbox if it differs."""
    agent, name = agents.get(configuration.agent), f"agent {configuration.id}"
    inside: list[PreflightCheck] = []
    try:
        own = place.for_program(agent.program)
        inside += [] if own is place else isolation(own)
        said = agent.version(own.sandbox, own.target) if isinstance(agent, CliAgent) else "needs no program"
    except AkarenaError as error:
        return inside, _check(name, False, str(error))
    return inside, _check(name, True, said)


def isolation(place: Site) -> list[PreflightCheck]:
    """Prove from inside that the sandbox isolates."""
    return [_check(found.check, found.ok, found.detail) for found in preflight(place.sandbox)]


def services(place: Site, configurations: Sequence[AgentConfiguration]) -> list[PreflightCheck]:
    """Prove from inside that the service of each configuration is reached, and nothing beside it."""
    different = {(one.service, one.service_url, one.service_key): one for one in configurations}
    return [check for one in different.values() for check in reach.check(place, one)]


def versions(place: Site, configurations: Sequence[AgentConfiguration]) -> tuple[Package, ...]:
    """Return what the program of each configuration says of its version, by the configuration's id.

    Raises:
        InfrastructureError: One of them does not start.
    """
    found = []
    for configuration in configurations:
        agent = agents.get(configuration.agent)
        if isinstance(agent, CliAgent):
            own = place.for_program(agent.program)
            found.append(Package(name=configuration.id, version=agent.version(own.sandbox, own.target)))
    return tuple(found)


def _disk(what: str, folder: Path) -> PreflightCheck:
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    detail = f"{free / 2**30:.1f} GiB are free, {_LEAST_FREE_BYTES >> 30} are needed"
    return _check(f"disk for {what}", free >= _LEAST_FREE_BYTES, detail)


def _check(check: str, ok: bool, detail: str) -> PreflightCheck:
    return PreflightCheck(check=check[:200], ok=ok, detail=detail[:2000])
