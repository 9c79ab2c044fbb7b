"""Files of a folder that is not trusted: read, hashed and written without following links or leaving the folder."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection
from pathlib import Path
from typing import IO

from akarena.errors import InfrastructureError, UserError

MAX_RECORD_BYTES = 64 * 2**20
"""Largest file that is read as a whole."""

_CHUNK = 2**20


def digest_tree(folder: Path, skip: Collection[str] = ()) -> str:
    """Return the SHA-256 over the names and bytes of all files below a folder; modes, times, empty folders don't count.

    Args:
        folder: The folder.
        skip: Names of folders that are left out at any depth, for example ``__pycache__``.

    Raises:
        UserError: The folder is missing or holds a link or a special file.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: is no folder")
    files, strange = walk(folder, skip)
    if strange:
        raise UserError(f"{folder / strange[0]}: is not a regular file with a plain name")
    total = hashlib.sha256()
    for name in files:
        total.update(f"{sha256(folder / name, folder)}  {name}\n".encode())
    return total.hexdigest()


def sha256(path: Path, within: Path | None = None) -> str:
    """Return the SHA-256 of a regular file in hexadecimal; no link below the folder ``within`` is followed."""
    digest = hashlib.sha256()
    with _open(within or path.parent, path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def read_bytes(within: Path, path: Path) -> bytes:
    """Read a file below the folder ``within``, following no link below it.

    Raises:
        UserError: It is missing, outside, a link, no regular file, or larger than 64 MiB.
    """
    with _open(within, path) as file:
        data = file.read(MAX_RECORD_BYTES + 1)
    if len(data) > MAX_RECORD_BYTES:
        raise UserError(f"{path}: is larger than {MAX_RECORD_BYTES // 2**20} MiB")
    return data


def write_bytes(path: Path, data: bytes, *, replace: bool = False) -> None:
    """Write a file so that a crash leaves either the whole file or none.

    Temporary file, fsync, rename, fsync of the folder.

    Raises:
        InfrastructureError: The file exists and ``replace`` is false.
    """
    if not replace and os.path.lexists(path):
        raise InfrastructureError(f"{path}: exists already and is not overwritten")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def walk(root: Path, skip: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """List what lies below a folder.

    Returns:
        Relative names of the regular files, and of what is neither such a file nor a readable folder: links, special
        files, names that do not fit on one line. Both sorted.
    """
    files: list[str] = []
    strange: list[str] = []
    pending = [""]
    while pending:
        prefix = pending.pop()
        try:
            with os.scandir(root / prefix) as scan:
                entries = list(scan)
        except OSError:
            strange.append(prefix.removesuffix("/") or ".")
            continue
        for entry in entries:
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in skip:
                    pending.append(f"{name}/")
            elif entry.is_file(follow_symlinks=False) and name.isprintable() and "\\" not in name:
                files.append(name)
            else:
                strange.append(name)
    return sorted(files), sorted(strange)


def folders(path: Path) -> list[Path]:
    """Return the real folders in a folder, sorted by name; a missing one has none."""
    try:
        with os.scandir(path) as entries:
            return [path / name for name in sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))]
    except OSError:
        return []


def _open(within: Path, path: Path) -> IO[bytes]:
    """Open a regular file below a folder, one component after the other, so that no link is followed on the way."""
    try:
        parts = path.relative_to(within).parts
    except ValueError:
        raise UserError(f"{path}: is not inside {within}") from None
    if not parts or ".." in parts:
        raise UserError(f"{path}: is not a file inside {within}")
    try:
        descriptor = os.open(within, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for index, part in enumerate(parts):
            # Without O_NONBLOCK the opening of a named pipe would wait for ever.
            kind = os.O_NONBLOCK if index == len(parts) - 1 else os.O_DIRECTORY
            parent = descriptor
            try:
                descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=parent)
            finally:
                os.close(parent)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(f"{path}: cannot be read ({reason}), expected a regular file") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"{path}: is not a regular file")
    return os.fdopen(descriptor, "rb")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
