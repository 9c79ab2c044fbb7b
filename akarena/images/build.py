"""Builds the images of a target: base, downloads, stages, facts, image lock."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from akarena import __version__, images, paths, schemas
from akarena.errors import InfrastructureError, UserError
from akarena.images import context, daemon, dockerfile, lock
from akarena.images.requirements import Interpreter
from akarena.records.image import Image, ImageBase, ImageFacts, ImageLockRecord
from akarena.records.task import TargetName

if TYPE_CHECKING:
    from docker import DockerClient

Say = Callable[[str], None]
"""Shows one line of progress."""

PROGRAMS = ("python3", "g++")
"""What the Dockerfile installs with apt where the base lacks it; only then has a build network."""
AGENT_PROGRAMS = ("git", "rg")
"""The same for an agent's images."""
EARLIEST = 315532800
"""1980-01-01, the date of files where neither SOURCE_DATE_EPOCH nor git names one."""
_PROBE = """
import importlib.util, json, os, platform
missing = [name for name in ("torch", "triton", "numpy") if importlib.util.find_spec(name) is None]
libc = os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
print(json.dumps([platform.python_version(), platform.machine(), libc, missing]))
"""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_INPUTS = (images.DOCKERFILE, "requirements/images", "akarena/images/inside")


@dataclass(frozen=True)
class Workshop:
    """What every build of one call shares."""

    client: DockerClient
    target: TargetName
    base: str
    say: Say
    epoch: int
    arguments: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    """Whether steps may reach the network: only where the base lacks a program."""
    root: Path = field(default_factory=paths.root)

    def build(self, stage: str, *, cache: bool = True, name: str | None = None) -> str:
        """Build a stage of the Dockerfile; returns the digest of the image.

        Raises:
            InfrastructureError: A step failed; its last lines are in the message, all of them in a log.
        """
        text = dockerfile.prune((self.root / images.DOCKERFILE).read_text("utf-8"), stage)
        log = images.folder() / "logs" / f"{self.target.value}-{stage}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=log.parent) as tar, log.open("w", encoding="utf-8") as lines:
            context.write(tar, self.root, dockerfile.sources(text), (images.DOCKERFILE, text), self.epoch)
            tar.seek(0)
            with daemon.told(f"build of {stage}"):
                events = self.client.api.build(
                    fileobj=tar,
                    custom_context=True,
                    dockerfile=images.DOCKERFILE,
                    target=stage,
                    tag=name,
                    nocache=not cache,
                    rm=True,
                    forcerm=True,
                    decode=True,
                    network_mode="default" if self.network else "none",
                    # A proxy, perhaps with a password, is only for a build that needs the network.
                    use_config_proxy=self.network,
                    buildargs=self._arguments(),
                )
                built = ""
                for event in events:
                    built = (event.get("aux") or {}).get("ID", built)
                    self._follow(stage, event, lines, log)
        if not built:
            raise InfrastructureError(f"build of {stage}: the Docker daemon named no image; see {log}")
        return built

    def _arguments(self) -> dict[str, str]:
        return {
            "BASE": self.base,
            "TARGET": self.target.value,
            "VERSION": __version__,
            "REVISION": _git(self.root, "rev-parse", "HEAD") or "unknown",
            "SOURCE_DATE_EPOCH": str(self.epoch),
            **self.arguments,
        }

    def _follow(self, stage: str, event: Mapping[str, str], lines: IO[str], log: Path) -> None:
        text = event.get("stream", "")
        print(text, end="", file=lines)
        if text.startswith("Step "):
            step, _, instruction = text.strip().partition(" : ")
            if instruction.startswith(("RUN", "COPY")):
                self.say(f"{stage}: {step.removeprefix('Step ')} {instruction[:100]}")
        if "error" in event:
            print(event["error"], file=lines, flush=True)
            raise InfrastructureError(f"build of {stage}: {cause(log, event['error'])} (see {log})")


def epoch_of(root: Path, environment: Mapping[str, str]) -> int:
    """Return the date of every file that is written: SOURCE_DATE_EPOCH, else the last commit that changed an input."""
    given = environment.get("SOURCE_DATE_EPOCH", "")
    if given:
        if not given.isdecimal() or int(given) >= 2**33:
            raise UserError(f"SOURCE_DATE_EPOCH={given}: expected seconds since 1970")
        return int(given)
    found = _git(root, "log", "-1", "--format=%ct", "--", *_INPUTS)
    return int(found) if found.isdecimal() else EARLIEST


def lacks(client: DockerClient, base: str, programs: Sequence[str]) -> list[str]:
    """Return the programs that the base lacks."""
    loop = f"for name in {' '.join(programs)}; do command -v $name >/dev/null || echo $name; done"
    return daemon.output(client, base, ["/bin/sh", "-c", loop]).split()


def probe(client: DockerClient, image: str) -> tuple[Interpreter, list[str]]:
    """Return the interpreter of an image, and which of torch, Triton and NumPy it lacks."""
    shown = daemon.output(client, image, ["python3", "-I", "-B", "-c", _PROBE])
    version, machine, libc, missing = json.loads(shown)
    return Interpreter(version, machine, libc), missing


def describe_base(client: DockerClient, reference: str) -> ImageBase:
    """Find or pull the base and say what it is."""
    found = daemon.find_base(client, reference)
    return ImageBase(
        reference=reference,
        id=str(found.id),
        repository_digests=tuple(sorted(found.attrs.get("RepoDigests") or ())),
    )


def describe(client: DockerClient, built: str, name: str, agent: str | None) -> Image:
    """Return what the lock says of an image just built.

    Raises:
        InfrastructureError: It does not describe itself.
    """
    facts = schemas.parse(ImageFacts, daemon.read_file(client, built, images.FACTS), f"{name}:{images.FACTS}")
    with daemon.told(f"image {name}"):
        found = client.images.get(built)
    return Image(
        tag=name,
        id=str(found.id),
        layers=tuple(found.attrs["RootFS"]["Layers"]),
        size_bytes=int(found.attrs["Size"]),
        agent=agent,
        facts=facts,
    )


def build_all(workshop: Workshop, base: ImageBase, stages: Mapping[str, str | None], cache: bool) -> ImageLockRecord:
    """Build stages and write the image lock.

    Args:
        workshop: Daemon, target and arguments.
        base: What is built on.
        stages: Names of stages, with the agent whose program each one holds.
        cache: Whether steps of an earlier build are used again.
    """
    builder = f"docker {daemon.version(workshop.client)['Version']}, classic builder"
    fresh = lock.inputs(workshop.root, workshop.target, base, builder, workshop.epoch)
    built = []
    for stage, agent in stages.items():
        name = images.tag(workshop.target, stage)
        digest = workshop.build(stage, cache=cache, name=name)
        built.append(describe(workshop.client, digest, name, agent))
        workshop.say(f"{stage}: built {name} ({built[-1].size_bytes / 1e6:.0f} MB)")
    written = lock.merge(fresh, built)
    workshop.say(f"written: {lock.write(written)}")
    return written


def cause(log: Path, error: str) -> str:
    """Return the line that says most about a failed step: ours, else the last one that it printed."""
    if daemon.is_disk_full(error):
        return daemon.reason(error)
    text = _COLOUR.sub("", log.read_text("utf-8", errors="replace"))
    step = text.rpartition("\n ---> Running in ")[2].partition("Removing intermediate container")[0]
    printed = [line.strip() for line in step.splitlines()[1:] if line.strip()]
    ours = [line.removeprefix("akarena: ") for line in printed if line.startswith("akarena: ")]
    return daemon.reason([*printed, *ours][-1] if printed else error)


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
