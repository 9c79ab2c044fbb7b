"""The build context: a tar that depends on nothing but the content of the files in it."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from akarena import files
from akarena.errors import InfrastructureError


def write(stream: IO[bytes], root: Path, sources: Iterable[str], dockerfile: tuple[str, str], epoch: int) -> None:
    """Write the context: files and folders below ``root``, sorted, owned by root, with one date.

    Args:
        stream: Where the tar goes.
        root: The checkout.
        sources: Relative paths that the Dockerfile copies; a folder is taken with everything in it.
        dockerfile: Name and text of the Dockerfile.
        epoch: Time of every entry, in seconds.

    Raises:
        InfrastructureError: A source is missing or holds something that is no regular file.
    """
    name, text = dockerfile
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        data = text.encode()
        tar.addfile(_entry(name, epoch, size=len(data)), io.BytesIO(data))
        for source in sorted(sources):
            path = root / source
            if path.is_file():
                _add_file(tar, path, source, epoch)
            elif path.is_dir():
                _add_folder(tar, path, source.rstrip("/"), epoch)
            else:
                raise InfrastructureError(f"{path}: is missing, but the image is built from it")


def _add_folder(tar: tarfile.TarFile, folder: Path, name: str, epoch: int) -> None:
    found, strange = files.walk(folder, skip=("__pycache__",))
    if strange:
        raise InfrastructureError(f"{folder / strange[0]}: is no regular file, so no image is built from it")
    # The folder itself too: an empty one is copied as well.
    tar.addfile(_entry(name, epoch, folder=True))
    for relative in found:
        _add_file(tar, folder / relative, f"{name}/{relative}", epoch)


def _add_file(tar: tarfile.TarFile, path: Path, name: str, epoch: int) -> None:
    with path.open("rb") as content:
        tar.addfile(_entry(name, epoch, size=path.stat().st_size), content)


def _entry(name: str, epoch: int, *, size: int = 0, folder: bool = False) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = tarfile.DIRTYPE if folder else tarfile.REGTYPE
    entry.mode = 0o755 if folder else 0o644
    entry.mtime = epoch
    entry.size = size
    return entry
