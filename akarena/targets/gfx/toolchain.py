"""Finds the compiler, headers and device libraries that build HIP for AMD GPUs on a machine without ROCm.

The compiler is clang 22 with its linker. Headers and the ``ocml`` and ``ockl`` device libraries come from the installed
Triton wheel. The constants (``__oclc_*``) that those libraries refer to are in no package: they are compiled here.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CLANG_MAJOR = 22
CODE_OBJECT_VERSION = 6
LDS_LIMIT_BYTES = {"gfx942": 64 * 1024, "gfx950": 160 * 1024}
"""The architectures that can be built, each with the largest LDS allocation of one workgroup in bytes."""

OWN_INCLUDE = Path(__file__).resolve().parent / "include"
"""Our own stand-ins for the HIP headers that the Triton wheel lacks."""

_LLVM_BIN = Path(f"/usr/lib/llvm-{CLANG_MAJOR}/bin")
_TOOL_TIMEOUT_S = 60.0
_ISA_VERSION = {"gfx942": 9402, "gfx950": 9500}
# The numerics of hipcc without -ffast-math: denormals kept, exact square roots, infinities and NaN honoured.
_CONSTANTS = """\
#define CONSTANT __attribute__((address_space(4), visibility("hidden"))) const
CONSTANT unsigned __oclc_ISA_version = {isa_version};
CONSTANT unsigned __oclc_ABI_version = {abi_version};
CONSTANT unsigned __oclc_wavefrontsize_log2 = 6;
CONSTANT unsigned char __oclc_wavefrontsize64 = 1;
CONSTANT unsigned char __oclc_correctly_rounded_sqrt32 = 1;
CONSTANT unsigned char __oclc_daz_opt = 0;
CONSTANT unsigned char __oclc_finite_only_opt = 0;
CONSTANT unsigned char __oclc_unsafe_math_opt = 0;
"""


class Unavailable(Exception):  # noqa: N818 - it is a state of the machine, and reads so where it is caught
    """A part of the tool chain is missing or unusable; the message is one line and names it."""


@dataclass(frozen=True)
class Toolchain:
    """What is needed to build HIP for an AMD GPU.

    Attributes:
        clang: The compiler.
        include: The folder that holds ``hip/hip_runtime.h``.
        bitcode: The folder that holds ``ocml.bc`` and ``ockl.bc``.
        versions: What a record keeps: versions of compiler, headers and Triton, digests of the device libraries.
    """

    clang: Path
    include: Path
    bitcode: Path
    versions: dict[str, str]

    def device_libraries(self, architecture: str, folder: Path) -> list[Path]:
        """Compile the constants for ``architecture`` into ``folder`` and return every module to link, in order.

        Raises:
            Unavailable: When the compiler cannot compile them.
        """
        source = _CONSTANTS.format(isa_version=_ISA_VERSION[architecture], abi_version=CODE_OBJECT_VERSION * 100)
        constants = folder / f"oclc_{architecture}.bc"
        version = f"-mcode-object-version={CODE_OBJECT_VERSION}"
        flags = ["--target=amdgcn-amd-amdhsa", "-nogpulib", version, "-O1", "-emit-llvm", "-c", "-o", str(constants)]
        _run([str(self.clang), "-x", "c", *flags, "-"], source, "clang cannot compile for amdgcn-amd-amdhsa")
        return [self.bitcode / "ocml.bc", self.bitcode / "ockl.bc", constants]


def find() -> Toolchain:
    """Find the tool chain for HIP.

    Raises:
        Unavailable: When a part is missing, naming the first one.
    """
    clang = _find_clang()
    banner = _run([str(clang), "--version"], "", "clang does not start").splitlines()[0]
    match = re.search(r"version (\d+)\.[\w.]+", banner)
    if match is None or int(match[1]) != CLANG_MAJOR:
        raise Unavailable(f"clang {CLANG_MAJOR} is needed, but {clang} says {banner[:120]!r}")
    # The driver starts the linker from its own folder.
    if not (clang.resolve().parent / "lld").is_file() and shutil.which("lld") is None:
        raise Unavailable(f"the linker lld is not installed beside clang (package lld-{CLANG_MAJOR})")
    # Without the host's C++ headers every HIP source would fail, and the candidate would be blamed.
    _run([str(clang), "-x", "c++", "-fsyntax-only", "-"], "#include <cmath>\n", "the C++ standard headers are missing")
    amd, triton_version = find_triton()
    include, bitcode = amd / "include", amd / "lib"
    for needed in (include / "hip" / "hip_runtime.h", bitcode / "ocml.bc", bitcode / "ockl.bc"):
        if not needed.is_file():
            raise Unavailable(f"the Triton wheel ({triton_version}) does not hold {needed.name}")
    versions = {
        "clang": banner[:200],
        "triton": triton_version,
        "hip_headers": _hip_version(include / "hip" / "hip_version.h"),
        "ocml_sha256": hashlib.sha256((bitcode / "ocml.bc").read_bytes()).hexdigest(),
        "ockl_sha256": hashlib.sha256((bitcode / "ockl.bc").read_bytes()).hexdigest(),
    }
    return Toolchain(clang=clang, include=include, bitcode=bitcode, versions=versions)


def find_triton() -> tuple[Path, str]:
    """Find the AMD backend folder of the installed Triton, without importing it, and Triton's version.

    Raises:
        Unavailable: When Triton is not installed or has no AMD backend.
    """
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        raise Unavailable("triton is not installed (its wheel brings the HIP headers and the device libraries)")
    folder = Path(spec.origin).parent / "backends" / "amd"
    if not folder.is_dir():
        raise Unavailable("the installed triton has no AMD backend")
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    return folder, version


def _find_clang() -> Path:
    name = f"clang-{CLANG_MAJOR}"
    on_path = shutil.which(name)
    if on_path is not None:
        return Path(on_path)
    if (_LLVM_BIN / "clang").is_file():
        return _LLVM_BIN / "clang"
    raise Unavailable(f"{name} is not installed: neither on PATH nor in {_LLVM_BIN} (package {name})")


def _hip_version(header: Path) -> str:
    text = header.read_text(encoding="utf-8") if header.is_file() else ""
    parts = [re.search(rf"HIP_VERSION_{part}\s+(\d+)", text) for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(match[1] if match else "?" for match in parts)


def _run(command: list[str], stdin: str, complaint: str) -> str:
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, errors="replace", timeout=_TOOL_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{complaint}: {error}") from error
    if done.returncode != 0 or (not done.stdout and "--version" in command):
        last = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise Unavailable(f"{complaint}: {last[:200]}")
    return done.stdout
