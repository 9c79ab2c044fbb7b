"""A registry from short names to classes, open to other packages through an entry-point group."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from typing import Generic, TypeVar, cast

from akarena.errors import InfrastructureError

T = TypeVar("T")


class Registry(Generic[T]):
    """Names and where their classes are; a class is imported only when it is asked for.

    Args:
        group: Entry-point group in which another package may add names.
        builtin: Our own names, each with ``module:Class``.
    """

    def __init__(self, group: str, builtin: Mapping[str, str]) -> None:
        self._group = group
        self._builtin = dict(builtin)

    def _found(self) -> dict[str, str]:
        found = dict(self._builtin)
        for point in importlib.metadata.entry_points(group=self._group):
            if point.name in self._builtin:
                raise InfrastructureError(f"entry point {point.name!r} of group {self._group} hides a built-in name")
            found[point.name] = point.value
        return found

    def names(self) -> tuple[str, ...]:
        """Return every name, our own first."""
        return tuple(self._found())

    def create(self, name: str) -> T:
        """Import the class of a name and make one.

        Raises:
            InfrastructureError: It cannot be imported.
        """
        module, _, attribute = self._found()[name].partition(":")
        try:
            factory = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise InfrastructureError(f"{self._group}: {name!r} cannot be loaded ({error})") from None
        return cast(T, factory())
