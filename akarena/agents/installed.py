"""Programs of this machine that a sandbox without images has to be shown: an agent's command line and its files."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from akarena.sandbox.base import Mount

FOLDER = "/akarena-agent"
"""Where they lie in a sandbox."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")


@dataclass(frozen=True)
class Installed:
    """A program as a sandboxed process sees it.

    Attributes:
        path: The program, in the sandbox.
        mounts: It and its files, read-only.
        folders: For the PATH.
    """

    path: str
    mounts: tuple[Mount, ...] = ()
    folders: tuple[str, ...] = ()


def find(name: str) -> Installed | None:
    """Find a program on the PATH; None where there is none.

    A package of npm is shown with its neighbours of the same scope, which hold what fits this processor; any other
    script with its folder, unless that is a folder of many programs; a binary alone.
    """
    found = shutil.which(name)
    if found is None:
        return None
    real = Path(found).resolve()
    if _is_system(real):
        return Installed(str(real))
    interpreter = _interpreter(real)
    part = _package(real) or (real.parent if interpreter and real.parent.name not in ("bin", "sbin") else real)
    # Below node_modules, so that Node.js finds one package from another.
    target = f"{FOLDER}/node_modules/{part.name}"
    mounts = [Mount(part, target)]
    folders = []
    if interpreter and (runner := shutil.which(interpreter)) and not interpreter.startswith("python"):
        runner_path = Path(runner).resolve()
        if not _is_system(runner_path):
            mounts.append(Mount(runner_path, f"{FOLDER}/bin/{interpreter}"))
            folders.append(f"{FOLDER}/bin")
    inner = real.relative_to(part).as_posix()
    return Installed(target if inner == "." else f"{target}/{inner}", tuple(mounts), tuple(folders))


def _is_system(path: Path) -> bool:
    """Say whether the sandbox sees a path anyway."""
    return any(path.is_relative_to(folder) for folder in _SYSTEM)


def _package(path: Path) -> Path | None:
    """Return the outermost package folder of npm around a path, or the folder of its scope."""
    parts = path.parts
    if "node_modules" not in parts:
        return None
    return Path(*parts[: parts.index("node_modules") + 2])


def _interpreter(path: Path) -> str:
    """Return the name of a script's interpreter; empty for a binary."""
    try:
        with path.open("rb") as file:
            line = file.readline(256)
    except OSError:
        return ""
    if not line.startswith(b"#!"):
        return ""
    try:
        words = shlex.split(line[2:].decode("utf-8", "replace"))
    except ValueError:
        return ""
    names = [Path(word).name for word in words if not word.startswith("-")]
    return next((name for name in names if name != "env"), "")
