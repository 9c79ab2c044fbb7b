"""Hashed requirement files: narrowed to one interpreter, and their wheels downloaded by pip on this machine.

Here and not in the build: an index, a proxy or a password that pip is configured with never comes near an image.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from akarena.errors import InfrastructureError, UserError


@dataclass(frozen=True)
class Interpreter:
    """The interpreter that wheels are for."""

    version: str
    """Full version, such as ``3.12.3``."""
    machine: str
    """Processor, as ``uname -m`` names it."""
    glibc: str
    """Version of the C library, such as ``2.39``."""

    @property
    def platforms(self) -> list[str]:
        """Names of the platforms whose wheels run there, newest first."""
        major, minor = (int(part) for part in self.glibc.split(".")[:2])
        names = [f"manylinux_{major}_{number}_{self.machine}" for number in range(minor, 4, -1)]
        return [*names, f"manylinux2014_{self.machine}", f"linux_{self.machine}"]

    @property
    def environment(self) -> dict[str, str]:
        """What markers of requirements are evaluated in."""
        return {
            "python_version": ".".join(self.version.split(".")[:2]),
            "python_full_version": self.version,
            "platform_machine": self.machine,
            "sys_platform": "linux",
            "platform_system": "Linux",
            "os_name": "posix",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
        }


def narrow(text: str, where: str, interpreter: Interpreter) -> str:
    """Return a requirement file with the lines that hold for an interpreter, without their markers.

    Raises:
        UserError: A line is no pinned requirement with hashes.
    """
    kept = []
    for line in _logical_lines(text):
        declared, *hashes = re.split(r"\s+--hash=", line)
        try:
            requirement = Requirement(declared)
        except InvalidRequirement as error:
            raise UserError(f"{where}: {declared!r} is no requirement ({error})") from None
        if not hashes or not re.fullmatch(r"==[^*,]+", str(requirement.specifier)):
            raise UserError(f"{where}: {declared!r} is not pinned with hashes")
        if requirement.marker is None or requirement.marker.evaluate(interpreter.environment):
            kept.append(" ".join([f"{requirement.name}{requirement.specifier}", *(f"--hash={h}" for h in hashes)]))
    return "".join(f"{line}\n" for line in kept)


def download(locks: Sequence[Path], interpreter: Interpreter, folder: Path) -> None:
    """Fill a folder with the wheels of some locks, and with the narrowed locks as ``*.txt``.

    What lies there with the right digest is not downloaded again; what no lock names is removed.

    Raises:
        InfrastructureError: pip cannot be run, or finds no wheel with one of the digests.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.txt"):
        stale.unlink()
    named = []
    for lock in locks:
        requirements = folder / f"{lock.stem}.txt"
        requirements.write_text(narrow(lock.read_text("utf-8"), str(lock), interpreter), "utf-8")
        named += ["--requirement", str(requirements)]
    wheels = {path.name for path in folder.glob("*.whl")}
    major, minor, *_ = interpreter.version.split(".")
    abis = [f"cp{major}{minor}", "abi3", "none"]
    argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes", *named]
    argv += ["--dest", str(folder), "--python-version", interpreter.version, "--implementation", "cp"]
    argv += ["--disable-pip-version-check", "--progress-bar=off"]
    argv += [word for abi in abis for word in ("--abi", abi)]
    argv += [word for platform in interpreter.platforms for word in ("--platform", platform)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise InfrastructureError(f"{locks[0]}: its wheels could not be downloaded: {_reason(done.stdout)}")
    kept = set(re.findall(r"([^/\s]+\.whl)", done.stdout))
    for stale_name in wheels - kept:
        (folder / stale_name).unlink()


def _reason(output: str) -> str:
    errors = [line.removeprefix("ERROR: ").strip() for line in output.splitlines() if line.startswith("ERROR: ")]
    if "No module named pip" in output:
        return f"{sys.executable} has no pip"
    return errors[-1] if errors else "; ".join(output.splitlines()[-2:])


def _logical_lines(text: str) -> Iterator[str]:
    joined = ""
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        joined = f"{joined} {stripped.removesuffix(chr(92)).strip()}".strip()
        if not stripped.endswith("\\"):
            yield joined
            joined = ""
