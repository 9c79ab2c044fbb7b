"""The command ``akarena build``: from its arguments to images, a comparison, or downloads alone."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from akarena import images, paths
from akarena.errors import ClaimError, ExitCode, InfrastructureError, UserError, unknown_name
from akarena.images import build, compare, daemon, stock
from akarena.records.image import ImageRole
from akarena.records.task import TargetName

if TYPE_CHECKING:
    from docker import DockerClient


def run(arguments: argparse.Namespace) -> int:
    """Build what was asked for."""
    target = target_of(arguments.target)
    chosen = stages_of(arguments.role, arguments.agent)
    base_name = arguments.base or images.BASES.get(target)
    if base_name is None:
        raise UserError(f"--target {target.value}: expected --base with an image that has CUDA, torch and Triton")
    given: dict[str, str] = {}
    if "cursor" in arguments.agent:
        given = stock.check_cursor(arguments.cursor_archive, arguments.cursor_version, arguments.cursor_sha256)
    client = daemon.connect()
    with _alone():
        if given:
            stock.take_cursor(arguments.cursor_archive)
        return _run(arguments, client, base_name, target, chosen, given)


def _run(
    arguments: argparse.Namespace,
    client: DockerClient,
    base_name: str,
    target: TargetName,
    chosen: dict[str, str | None],
    given: dict[str, str],
) -> int:
    root = paths.root()
    epoch = build.epoch_of(root, os.environ)
    base = build.describe_base(client, base_name)
    for_agents = build.AGENT_PROGRAMS if any(stage.startswith("agent") for stage in chosen) else ()
    missing_programs = build.lacks(client, base_name, (*build.PROGRAMS, *for_agents))
    workshop = build.Workshop(
        client=client,
        target=target,
        base=base_name,
        say=_say,
        epoch=epoch,
        arguments=given,
        network=bool(missing_programs),
        root=root,
    )
    if missing_programs:
        _say(f"base: lacks {', '.join(missing_programs)}, installed with apt from the base's own mirror")
    _download(workshop, chosen)
    if arguments.download_only:
        return ExitCode.OK
    if arguments.compare:
        return _compare(workshop, chosen)
    written = build.build_all(workshop, base, chosen, cache=not arguments.no_cache)
    if arguments.json:
        print(json.dumps(written.model_dump(mode="json"), indent=2))
    else:
        for image in written.images:
            print(f"{image.tag}  {image.id}  {image.size_bytes / 1e6:.0f} MB")
    return ExitCode.OK


@contextmanager
def _alone() -> Iterator[None]:
    """Keep other builds of this checkout away: they share the context."""
    images.folder().mkdir(parents=True, exist_ok=True)
    held = FileLock(images.folder() / "build.lock")
    try:
        held.acquire(blocking=False)
    except Timeout:
        _say("another build of this checkout is running; waiting for its end")
        held.acquire()
    try:
        yield
    finally:
        held.release()


def _download(workshop: build.Workshop, stages: dict[str, str | None]) -> None:
    interpreter, missing = build.probe(workshop.client, workshop.build("system"))
    needs = {"pip"}
    if missing and workshop.target is not TargetName.CPU and stages.keys() != {"worker"}:
        raise InfrastructureError(
            f"base image {workshop.base}: its python3 lacks {', '.join(missing)}; "
            f"a base for {workshop.target.value} brings them, in /opt/venv or for the python3 on PATH"
        )
    if missing and stages.keys() != {"worker"}:
        needs.add("torch")
    if "judge" in stages:
        needs.add("judge")
    agents = {agent for agent in stages.values() if agent in stock.NPM_AGENTS}
    if agents:
        needs.add("node")
    if "openai-compatible" in stages.values():
        needs.add("mini")
    # Sorted by need: npm may be taken from the wheel of Node.js.
    stock.fill(workshop.root, [*sorted(needs), *sorted(filter(None, agents))], interpreter, workshop.say)


def _compare(workshop: build.Workshop, stages: dict[str, str | None]) -> int:
    differing = 0
    for stage in stages:
        found = compare.twice(workshop, stage)
        differing += bool(found)
        print(f"{stage}: {'the same layers twice' if not found else f'{len(found)} differences'}")
        for line in found:
            print(f"  {line}")
    if differing:
        raise ClaimError(f"{differing} of {len(stages)} images are not the same when they are built again")
    return ExitCode.OK


def target_of(name: str) -> TargetName:
    """Return the target that is meant; `auto` is the one of this machine's device."""
    if name == "auto":
        if Path("/dev/kfd").exists():
            return TargetName.ROCM
        return TargetName.CUDA if Path("/dev/nvidiactl").exists() else TargetName.CPU
    if name not in set(TargetName):
        raise unknown_name("--target: target", name, [target.value for target in TargetName], also=["auto"])
    return TargetName(name)


def stages_of(roles: list[str], agents: list[str]) -> dict[str, str | None]:
    """Return the stages to build, with the agent whose program each one holds."""
    for name in roles:
        if name not in set(ImageRole):
            raise unknown_name("--role: role", name, [role.value for role in ImageRole])
    for name in agents:
        if name not in images.AGENTS:
            raise unknown_name("--agent: agent with an image", name, images.AGENTS)
    chosen = {ImageRole(name) for name in roles} or set(ImageRole)
    if agents and ImageRole.AGENT not in chosen:
        raise UserError("--agent: expected --role agent beside it, or no --role at all")
    # The smallest one first: what is wrong with a base shows soonest.
    stages: dict[str, str | None] = {role.value: None for role in (ImageRole.WORKER, ImageRole.JUDGE) if role in chosen}
    if ImageRole.AGENT in chosen:
        stages.update({f"agent-{name}": name for name in agents} if agents else {"agent": None})
    return stages


def _say(line: str) -> None:
    print(line, file=sys.stderr)
