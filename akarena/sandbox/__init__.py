"""Isolation for hostile programs: one protocol, one registry, one entry-point group."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points
from typing import cast

from akarena.errors import InfrastructureError, unknown_name
from akarena.sandbox.base import Sandbox

__all__ = ["get", "names"]

AUTO = "auto"
_GROUP = "akarena.sandboxes"
_BUILT_IN = {"bubblewrap": "akarena.sandbox.bubblewrap:Bubblewrap"}
_PREFERRED = ("docker", "bubblewrap")


def _registry() -> dict[str, str]:
    added = {point.name: point.value for point in entry_points(group=_GROUP)}
    return {**added, **_BUILT_IN}


def names() -> tuple[str, ...]:
    """Give the short names of every registered sandbox."""
    return tuple(sorted(_registry()))


def _usable(sandbox: Sandbox) -> bool:
    """Ask a sandbox that depends on a service whether that answers; one without the question needs none."""
    question = getattr(sandbox, "usable", None)
    return question is None or bool(question())


def get(name: str) -> Sandbox:
    """Give a sandbox by its short name, or the best usable one for `auto`.

    Args:
        name: A registered name or `auto`: Docker where it is registered and answers, else bubblewrap.

    Raises:
        UserError: The name is not registered.
        InfrastructureError: Its module can't be imported.
    """
    registry = _registry()
    if name == AUTO:
        for preferred in _PREFERRED:
            if preferred in registry and _usable(sandbox := get(preferred)):
                return sandbox
    if name not in registry:
        raise unknown_name("sandbox", name, (*registry, AUTO))
    module, _, attribute = registry[name].partition(":")
    try:
        return cast(Sandbox, getattr(importlib.import_module(module), attribute)())
    except (ImportError, AttributeError) as error:
        raise InfrastructureError(f"sandbox {name!r} can't be loaded from {registry[name]}: {error}") from error
