"""Targets by name. ``auto`` takes the first usable of cuda, rocm, cpu."""

from __future__ import annotations

from akarena.errors import InfrastructureError, unknown_name
from akarena.registry import Registry
from akarena.targets.base import BuildRecipe, DeviceFacts, EntryKind, Hardware, Provision, Target

_TARGETS: Registry[Target] = Registry(
    group="akarena.targets",
    builtin={
        "cuda": "akarena.targets.cuda:CudaTarget",
        "rocm": "akarena.targets.rocm:RocmTarget",
        "cpu": "akarena.targets.cpu:CpuTarget",
    },
)


def names() -> tuple[str, ...]:
    """Return the registered names, in the order in which ``auto`` tries them."""
    return _TARGETS.names()


def create(name: str) -> Target:
    """Return a target by name without asking whether it can be used."""
    if name not in _TARGETS.names():
        raise unknown_name("--target: target", name, ("auto", *names()))
    return _TARGETS.create(name)


def present(name: str) -> Hardware:
    """Return a target whose device is there, wherever its tool chain lies.

    Args:
        name: A registered name, or ``auto``.

    Raises:
        UserError: No target has that name.
        InfrastructureError: The machine has no such device; the message says what is missing.
    """
    if name == "auto":
        return next(found for found in map(create, names()) if not found.missing_device())
    target = create(name)
    missing = target.missing_device()
    if missing:
        raise InfrastructureError(f"target {target.name} cannot be used here: {'; '.join(missing)}")
    return target


def get(name: str) -> Target:
    """Return a usable target.

    Args:
        name: A registered name, or ``auto``.

    Raises:
        UserError: No target has that name.
        InfrastructureError: The machine lacks what the target needs; the message says what.
    """
    if name == "auto":
        for candidate in names():
            target = create(candidate)
            if not target.missing():
                return target
    target = create("cpu" if name == "auto" else name)
    missing = target.missing()
    if missing:
        raise InfrastructureError(f"target {target.name} cannot be used here: {'; '.join(missing)}")
    return target


__all__ = [
    "BuildRecipe",
    "DeviceFacts",
    "EntryKind",
    "Hardware",
    "Provision",
    "Target",
    "create",
    "get",
    "names",
    "present",
]
