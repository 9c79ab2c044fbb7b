"""Compiles one HIP source to a code object for one architecture."""

from __future__ import annotations

import tempfile
from pathlib import Path

from .bounds import describe_exit, read_regular, run_logged
from .inspect import MAX_CODE_OBJECT_BYTES, InvalidCodeObjectError, read_kernels
from .kernels import Compiled
from .toolchain import CODE_OBJECT_VERSION, OWN_INCLUDE, Toolchain


def compile_hip(source: Path, architecture: str, out: Path, toolchain: Toolchain, timeout_s: float = 120.0) -> Compiled:
    """Compile the device side of ``source`` into ``out`` and read its kernels.

    Args:
        source: A HIP file that may hold host code too; the host code is parsed but not compiled.
        architecture: One of ``LDS_LIMIT_BYTES``.
        out: An existing folder for the code object, ``ARCHITECTURE.hsaco``.
        toolchain: What ``toolchain.find`` returned.
        timeout_s: Limit for the compiler, in seconds.

    Raises:
        Unavailable: When the device libraries cannot be built, which is no fault of the source.
    """
    code_object = out / f"{architecture}.hsaco"
    # A failed compilation must not leave an older answer in place.
    code_object.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        libraries = toolchain.device_libraries(architecture, Path(scratch))
        command = _command(source, architecture, code_object, toolchain, libraries)
        code, log = run_logged(command, source.parent, timeout_s)
    if code != 0:
        return Compiled(f"clang {describe_exit(code, timeout_s)} for {architecture}", log)
    try:
        kernels = read_kernels(read_regular(code_object, MAX_CODE_OBJECT_BYTES), architecture)
    except (InvalidCodeObjectError, OSError) as error:
        return Compiled(f"the code object for {architecture} cannot be read: {error}", log)
    if not kernels:
        return Compiled(f"the source holds no kernel that is compiled for {architecture}", log)
    return Compiled(None, log, kernels, [code_object])


def _command(
    source: Path, architecture: str, code_object: Path, toolchain: Toolchain, libraries: list[Path]
) -> list[str]:
    command = [str(toolchain.clang), "-x", "hip", "-std=c++17", "-O3", f"--offload-arch={architecture}"]
    command += ["--cuda-device-only", "--no-gpu-bundle-output", f"-mcode-object-version={CODE_OBJECT_VERSION}"]
    # The driver would look for a ROCm installation and its library folder; here the parts are named one by one.
    command += ["-nogpuinc", "-include", "__clang_hip_runtime_wrapper.h", "-D__HIP_PLATFORM_AMD__"]
    command += ["-isystem", str(OWN_INCLUDE), "-isystem", str(toolchain.include), "-nogpulib"]
    for library in libraries:
        command += ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(library)]
    command += ["-fno-color-diagnostics", "-ferror-limit=20", "-ftemplate-backtrace-limit=4"]
    return [*command, "-o", str(code_object.resolve()), f"./{source.name}"]
