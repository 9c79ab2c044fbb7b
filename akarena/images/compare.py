"""Builds a stage twice without cache and names every entry in which the two images differ."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING

from akarena.images import daemon
from akarena.images.build import Workshop

if TYPE_CHECKING:
    from docker import DockerClient

Layer = dict[str, str]
"""What a layer holds: a description of each entry by its path."""

_CHUNK = 1 << 20


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
            return found or ["layers differ, but no entry in them; so their order does"]
        finally:
            _remove(client, second)
    finally:
        _remove(client, first)


def differences(first: list[Layer], second: list[Layer]) -> list[str]:
    """Compare the layers of two images; returns one line for each entry that differs."""
    if len(first) != len(second):
        return [f"{len(first)} layers / {len(second)} layers"]
    lines = []
    for number, (before, after) in enumerate(zip(first, second, strict=True)):
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                shown = [layer.get(path, "absent") for layer in (before, after)]
                lines.append(f"layer {number}: {path}: {' / '.join(shown)}")
    return lines


def snapshot(client: DockerClient, image: str) -> list[Layer]:
    """Describe every entry of every layer, lowest first: kind, mode, owner, time, and a digest of what it holds."""
    found: dict[str, Layer] = {}
    names: list[str] = []
    with daemon.told(f"image {image}: cannot be saved"):
        stream = _Reader(client.api.get_image(image, chunk_size=_CHUNK))
        with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
            for member in tar:
                content = tar.extractfile(member)
                if content is None:
                    continue
                if member.name == "manifest.json":
                    names = json.load(content)[0]["Layers"]
                elif member.name.endswith("/layer.tar") or member.name.startswith("blobs/"):
                    found[member.name] = _layer(content)
    return [found[name] for name in names]


def describe(tar: tarfile.TarFile) -> Iterator[tuple[str, str]]:
    """Yield path and description of every entry."""
    for member in tar:
        content = member.linkname
        if member.isreg():
            file = tar.extractfile(member)
            content = _digest(file) if file is not None else ""
        kind = member.type.decode("ascii", errors="replace")
        yield member.name.strip("/"), f"{kind} {member.mode:04o} {member.uid}:{member.gid} {member.mtime} {content}"


def _layer(content: IO[bytes]) -> Layer:
    """Describe a layer; what is none, such as a configuration beside the layers, has no entries."""
    try:
        with tarfile.open(fileobj=content, mode="r|") as tar:
            return dict(describe(tar))
    except tarfile.ReadError:
        return {}


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
