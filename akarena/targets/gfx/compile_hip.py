"""Compiles one HIP source to a code object for one architecture."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from .bounds import tail
from .inspect import InvalidCodeObject, KernelResources, read_kernels
from .toolchain import CODE_OBJECT_VERSION, OWN_INCLUDE, Toolchain


@dataclass(frozen=True)
class Compiled:
    """The outcome for one architecture.

    Attributes:
        reason: Why it failed, in one line; ``None`` when it compiled.
        log: What the compiler said.
        kernels: What was compiled.
        code_objects: The files that were written.
    """

    reason: str | None
    log: str
    kernels: list[KernelResources] = field(default_factory=list)
    code_objects: list[Path] = field(default_factory=list)


def compile_hip(source: Path, architecture: str, out: Path, toolchain: Toolchain, timeout_s: float = 120.0) -> Compiled:
    """Compile the device side of ``source`` into ``out`` and read its kernels.

    Args:
        source: A HIP file that may hold host code too; the host code is parsed but not compiled.
        architecture: One of ``LDS_LIMIT_BYTES``.
        out: An existing folder for the code object.
        toolchain: What ``toolchain.find`` returned.
        timeout_s: Limit for the compiler, in seconds.

    Raises:
        Unavailable: When the device libraries cannot be built, which is no fault of the source.
    """
    code_object = out / f"{architecture}.hsaco"
    with tempfile.TemporaryDirectory() as scratch:
        libraries = toolchain.device_libraries(architecture, Path(scratch))
        # A failed compilation must not leave an older answer in place.
        code_object.unlink(missing_ok=True)
        command = _command(source, architecture, code_object, toolchain, libraries)
        with tempfile.TemporaryFile() as log_file:
            try:
                code = subprocess.run(
                    command,
                    cwd=source.parent,
                    stdin=subprocess.DEVNULL,
                    stdout=log_file,
                    stderr=subprocess.STDOUT,
                    timeout=timeout_s,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                return Compiled(f"the compiler took longer than {timeout_s:g} s for {architecture}", tail(log_file))
            log = tail(log_file)
    if code != 0:
        return Compiled(f"clang exited with {code} for {architecture}", log)
    try:
        kernels = read_kernels(code_object.read_bytes())
    except (InvalidCodeObject, OSError) as error:
        return Compiled(f"the code object for {architecture} cannot be read: {error}", log)
    if not kernels:
        return Compiled(f"the source holds no kernel for {architecture}", log)
    return Compiled(None, log, kernels, [code_object])


def _command(source: Path, architecture: str, code_object: Path, toolchain: Toolchain, libraries: list[Path]) -> list[str]:
    command = [str(toolchain.clang), "-x", "hip", "-std=c++17", "-O3", f"--offload-arch={architecture}"]
    command += ["--cuda-device-only", "--no-gpu-bundle-output", f"-mcode-object-version={CODE_OBJECT_VERSION}"]
    # The wrapper would be included by itself together with ROCm's own headers, which do not exist here.
    command += ["-nogpuinc", "-include", "__clang_hip_runtime_wrapper.h", "-D__HIP_PLATFORM_AMD__"]
    command += ["-isystem", str(OWN_INCLUDE), "-isystem", str(toolchain.include)]
    command.append("-nogpulib")
    for library in libraries:
        command += ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(library)]
    command += ["-fno-color-diagnostics", "-ferror-limit=20", "-ftemplate-backtrace-limit=4"]
    return [*command, "-o", str(code_object.resolve()), f"./{source.name}"]
