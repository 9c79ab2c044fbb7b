"""What a run resolved to: the facts of ``lock.json``."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from collections.abc import Sequence

from akarena import agents, paths, prompt
from akarena.judgement import judge_digest
from akarena.records import LockRecord, ManifestRecord
from akarena.records.run import (
    AssuranceLine,
    Calibration,
    ContainerEngine,
    LockedTask,
    Package,
    PreflightCheck,
    SourceCommit,
)
from akarena.sandbox.base import Role
from akarena.site import Site
from akarena.tasks import Task


def source_commit() -> SourceCommit:
    """Return the commit of the checkout, and whether files differ from it."""
    commit = _git("rev-parse", "HEAD")
    if len(commit) != 40:
        return SourceCommit(commit="unknown", dirty=True)
    return SourceCommit(commit=commit, dirty=bool(_git("status", "--porcelain")))


def lock(
    manifest: ManifestRecord,
    tasks: list[Task],
    site: Site,
    programs: Sequence[Package],
    checks: Sequence[PreflightCheck],
    calibration: Calibration | None,
) -> LockRecord:
    """Describe everything that the results depend on. No host name, user or path is among it.

    Args:
        manifest: What the run was asked.
        tasks: Its tasks.
        site: Where it takes place.
        programs: Agents' own programs, by configuration, with their versions.
        checks: What the preflight saw.
        calibration: Of the instrument.
    """
    facts, target = site.target.facts(), site.target
    return LockRecord(
        schema_version=1,
        run_id=manifest.run_id,
        tasks=tuple(LockedTask(id=task.id, digest=task.digest) for task in tasks),
        judge_digest=judge_digest(),
        prompt_digest=prompt.digest(),
        target=target.name,
        architecture=facts.architecture,
        device=facts.device,
        driver=facts.driver,
        compiler=facts.compiler,
        operating_system=_operating_system(),
        python=platform.python_version(),
        packages=_packages(),
        programs=tuple(programs),
        isolation=tuple(
            AssuranceLine(limit=line.limit, strength=line.strength.value, how=line.how)
            for line in site.sandbox.assurance()
        ),
        preflight=tuple(checks),
        container_engine=_container_engine(site, manifest),
        calibration=calibration,
    )


def _container_engine(site: Site, manifest: ManifestRecord) -> ContainerEngine | None:
    if site.images is None:
        return None
    # Imported here: it needs the Docker SDK.
    from akarena.sandbox.docker import DockerSandbox

    assert isinstance(site.sandbox, DockerSandbox)
    found = site.sandbox.facts()
    images = {role.value: digest for role, digest in found.images.items()}
    chosen = (agents.get(configuration.agent).program for configuration in manifest.agents)
    for program in sorted({name for name in chosen if name is not None}):
        own = site.for_program(program).sandbox
        assert isinstance(own, DockerSandbox)
        images[f"agent-{program}"] = own.facts().images[Role.AGENT]
    return ContainerEngine(
        version=found.version, runtime=found.runtime, storage=found.storage, cgroups=found.cgroups, images=images
    )


def _git(*arguments: str) -> str:
    try:
        shown = subprocess.run(
            ["git", "-C", str(paths.root()), *arguments], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return shown.stdout.strip() if shown.returncode == 0 else ""


def _operating_system() -> str:
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        name = "Linux"
    return f"{name}, kernel {platform.release().split('-')[0]}, {platform.machine()}"


def _packages() -> tuple[Package, ...]:
    found = {
        (distribution.metadata["Name"] or "").lower(): distribution.version
        for distribution in importlib.metadata.distributions()
    }
    return tuple(Package(name=name, version=version) for name, version in sorted(found.items()) if name)
