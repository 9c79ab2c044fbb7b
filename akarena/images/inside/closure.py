"""Gathers the root of the worker image: a bare interpreter, the C and C++ libraries, the GPU runtime, nothing else.

What a program or library needs is asked of ``ldd``. A library lies where it lies in the base, with the links of the
outermost folders (``/lib`` and ``/lib64``) repeated, so that everything is found under the same path.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from akarena.images.inside import facts
from akarena.images.inside.common import ask, fail, find_python, precompile, seal

_LEFT_OUT = shutil.ignore_patterns(
    *("__pycache__", "site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "turtledemo"),
    *("ensurepip", "lib2to3", "config-*", "_tkinter*", "_test*", "_ctypes_test*", "EXTERNALLY-MANAGED"),
)
_LINKS = ("/lib", "/lib32", "/lib64", "/libx32")
_COMPANIONS = {"hip": ("libamd_comgr.so.?", "libhsa-amd-aqlprofile64.so.?"), "cuda": ()}
"""Libraries that the GPU runtime loads by itself, so that ``ldd`` does not name them; taken where they are."""
_CPP = ("libstdc++.so.6", "libgcc_s.so.1")


def main() -> None:
    """Fill the layer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", required=True)
    parser.add_argument("--into", type=Path, required=True)
    arguments = parser.parse_args()
    layer: Path = arguments.into
    layer.mkdir(parents=True)
    bare, library, version = ask(find_python(), facts.INTERPRETER)
    files = [Path(bare), *cpp_libraries()]
    runtime = facts.runtime(arguments.target)
    if runtime is not None:
        files += [Path(runtime["library"]), *companions(runtime)]
    elif arguments.target != "cpu":
        fail(f"the base has no GPU runtime library for {arguments.target}")
    system_folders(layer)
    copy_standard_library(Path(bare), Path(library), layer)
    extensions = sorted((layer / library[1:] / "lib-dynload").glob("*.so"))
    files += [Path(library, "lib-dynload", extension.name) for extension in extensions]
    copied = sorted({place(file, layer) for file in {*files, *needed(files)}})
    index_libraries(copied, layer)
    described = {
        "role": "worker",
        "target": arguments.target,
        "python": {
            "executable": None,
            "bare_executable": bare,
            "standard_library": library,
            "version": version,
            "package_folders": [],
        },
        "compiler": None,
        "profiler": None,
        "runtime": runtime,
        "python_packages": [],
        "os_packages": facts.os_packages([str(path) for path in (*copied, Path(library, "os.py"))]),
        "programs": [],
    }
    facts.write(described, layer)
    seal(layer)


def cpp_libraries() -> list[Path]:
    """Return the C++ library and what comes with it."""
    shown = [
        subprocess.run(["g++", f"-print-file-name={name}"], check=True, stdout=subprocess.PIPE, text=True).stdout
        for name in _CPP
    ]
    # In the folder where the loader looks, not below the compiler's own.
    paths = [Path(line.strip()) for line in shown]
    if not all(path.is_absolute() and path.exists() for path in paths):
        fail("g++ knows no libstdc++.so.6 or libgcc_s.so.1")
    return [path.parent.resolve() / path.name for path in paths]


def companions(runtime: dict[str, str]) -> list[Path]:
    """Return what the GPU runtime loads at run time from its own folder."""
    folder = Path(runtime["library"]).parent
    return [path for pattern in _COMPANIONS[runtime["prefix"]] for path in sorted(folder.glob(pattern))]


def needed(files: Iterable[Path]) -> set[Path]:
    """Return the shared libraries that programs and libraries need, the loader included."""
    shown = subprocess.run(["ldd", *map(str, files)], stdout=subprocess.PIPE, text=True, check=False).stdout
    missing = sorted(set(re.findall(r"^\s+(\S+) => not found", shown, flags=re.MULTILINE)))
    if missing:
        fail(f"the worker's libraries need {', '.join(missing)}, which the base lacks")
    return {Path(path) for path in re.findall(r"(?:=>\s*|^\s+)(/[^\s:]+)\s+\(0x", shown, flags=re.MULTILINE)}


def system_folders(layer: Path) -> None:
    """Make the folders and files that every process expects."""
    for link in _LINKS:
        if Path(link).is_symlink():
            (layer / link[1:]).symlink_to(Path(link).readlink())
            (layer / os.path.realpath(link)[1:]).mkdir(parents=True, exist_ok=True)
    for name in ("etc", "tmp", "home/user", "usr/bin", "proc", "sys", "dev", "run"):
        (layer / name).mkdir(parents=True, exist_ok=True)
    (layer / "tmp").chmod(0o1777)
    os.chown(layer / "home" / "user", 65532, 65532)
    (layer / "home" / "user").chmod(0o700)
    (layer / "etc" / "passwd").write_text("user:x:65532:65532::/home/user:/bin/false\n")
    (layer / "etc" / "group").write_text("user:x:65532:\n")


def copy_standard_library(python: Path, library: Path, layer: Path) -> None:
    """Copy the standard library without packages, tests, installers and graphics, with its byte code."""
    target = layer / library.relative_to("/")
    # Links are followed: Debian's sitecustomize lies in /etc.
    shutil.copytree(library, target, ignore=_LEFT_OUT, ignore_dangling_symlinks=True)
    precompile(python, target, strip=layer)


def place(file: Path, layer: Path) -> Path:
    """Copy a file to where it lies in the base, outer links resolved; returns that path."""
    path = file.parent.resolve() / file.name
    target = layer / path.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy(file, target)
    return path


def index_libraries(files: Iterable[Path], layer: Path) -> None:
    """Write the loader's cache, so that libraries outside the usual folders are found without an environment."""
    folders = sorted({str(path.parent) for path in files if ".so" in path.name})
    (layer / "etc" / "ld.so.conf").write_text("".join(f"{folder}\n" for folder in folders))
    subprocess.run(["ldconfig", "-r", str(layer), "-X"], check=True)
    shutil.rmtree(layer / "var", ignore_errors=True)


if __name__ == "__main__":
    main()
