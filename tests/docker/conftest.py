"""The daemon that ``DOCKER_HOST`` names, and the base image that ``daemon.py`` made there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from docker import DockerClient

from akarena import paths
from akarena.images import daemon, lock
from akarena.images.build import EARLIEST, Workshop
from akarena.records.image import ImageLockRecord
from akarena.records.task import TargetName

ROOT = paths.root()


@dataclass(frozen=True)
class Answer:
    """How one call of the command line ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Builder:
    """The command ``akarena build``, for the cpu target unless another one is named."""

    base: str

    def __call__(self, *arguments: str, base: str | None = None) -> Answer:
        """Run it to its end."""
        target = () if "--target" in arguments else ("--target", "cpu")
        argv = [sys.executable, "-m", "akarena", "build", *target, "--base", base or self.base, *arguments]
        done = subprocess.run(argv, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def client() -> Iterator[DockerClient]:
    """A client; the test fails where no daemon answers, since it was asked for by its marker."""
    found = daemon.connect()
    yield found
    found.close()


@pytest.fixture(scope="session")
def base(client: DockerClient) -> str:
    """The name of the base image."""
    tags = sorted(tag for image in client.images.list(name="akarena-base") for tag in image.tags)
    assert tags, "no image akarena-base: start the daemon with tests/docker/daemon.py"
    return tags[0]


@pytest.fixture(scope="session")
def builder(base: str) -> Builder:
    return Builder(base)


@pytest.fixture(scope="session")
def built(builder: Builder) -> ImageLockRecord:
    """The lock of the three roles, built from what is there already where nothing changed."""
    done = builder()
    assert done.code == 0, done.err
    return lock.load(TargetName.CPU)


@contextmanager
def lock_kept(target: TargetName) -> Iterator[None]:
    """Put the image lock of a target back afterwards: what a test builds for itself is no image to evaluate with."""
    path = lock.path(target)
    before = path.read_bytes() if path.exists() else None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        if before is not None:
            path.write_bytes(before)


@pytest.fixture
def workshop(client: DockerClient, base: str, tmp_path: Path, builder: Builder) -> Workshop:
    """Builds single stages, with a worker's downloads there."""
    done = builder("--role", "worker", "--download-only")
    assert done.code == 0, done.err
    return Workshop(client=client, target=TargetName.CPU, base=base, say=lambda line: None, epoch=EARLIEST)
