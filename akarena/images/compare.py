"""Builds a stage twice without cache and names every file in which the two images differ."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING

from akarena.images import daemon
from akarena.images.build import Workshop

if TYPE_CHECKING:
    from docker import DockerClient

_CHUNK = 1 << 20
_BY_DOCKER = frozenset({".dockerenv", "dev", "etc/hostname", "etc/hosts", "etc/mtab", "etc/resolv.conf", "proc", "sys"})
"""What Docker itself puts into a container that was never started, and not the image."""


def twice(workshop: Workshop, stage: str) -> list[str]:
    """Build a stage twice from nothing; returns the differences, empty where the layers are the same.

    Equal layers are equal archives: names, bytes, modes, owners, times and order.
    """
    client = workshop.client
    first = workshop.build(stage, cache=False)
    try:
        second = workshop.build(stage, cache=False)
        try:
            layers = [client.images.get(image).attrs["RootFS"]["Layers"] for image in (first, second)]
            if layers[0] == layers[1]:
                return []
            found = differences(snapshot(client, first), snapshot(client, second))
            return found or ["layers differ, but none of the files in them"]
        finally:
            _remove(client, second)
    finally:
        _remove(client, first)


def differences(first: dict[str, str], second: dict[str, str]) -> list[str]:
    """Compare two snapshots; returns one line for each path that differs."""
    lines = []
    for path in sorted(first.keys() | second.keys()):
        before, after = first.get(path), second.get(path)
        if before != after:
            lines.append(f"{path}: {before or 'absent'} / {after or 'absent'}")
    return lines


def snapshot(client: DockerClient, image: str) -> dict[str, str]:
    """Describe every file of an image: kind, mode, owner, time, and the digest of what it holds."""
    with daemon.told(f"image {image}: cannot be exported"):
        container = client.api.create_container(image, ["-"], network_disabled=True)
        try:
            stream = _Reader(client.api.export(container["Id"], chunk_size=_CHUNK))
            with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
                return dict(describe(tar))
        finally:
            client.api.remove_container(container["Id"], force=True, v=True)


def describe(tar: tarfile.TarFile) -> Iterator[tuple[str, str]]:
    """Yield path and description of every member that is the image's own."""
    for member in tar:
        path = member.name.strip("/")
        if path in _BY_DOCKER or path.startswith("dev/"):
            continue
        content = member.linkname
        if member.isreg():
            file = tar.extractfile(member)
            content = _digest(file) if file is not None else ""
        # The time of the root folder and of /etc is that of Docker's own entries.
        time = 0 if path in ("", ".", "etc") else int(member.mtime)
        kind = member.type.decode("ascii", errors="replace")
        yield path, f"{kind} {member.mode:04o} {member.uid}:{member.gid} {time} {content}"


def _digest(file: IO[bytes]) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _remove(client: DockerClient, image: str) -> None:
    with daemon.told(f"image {image}: cannot be removed"):
        client.images.remove(image, force=True)


class _Reader:
    """Reads from chunks as from a file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, fewer only at the end."""
        parts = [self._rest]
        length = len(self._rest)
        while length < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            parts.append(chunk)
            length += len(chunk)
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]
