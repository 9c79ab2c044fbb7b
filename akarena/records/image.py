"""``.akarena/images/<target>.json``: which container images of a target were built, from what, and what they hold."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from akarena.records.base import Digest, NonNegativeInt, Part, Record, Slug
from akarena.records.run import Package
from akarena.records.task import TargetName

ImageDigest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/[^\x00-\x1f]*$", max_length=4096)]
Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f]*$", max_length=400)]


class ImageRole(StrEnum):
    """What an image is for."""

    JUDGE = "judge"
    """The judge, builds, and workers that need torch."""
    WORKER = "worker"
    """A worker that loads one native kernel."""
    AGENT = "agent"
    """An agent, with or without the program of one."""


class ImagePython(Part):
    """The interpreters of an image."""

    executable: AbsolutePath | None
    """The interpreter that has packages; null where the image has none."""
    bare_executable: AbsolutePath
    """The interpreter itself, outside any virtual environment."""
    standard_library: AbsolutePath
    """Its standard library."""
    version: Line
    package_folders: tuple[AbsolutePath, ...] = Field(max_length=16)
    """Folders with packages to import before those that `executable` finds by itself."""


class ImageCompiler(Part):
    """The compiler of native kernels."""

    path: AbsolutePath
    version: Line


class ImageRuntime(Part):
    """The GPU runtime library."""

    library: AbsolutePath
    prefix: Literal["hip", "cuda"]
    """How its functions' names begin."""


class ImageFacts(Part):
    """What an image says about itself in ``/akarena/image.json``, written when it was built."""

    role: ImageRole
    target: TargetName
    python: ImagePython
    compiler: ImageCompiler | None
    profiler: AbsolutePath | None
    runtime: ImageRuntime | None
    """Null on the cpu target."""
    python_packages: tuple[Package, ...] = Field(max_length=4096)
    os_packages: tuple[Package, ...] = Field(max_length=16384)
    """Debian packages; in a worker, those that its files come from."""
    programs: tuple[Package, ...] = Field(max_length=16)
    """Command lines of agents, with what they say of their version."""


class Image(Part):
    """One built image."""

    tag: Line
    id: ImageDigest
    """Digest of its configuration: what a container is created from."""
    layers: tuple[ImageDigest, ...] = Field(min_length=1, max_length=256)
    """Digests of its uncompressed layers; equal layers are equal files, with names, modes, owners and times."""
    size_bytes: NonNegativeInt
    agent: Slug | None
    """The agent whose program it holds."""
    facts: ImageFacts


class ImageBase(Part):
    """The image that everything was built on."""

    reference: Line
    """As it was asked for."""
    id: ImageDigest
    repository_digests: tuple[Line, ...] = Field(max_length=16)
    """Under which registries know it; empty for one that came from none."""


class ImageLockRecord(Record):
    """The images of one target. Each build replaces the images that it built; inputs are those of the last build."""

    schema_name: ClassVar[str] = "images"

    schema_version: Literal[1]
    target: TargetName
    base: ImageBase
    dockerfile_sha256: Digest
    scripts_sha256: Digest
    """Over the scripts that run inside while an image is built."""
    requirements: dict[Annotated[str, StringConstraints(pattern=r"^[a-z0-9./-]{1,100}$")], Digest] = Field(
        max_length=64
    )
    """Digests of the lock files, by path below ``requirements/images``."""
    builder: Line
    """The daemon that built: version and kind of builder."""
    source_date_epoch: NonNegativeInt
    """Seconds; the time of every file that the build wrote."""
    images: tuple[Image, ...] = Field(min_length=1, max_length=16)
