"""What a target must offer: facts about the device, a way to build HIP, and what a worker needs to run there.

A `Target` is hardware with a tool chain. The tool chain is that of this machine, or comes in container images: then
`akarena.targets.image.ImageTarget` puts the images around the target's `Hardware`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

from akarena.records.task import TargetName
from akarena.sandbox.base import Mount, Role

Fp8 = Literal["float8_e4m3fn", "float8_e4m3fnuz"]
"""Name of torch's dtype that ``fp8`` means on a target."""


class EntryKind(StrEnum):
    """How a kernel is loaded."""

    NATIVE = "native"
    TRITON = "triton"
    EAGER = "eager"


@dataclass(frozen=True)
class Device:
    """What is known of the hardware, whatever the tool chain."""

    architecture: str
    name: str
    driver: str


@dataclass(frozen=True)
class DeviceFacts:
    """What is written into ``lock.json`` about the device and its tool chain."""

    architecture: str
    device: str
    driver: str
    compiler: str


@dataclass(frozen=True)
class Provision:
    """What a process needs on this target besides its own files."""

    mounts: tuple[Mount, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BuildRecipe:
    """How ``/source/<file>`` becomes ``/out/kernel.so``."""

    argv: tuple[str, ...]
    provision: Provision


class Python(Protocol):
    """The interpreters that processes of a sandbox are started with."""

    @property
    def executable(self) -> str:
        """The one with all packages."""

    @property
    def bare_executable(self) -> str:
        """The interpreter itself, outside any virtual environment."""

    def argv(self, code: str) -> tuple[str, ...]:
        """Return the command that runs ``code`` with all packages and our own code importable."""

    def bare_argv(self, code: str) -> tuple[str, ...]:
        """Return the command that runs ``code`` with the standard library and our own code importable."""

    def bare_mounts(self, empty: Path) -> tuple[Mount, ...]:
        """Return what `bare_argv` needs besides.

        Args:
            empty: An empty folder; it may hide packages.
        """


class Hardware(Protocol):
    """What a target is, apart from where its tool chain lies."""

    name: TargetName
    measures_speed: bool
    """Whether times taken here mean anything."""

    def missing_device(self) -> list[str]:
        """Return what this machine lacks to have the device, one line each."""

    def device(self) -> Device:
        """Describe the device.

        Raises:
            InfrastructureError: It cannot be asked.
        """

    def device_nodes(self) -> tuple[Mount, ...]:
        """Return the nodes through which a process reaches the device."""

    def settings(self) -> dict[str, str]:
        """Return environment variables of every process that uses the device."""

    def compile(self, compiler: str, python: str, source: str) -> BuildRecipe:
        """Return how ``/source/<source>`` is built, with the headers of ours as its only mounts.

        Args:
            compiler: Path of the compiler.
            python: Path of an interpreter.
            source: Name of the file.
        """

    def fp8_dtype(self) -> Fp8:
        """Return the name of torch's dtype that ``fp8`` means here."""

    def is_verified(self, kind: EntryKind, dtypes: frozenset[str]) -> bool:
        """Say whether a result with these dtypes can be trusted here."""


class Target(Hardware, Protocol):
    """Hardware and tool chain."""

    def missing(self) -> list[str]:
        """Return what this machine lacks, one line each; empty where the target can be used."""

    def facts(self) -> DeviceFacts:
        """Return the facts about the device and its compiler.

        Raises:
            InfrastructureError: The target cannot be used here.
        """

    def python(self, role: Role) -> Python:
        """Return the interpreters of processes of a role."""

    def build(self, source: str) -> BuildRecipe:
        """Return how to build the HIP file ``/source/<source>``."""

    def native_worker(self) -> Provision:
        """Return the libraries and devices of a worker that loads a shared library, and nothing more."""

    def torch_process(self) -> Provision:
        """Return the libraries and devices of a process that uses torch: judge, Triton and eager workers, an agent."""
