"""Fills ``.akarena/images/context``: everything from a registry that a build needs, downloaded and checked here.

With it, ``docker build --file Dockerfile.rocm --target STAGE .`` in the checkout works too, with any builder.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from akarena import images
from akarena.errors import UserError
from akarena.images import archives, requirements
from akarena.images.build import Say
from akarena.images.requirements import Interpreter

NPM_AGENTS = ("claude", "codex")
_LOCKS = {
    "pip": ("pip.lock",),
    "torch": ("torch-cpu.txt", "torch.lock"),
    "judge": ("judge.lock",),
    "node": ("node.lock",),
    "mini": ("mini.lock",),
}


def fill(root: Path, names: Iterable[str], interpreter: Interpreter, say: Say) -> None:
    """Download what is named: ``pip``, ``torch``, ``judge``, ``node``, ``mini``, or an agent with npm archives.

    What was downloaded is kept, for the next build of any target. Folders of the context that are not named are empty,
    but for the one of Cursor.
    """
    wanted = list(names)
    for name in (*_LOCKS, *NPM_AGENTS):
        _empty(name)
    (images.folder() / "context" / "cursor").mkdir(exist_ok=True)
    for name in wanted:
        say(f"downloads: {name}")
        folder = images.folder() / "downloads" / name
        if name in _LOCKS:
            locks = [root / "requirements" / "images" / lock for lock in _LOCKS[name]]
            requirements.download(locks, interpreter, folder)
        else:
            node = images.folder() / "downloads" / "node"
            archives.download(root / "requirements" / "images" / name, interpreter.machine, node, folder)
        for file in folder.iterdir():
            (images.folder() / "context" / name / file.name).hardlink_to(file)


def _empty(name: str) -> None:
    folder = images.folder() / "context" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def take_cursor(archive: Path) -> None:
    """Put the archive of the Cursor CLI into the context."""
    _empty("cursor")
    shutil.copyfile(archive, images.folder() / "context" / "cursor" / "cursor.tar.gz")


def check_cursor(archive: Path | None, version: str | None, sha256: str | None) -> dict[str, str]:
    """Check the archive of the Cursor CLI; returns the build arguments.

    Raises:
        UserError: Archive, version or digest is missing, or the archive has another digest.
    """
    if archive is None or version is None or sha256 is None:
        raise UserError(
            "--agent cursor: the Cursor CLI is in no registry; expected --cursor-archive FILE (tar.gz), "
            "--cursor-version and --cursor-sha256"
        )
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise UserError(f"--cursor-sha256 {sha256}: expected 64 hexadecimal digits")
    if not re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z.+-]*", version):
        raise UserError(f"--cursor-version {version!r}: expected letters, digits, dots and hyphens")
    try:
        with archive.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"--cursor-archive {archive}: cannot be read ({error.strerror})") from None
    if found != sha256:
        raise UserError(f"--cursor-archive {archive}: has the digest {found}, expected {sha256}")
    return {"CURSOR_VERSION": version, "CURSOR_SHA256": sha256}
