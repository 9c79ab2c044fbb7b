"""Programs of this machine that a sandbox without images has to be shown: an agent's command line and its files."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from akarena.sandbox.base import Mount

FOLDER = "/akarena-agent"
"""Where they lie in a sandbox."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_LONG_SHEBANG = re.compile(rb"""#!/bin/sh\n'''exec' "?(/[^"\n]+?)"? "\$0\"""")


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


def find_python(name: str) -> Installed | None:
    """Find a script of Python's on the PATH, and give the interpreter that runs it; None where there is none.

    A virtual environment is shown below `FOLDER`: its interpreter finds its packages by where it was started. Python
    itself is shown where it is, which the environment refers to.
    """
    found = shutil.which(name)
    python = _python(Path(found).resolve()) if found else None
    if python is None:
        return None
    real = python.resolve()
    prefix = python.parent.parent
    settings = prefix / "pyvenv.cfg"
    if not settings.is_file():
        return Installed(str(real), _outside(real.parent))
    pairs = (line.partition("=") for line in settings.read_text("utf-8").splitlines())
    home = {key.strip(): value.strip() for key, _, value in pairs}.get("home", "")
    target = f"{FOLDER}/python"
    mounts = (Mount(prefix.resolve(), target), *_outside(Path(home), real.parent))
    return Installed(f"{target}/bin/{python.name}", mounts)


def _python(script: Path) -> Path | None:
    """Return the interpreter that a script names, as it is spelled there; None where that is not Python."""
    words = _shebang(script)
    if words == ["/bin/sh"]:
        # So pip writes the name of an interpreter that is too long for a first line.
        match = _LONG_SHEBANG.match(script.read_bytes())
        words = [os.fsdecode(match[1])] if match else []
    if len(words) != 1 or not Path(words[0]).name.startswith("python") or not Path(words[0]).is_file():
        return None
    return Path(words[0])


def _outside(*folders: Path) -> tuple[Mount, ...]:
    """Return mounts of Pythons that a sandbox does not see anyway, each where it is, by the folders of interpreters."""
    chosen = [folder.parent for folder in folders if folder.is_absolute() and not _is_system(folder)]
    # A folder that is no whole Python is not shown: it could be someone's home.
    whole = [path for path in dict.fromkeys(chosen) if any(path.glob("lib*/python3*/os.py"))]
    return tuple(Mount(path.resolve(), str(path)) for path in whole)


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
    names = [Path(word).name for word in _shebang(path) if not word.startswith("-")]
    return next((name for name in names if name != "env"), "")


def _shebang(path: Path) -> list[str]:
    """Return the words of a script's first line; none for a binary."""
    try:
        with path.open("rb") as file:
            line = file.readline(256)
    except OSError:
        return []
    if not line.startswith(b"#!"):
        return []
    try:
        return shlex.split(line[2:].decode("utf-8", "replace"))
    except ValueError:
        return []
