"""Writes ``/akarena/image.json``: what an image holds and where, so that a runner need not look into it."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from akarena.images.inside.common import PACKAGES, ask, find_python, seal

FACTS = Path("akarena/image.json")
"""Where the facts lie, below the image's root."""
INTERPRETER = """
import json, os, platform, sys, sysconfig
bare = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
library = os.path.realpath(sysconfig.get_path("stdlib"))
print(json.dumps([bare, library, platform.python_version()]))
"""
_DISTRIBUTIONS = """
import importlib.metadata, json, re, sys
sys.path[:0] = {folders!r}
found = {{}}
for distribution in importlib.metadata.distributions():
    name = re.sub("[-_.]+", "-", distribution.metadata["Name"] or "").lower()
    found.setdefault(name, distribution.version)
print(json.dumps([part for name in sorted(found) if name for part in (name, found[name])]))
"""
_COMPILERS = {"rocm": "hipcc", "cuda": "nvcc", "cpu": "g++"}
_PROFILERS = {"rocm": ("rocprofv3", "rocprof"), "cuda": ("ncu", "nsys"), "cpu": ("perf",)}
_RUNTIMES = {
    "rocm": ("hip", ("/opt/rocm/lib/libamdhip64.so.?",)),
    "cuda": ("cuda", ("/usr/local/cuda/lib64/libcudart.so.??", "/usr/local/cuda/targets/*/lib/libcudart.so.??")),
}


def main() -> None:
    """Gather the facts of this image into a layer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--role", choices=("judge", "agent"), required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--program", action="append", default=[], help="an agent's command line, on PATH")
    parser.add_argument("--into", type=Path, required=True)
    arguments = parser.parse_args()
    python = find_python()
    bare, library, version = ask(python, INTERPRETER)
    folders = [str(PACKAGES)] if PACKAGES.is_dir() else []
    named = ask(python, _DISTRIBUTIONS.format(folders=folders))
    facts = {
        "role": arguments.role,
        "target": arguments.target,
        "python": {
            "executable": str(python),
            "bare_executable": bare,
            "standard_library": library,
            "version": version,
            "package_folders": folders,
        },
        "compiler": compiler(arguments.target),
        "profiler": profiler(arguments.target),
        "runtime": runtime(arguments.target),
        "python_packages": [{"name": n, "version": v} for n, v in zip(named[::2], named[1::2], strict=True)],
        "os_packages": os_packages(()),
        "programs": [{"name": name, "version": program_version(name)} for name in arguments.program],
    }
    layer: Path = arguments.into
    layer.mkdir(parents=True)
    if arguments.role == "agent":
        workspace = layer / "workspace"
        workspace.mkdir()
    write(facts, layer)
    seal(layer)


def write(facts: dict[str, Any], layer: Path) -> None:
    """Write the facts into a layer, sorted."""
    path = layer / FACTS
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n", "utf-8")


def compiler(target: str) -> dict[str, str] | None:
    """Return the compiler of the target's native kernels."""
    path = shutil.which(_COMPILERS[target])
    return {"path": path, "version": program_version(path)} if path else None


def profiler(target: str) -> str | None:
    """Return the profiler that the base brings."""
    return next(filter(None, map(shutil.which, _PROFILERS[target])), None)


def runtime(target: str) -> dict[str, str] | None:
    """Return the GPU runtime library, under the name that kernels ask for; None on the cpu target."""
    if target not in _RUNTIMES:
        return None
    prefix, patterns = _RUNTIMES[target]
    for pattern in patterns:
        found = sorted(Path("/").glob(pattern.lstrip("/")))
        if found:
            # Without the links of the folder, such as /opt/rocm, so that it is the same path in every image.
            return {"library": str(found[-1].parent.resolve() / found[-1].name), "prefix": prefix}
    return None


def os_packages(files: Sequence[str]) -> list[dict[str, str]]:
    """Return the Debian packages of the image, or those that own the given files."""
    if shutil.which("dpkg-query") is None:
        return []
    shown = _output("dpkg-query", "-W", "-f", "${binary:Package}\t${Version}\t${db:Status-Abbrev}\n")
    installed = {}
    for line in shown.splitlines():
        name, version, status = line.split("\t")
        if status.startswith("ii"):
            installed[name] = version
    wanted: Iterable[str] = installed
    if files:
        # The database names files as they were packed, some of them in /lib where that has become a link to /usr/lib.
        owners = _output("dpkg-query", "-S", *files, *(name.removeprefix("/usr") for name in files))
        wanted = {name.strip() for line in owners.splitlines() for name in line.rpartition(": ")[0].split(",")}
    return [{"name": name, "version": installed[name]} for name in sorted(wanted) if name in installed]


def program_version(name: str) -> str:
    """Return the first line with a number that a program prints about itself."""
    shown = _output(name, "--version")
    return next((line.strip() for line in shown.splitlines() if re.search(r"\d+\.\d+", line)), "unknown")[:200]


def _output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120).stdout


if __name__ == "__main__":
    main()
