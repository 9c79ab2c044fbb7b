"""Whether the compiler makes the same machine code of two sources: proof that a mutant is no mutant."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from akarena import paths
from akarena.records.task import TargetName
from akarena.targets.cpu import CpuTarget

_SECTIONS = (".text", ".rodata", ".data", ".data.rel.ro", ".init_array")
"""Where code and constants lie; debugging information and build ids are elsewhere."""


def can_tell(target: TargetName, file: str) -> bool:
    """Say whether the machine code of a file can be compared: of HIP on the cpu target."""
    return target is TargetName.CPU and file.endswith(".hip")


def same_code(one: str, other: str) -> bool:
    """Compile two HIP sources as the cpu target does and compare code and constants."""
    first, second = _code(one), _code(other)
    return first is not None and first == second


def _code(text: str) -> tuple[bytes, ...] | None:
    """Compile our own kernel, outside the sandbox; None where it does not compile."""
    package = paths.package()
    with tempfile.TemporaryDirectory(prefix="akarena-same-") as name:
        folder = Path(name)
        (folder / "kernel.hip").write_text(text, "utf-8")
        # The command of the target itself, with this machine's places in it.
        shell = CpuTarget().compile("g++", sys.executable, "kernel.hip").argv[-1]
        for inside, here in (
            ("/akarena/chevrons.py", package / "targets" / "chevrons.py"),
            ("/akarena/include/cpu", package / "targets" / "include" / "cpu"),
            ("/source/", f"{folder}/"),
            ("/tmp/kernel.cpp", folder / "kernel.cpp"),
            ("/out/", f"{folder}/"),
        ):
            shell = shell.replace(inside, str(here))
        if subprocess.run(["/bin/sh", "-c", shell], capture_output=True, check=False).returncode:
            return None
        return tuple(_section(folder, section) for section in _SECTIONS)


def _section(folder: Path, section: str) -> bytes:
    out = folder / "section"
    out.unlink(missing_ok=True)
    command = ["objcopy", "-O", "binary", f"--only-section={section}", str(folder / "kernel.so"), str(out)]
    subprocess.run(command, capture_output=True, check=False)
    return out.read_bytes() if out.exists() else b""
