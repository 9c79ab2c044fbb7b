"""What this machine offers to sandboxed processes: the system, Python, and single libraries with what they need."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

from akarena import paths
from akarena.errors import InfrastructureError
from akarena.sandbox.base import Mount
from akarena.targets.base import BuildRecipe, Device, DeviceFacts, Provision

_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc/alternatives", "/etc/ld.so.cache")
CODE = "/akarena"
"""Where our own code lies in a sandbox."""
LIBRARIES = "/akarena-libraries"
"""Where a native worker finds the shared libraries that it is given one by one."""
_CPP_LIBRARY = "libstdc++.so.6"
PLAIN = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
"""Environment of a compiler."""


def mount(path: Path | str, target: str | None = None) -> Mount:
    """Mount a file or folder read-only, by default where it is."""
    return Mount(source=Path(path).resolve(), target=target or str(path))


def system_mounts() -> tuple[Mount, ...]:
    """Return the distribution's programs and libraries."""
    return tuple(mount(path) for path in _SYSTEM if Path(path).exists())


def code_mounts(*parts: str) -> tuple[Mount, ...]:
    """Return mounts of parts of our package, such as ``worker``, below :data:`CODE`."""
    package = paths.package()
    return tuple(mount(package / part, f"{CODE}/akarena/{part}") for part in ("__init__.py", *parts))


def base_python() -> Path:
    """Return the interpreter itself, outside any virtual environment."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def _package_folders() -> list[Path]:
    """Return where packages are imported from: not the folder of a script, nor our own checkout."""
    added = {Path(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    entries = [Path(entry) for entry in sys.path if entry and Path(entry).is_dir()]
    own = paths.package().parent
    named = [path for path in entries if path in added or path.name in ("site-packages", "dist-packages")]
    return [path for path in named if path.resolve() != own]


@functools.cache
def python_roots() -> tuple[Path, ...]:
    """Return the folders that Python and its packages are loaded from, outermost first."""
    roots: list[Path] = [Path("/usr")]
    for candidate in (Path(sys.base_prefix), Path(sys.prefix), *_package_folders()):
        if not any(candidate.is_relative_to(root) for root in roots):
            roots.append(candidate)
    return tuple(roots[1:])


def python_mounts() -> tuple[Mount, ...]:
    """Return Python with all installed packages."""
    return tuple(mount(root) for root in python_roots())


class HostPython:
    """The interpreter that runs akarena itself."""

    def __init__(self) -> None:
        self.executable = sys.executable
        self.bare_executable = str(base_python())

    def argv(self, code: str) -> tuple[str, ...]:
        """Return the command that runs ``code`` with all packages and our own code importable."""
        inside = (Path(sys.prefix), Path(sys.base_prefix))
        added = [str(path) for path in _package_folders() if not any(path.is_relative_to(root) for root in inside)]
        return with_packages(self.executable, added, code)

    def bare_argv(self, code: str) -> tuple[str, ...]:
        """Return the command that runs ``code`` with the standard library and our own code importable."""
        return bare(self.bare_executable, code)

    def bare_mounts(self, empty: Path) -> tuple[Mount, ...]:
        """Return the interpreter and the standard library, without any installed package."""
        python = base_python()
        standard = Path(sysconfig.get_paths()["stdlib"]).resolve()
        extensions = [str(path) for path in (standard / "lib-dynload").glob("*.so")]
        mounts = [mount(python), mount(standard)]
        for hidden in ("site-packages", "dist-packages"):
            if (standard / hidden).is_dir():
                mounts.append(Mount(source=empty, target=str(standard / hidden)))
        return (*mounts, *library_mounts([str(python), *extensions]))


def with_packages(executable: str, folders: Sequence[str], code: str) -> tuple[str, ...]:
    """Return the command that runs ``code`` with our own code and more folders of packages importable."""
    return (executable, "-I", "-c", f"import sys; sys.path[:0] = {[CODE, *folders]!r}; {code}")


def bare(executable: str, code: str) -> tuple[str, ...]:
    """Return the command that runs ``code`` with the standard library and our own code importable."""
    return (executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {CODE!r}); {code}")


def library_mounts(files: Iterable[str]) -> tuple[Mount, ...]:
    """Return mounts of the shared libraries that trusted files need, each as a single file.

    Raises:
        InfrastructureError: ``ldd`` is missing.
    """
    return tuple(mount(path, path) for path in sorted(_library_closure(tuple(sorted(files)))))


@functools.cache
def _library_closure(files: tuple[str, ...]) -> frozenset[str]:
    if shutil.which("ldd") is None:
        raise InfrastructureError("ldd was not found; it comes with the C library's tools (Debian: libc-bin)")
    shown = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False)
    found = re.findall(r"(?:=>\s*|^\s+)(/[^\s:]+)\s+\(0x", shown.stdout, flags=re.MULTILINE)
    return frozenset(found)


def cpp_library_mounts() -> tuple[Mount, ...]:
    """Return the C++ library, in the folder :data:`LIBRARIES` under the name that programs ask for."""
    for name in ("g++", "c++", "clang++"):
        if shutil.which(name):
            argv = [name, f"-print-file-name={_CPP_LIBRARY}"]
            shown = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()
            if Path(shown).is_absolute() and Path(shown).exists():
                return (mount(shown, f"{LIBRARIES}/{_CPP_LIBRARY}"), *library_mounts([shown]))
    return ()


def facts(device: Device, compiler: str) -> DeviceFacts:
    """Put together what ``lock.json`` says."""
    return DeviceFacts(architecture=device.architecture, device=device.name, driver=device.driver, compiler=compiler)


def with_mounts(recipe: BuildRecipe, mounts: tuple[Mount, ...], **environment: str) -> BuildRecipe:
    """Return a recipe with the tool chain of this machine added."""
    given = recipe.provision
    return BuildRecipe(recipe.argv, Provision((*mounts, *given.mounts), {**given.environment, **environment}))


def runtime_environment(library: str, prefix: str) -> dict[str, str]:
    """Tell a process where the GPU runtime lies, and how its functions' names begin."""
    return {"AKARENA_RUNTIME_LIBRARY": library, "AKARENA_RUNTIME_PREFIX": prefix}


def first_line(*argv: str) -> str:
    """Return the first line that a program prints, or an empty text where it cannot be run."""
    try:
        shown = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next((line.strip() for line in shown.stdout.splitlines() if line.strip()), "")
