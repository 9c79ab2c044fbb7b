"""The services of model vendors: where they are, which key they need and how it is sent. No key is ever held here."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import urlsplit

from akarena.errors import UserError, unknown_name


class Style(StrEnum):
    """How a service is spoken to."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    TUNNEL = "tunnel"


class KeyHeader(StrEnum):
    """How the key is sent."""

    X_API_KEY = "x-api-key"
    BEARER = "authorization"


@dataclass(frozen=True)
class Service:
    """One service that agents may use.

    Attributes:
        name: Short name, for flags and records.
        style: Its API, or a tunnel for CLIs that speak a protocol of their own.
        base_url: Where it is, without ``/v1``; empty for a tunnel.
        key_variable: Environment variable of the gateway's caller that holds the key; None where no key is needed. For
            a tunnel the gateway doesn't get it: it goes into the sandbox, since nobody else could add it.
        key_header: How the key is sent.
        hosts: For a tunnel: the only hosts that it leads to.
    """

    name: str
    style: Style
    base_url: str = ""
    key_variable: str | None = None
    key_header: KeyHeader = KeyHeader.BEARER
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UserError(f"service name {self.name!r}: expected lower-case letters, digits, '.', '_' and '-'")
        if self.key_variable is not None and not _VARIABLE.fullmatch(self.key_variable):
            raise UserError(f"service {self.name}: {self.key_variable!r} is no name of an environment variable")
        if self.style is Style.TUNNEL:
            wrong = [host for host in self.hosts if not HOST.fullmatch(host)]
            if wrong or not self.hosts or self.base_url:
                raise UserError(f"service {self.name}: a tunnel needs exact lower-case host names and no base URL")
        else:
            _check_base(self.name, self.base_url)

    @property
    def inspectable(self) -> bool:
        """Whether the gateway sees what is asked and answered."""
        return self.style is not Style.TUNNEL

    @property
    def note(self) -> str:
        """What a report must say beside every trial that used it; may be empty."""
        return "" if self.inspectable else "vendor tunnel, not inspectable"

    def at(self, base_url: str, key_variable: str | None = None) -> Service:
        """Give the same service at another address, for example a local server that speaks the same API.

        Args:
            base_url: ``https://...``, or ``http://...`` since the user names it; without ``/v1``.
            key_variable: Where its key is; None for a server that needs none. The vendor's key is not sent there.
        """
        if self.style is Style.TUNNEL:
            raise UserError(f"service {self.name}: a tunnel leads to fixed hosts and takes no base URL")
        return replace(self, base_url=base_url, key_variable=key_variable)


HOST = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""A host name with a letter at the start of its last label, so that no address in any notation is one."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_BASE_PATH = re.compile(r"(?:/[A-Za-z0-9_-][A-Za-z0-9._~-]*)*")


def _check_base(name: str, base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError as error:
        raise UserError(f"service {name}: base URL {base_url!r}: {error}") from None
    plain = parts.username is None and parts.password is None and not parts.query and not parts.fragment
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not plain or "?" in base_url:
        raise UserError(f"service {name}: base URL {base_url!r}: expected http(s)://host[:port][/path], without a key")
    if not _BASE_PATH.fullmatch(parts.path) or parts.path.endswith("/v1"):
        raise UserError(f"service {name}: base URL {base_url!r}: expected a plain path without a final '/' or '/v1'")


BUILT_IN = {
    service.name: service
    for service in (
        Service("anthropic", Style.ANTHROPIC, "https://api.anthropic.com", "ANTHROPIC_API_KEY", KeyHeader.X_API_KEY),
        Service("openai", Style.OPENAI, "https://api.openai.com", "OPENAI_API_KEY"),
        Service("cursor", Style.TUNNEL, key_variable="CURSOR_API_KEY", hosts=("api2.cursor.sh",)),
    )
}
"""The services that are known by name."""


def find(name: str) -> Service:
    """Give a service by its name.

    Raises:
        UserError: There is none of this name.
    """
    if name not in BUILT_IN:
        raise unknown_name("service", name, BUILT_IN)
    return BUILT_IN[name]
