"""What a target must offer: facts about the device, a way to build HIP, and what a worker needs to run there."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

from akarena.records.task import TargetName
from akarena.sandbox.base import Mount

Fp8 = Literal["float8_e4m3fn", "float8_e4m3fnuz"]
"""Name of torch's dtype that ``fp8`` means on a target."""


class EntryKind(StrEnum):
    """How a kernel is loaded."""

    NATIVE = "native"
    TRITON = "triton"
    EAGER = "eager"


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


class Target(Protocol):
    """Hardware and tool chain on this machine."""

    name: TargetName
    measures_speed: bool
    """Whether times taken here mean anything."""

    def missing(self) -> list[str]:
        """Return what this machine lacks, one line each; empty where the target can be used."""

    def facts(self) -> DeviceFacts:
        """Return the facts about the device.

        Raises:
            InfrastructureError: The target cannot be used here.
        """

    def build(self, source: str) -> BuildRecipe:
        """Return how to build the HIP file ``/source/<source>``."""

    def native_worker(self) -> Provision:
        """Return the libraries and devices of a worker that loads a shared library, and nothing more."""

    def torch_process(self) -> Provision:
        """Return the libraries and devices of a process that uses torch: the judge, Triton and eager workers."""

    def fp8_dtype(self) -> Fp8:
        """Return the name of torch's dtype that ``fp8`` means here."""

    def is_verified(self, kind: EntryKind, dtypes: frozenset[str]) -> bool:
        """Say whether a result with these dtypes can be trusted here."""
