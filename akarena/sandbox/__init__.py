"""Isolation for hostile programs: one protocol, one registry, one entry-point group."""

from __future__ import annotations

from akarena.errors import InfrastructureError, unknown_name
from akarena.registry import Registry
from akarena.sandbox.base import Sandbox

__all__ = ["AUTO", "get", "is_usable", "names"]

AUTO = "auto"
_PREFERRED = ("docker", "bubblewrap")
_SANDBOXES: Registry[Sandbox] = Registry(
    group="akarena.sandboxes",
    builtin={
        "docker": "akarena.sandbox.docker:DockerSandbox",
        "bubblewrap": "akarena.sandbox.bubblewrap:Bubblewrap",
    },
)


def names() -> tuple[str, ...]:
    """Give the short names of every registered sandbox."""
    return _SANDBOXES.names()


def _usable(sandbox: Sandbox) -> bool:
    """Ask a sandbox that depends on a service whether that answers; one without the question needs none."""
    question = getattr(sandbox, "usable", None)
    return question is None or bool(question())


def is_usable(name: str) -> bool:
    """Say whether a sandbox can be loaded and, where it depends on a service, whether that answers."""
    try:
        return _usable(_SANDBOXES.create(name))
    except InfrastructureError:
        return False


def get(name: str) -> Sandbox:
    """Give a sandbox by its short name, or the best usable one for `auto`.

    Args:
        name: A registered name or `auto`: Docker where it is registered and answers, else bubblewrap.

    Raises:
        UserError: The name is not registered.
        InfrastructureError: Its module can't be imported.
    """
    known = names()
    if name == AUTO:
        for preferred in _PREFERRED:
            if preferred in known and _usable(sandbox := get(preferred)):
                return sandbox
    if name not in known:
        raise unknown_name("--sandbox: sandbox", name, (*known, AUTO))
    return _SANDBOXES.create(name)
