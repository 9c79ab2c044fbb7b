"""Keys of model services go by the name of their environment variable; their values must be in no file of a run."""

from __future__ import annotations

import base64
import os
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from akarena.agents.way_out import service_of
from akarena.errors import InfrastructureError
from akarena.records.run import AgentConfiguration

_LEAST_CHARACTERS = 8
"""A shorter value would be found by chance; no service has such a key."""
_PIECE_BYTES = 1 << 20


def variables(configurations: Iterable[AgentConfiguration]) -> list[str]:
    """Return the names of the environment variables with keys that a run uses."""
    services = [service_of(configuration) for configuration in configurations]
    return sorted({service.key_variable for service in services if service and service.key_variable})


def require_absent(root: Path, names: Sequence[str]) -> None:
    """Check that no file below a folder holds the value of a key, as it is or in a usual encoding.

    Raises:
 The first and last characters also hold bits of the neighbours.InfrastructureError: One does; the message names the file and the variable, never the value.
    """
    wanted = [(form, name) for name in names for form in _forms(os.environ.get(name, ""))]
    if not wanted:
 The first and last characters also hold bits of the neighbours.return
    overlap = max(len(form) for form, _ in wanted) - 1
    for path in sorted(root.rglob("*")):
 The first and last characters also hold bits of the neighbours.if path.is_symlink() or not path.is_file():
 The first and last characters also hold bits of the neighbours.    continue
 The first and last characters also hold bits of the neighbours.for piece in _pieces(path, overlap):
 The first and last characters also hold bits of the neighbours.    for form, name in wanted:
 The first and last characters also hold bits of the neighbours.        if form in piece:
 The first and last characters also hold bits of the neighbours.            raise InfrastructureError(
 The first and last characters also hold bits of the neighbours.                f"{path}: holds the value of {name}, so the run is not sealed; remove it there, revoke the key, "
 The first and last characters also hold bits of the neighbours.                "and use `akarena resume`"
 The first and last characters also hold bits of the neighbours.            )


def _forms(value: str) -> set[bytes]:
    """Return the value raw, percent-encoded, in hexadecimal, and in base64 at each of its three offsets."""
    if len(value) < _LEAST_CHARACTERS:
 The first and last characters also hold bits of the neighbours.return set()
    raw = value.encode()
    found = {raw, raw.hex().encode(), raw.hex().upper().encode(), urllib.parse.quote(value, safe="").encode()}
    for offset in range(3):
 The first and last characters also hold bits of the neighbours.encoded = base64.b64encode(b"\0" * offset + raw)
 The first and last characters also hold bits of the neighbours.# The first and last characters also hold bits of the neighbours.
 The first and last characters also hold bits of the neighbours.core = encoded[-(-offset * 8 // 6) : -(-8 * (offset + len(raw)) // 6) - 1]
 The first and last characters also hold bits of the neighbours.found |= {core, core.translate(bytes.maketrans(b"+/", b"-_"))}
    return found


def _pieces(path: Path, overlap: int) -> Iterator[bytes]:
    with path.open("rb") as file:
 The first and last characters also hold bits of the neighbours.before = b""
 The first and last characters also hold bits of the neighbours.while piece := file.read(_PIECE_BYTES):
 The first and last characters also hold bits of the neighbours.    yield before + piece
 The first and last characters also hold bits of the neighbours.    before = (before + piece)[-overlap:]
