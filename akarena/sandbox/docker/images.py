"""Which image a process runs in, by its role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from akarena.errors import InfrastructureError
from akarena.sandbox.base import Role


@dataclass(frozen=True)
class Image:
    """One image.

    Attributes:
        id: Its digest, or a name that the daemon knows.
        python: Its interpreter, which starts every process; no packages are needed.
    """

    id: str
    python: str = "/usr/bin/python3"


@dataclass(frozen=True)
class Images:
    """The image of every role that is used."""

    by_role: Mapping[Role, Image]

    @classmethod
    def one(cls, image: Image) -> Images:
        """Let every role run in the same image."""
        return cls(dict.fromkeys(Role, image))

    def of(self, role: Role) -> Image:
        """Give the image of a role.

        Raises:
            InfrastructureError: There is none.
        """
        if role not in self.by_role:
            raise InfrastructureError(f"sandbox docker: there is no image for the role {role.value}")
        return self.by_role[role]
