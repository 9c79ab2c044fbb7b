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
        InfrastructureError: One does; the message names the file and the variable, never the value.
    """
    wanted = [(form, name) for name in names for form in _forms(os.environ.get(name, ""))]
    if not wanted:
        return
    overlap = max(len(form) for form, _ in wanted) - 1
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        for piece in _pieces(path, overlap):
            for form, name in wanted:
                if form in piece:
                    raise InfrastructureError(
                        f"{path}: holds the value of {name}, so the run is not sealed; remove it there, revoke the "
                        "key, and use `akarena resume`"
                    )


def _forms(value: str) -> set[bytes]:
    """Return the value raw, percent-encoded, in hexadecimal, and in base64 at each of its three offsets."""
    if len(value) < _LEAST_CHARACTERS:
        return set()
    raw = value.encode()
    found = {raw, raw.hex().encode(), raw.hex().upper().encode(), urllib.parse.quote(value, safe="").encode()}
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + raw)
        # The outermost characters also hold bits of the neighbours.
        core = encoded[-(-offset * 8 // 6) : -(-8 * (offset + len(raw)) // 6) - 1]
        found |= {core, core.translate(bytes.maketrans(b"+/", b"-_"))}
    return found


def _pieces(path: Path, overlap: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        before = b""
        while piece := file.read(_PIECE_BYTES):
            yield before + piece
            before = (before + piece)[-overlap:]
