"""The rocm target: hipcc, Triton and PyTorch of a ROCm installation.

It was written against the documented interfaces and has not been run on an AMD device by us; README says so.
"""

from __future__ import annotations

import ctypes.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from akarena.errors import InfrastructureError
from akarena.records.task import TargetName
from akarena.sandbox.base import Mount
from akarena.targets import host
from akarena.targets.base import BuildRecipe, DeviceFacts, EntryKind, Fp8, Provision
from akarena.targets.cpu import missing_packages


class RocmTarget:
    """One AMD Instinct GPU with ROCm, torch and Triton."""

    name = TargetName.ROCM
    measures_speed = True

    def missing(self) -> list[str]:
        """Return what this machine lacks."""
        lacks = []
        if not _devices():
            lacks.append("no /dev/kfd and /dev/dri/renderD*")
        if _rocm() is None:
            lacks.append("hipcc was not found (ROCm, usually /opt/rocm)")
        return lacks + missing_packages()

    def facts(self) -> DeviceFacts:
        """Return what rocminfo and hipcc say."""
        shown = subprocess.run(["rocminfo"], capture_output=True, text=True, check=False).stdout
        architecture = re.search(r"^\s*Name:\s+(gfx[0-9a-f]+)", shown, flags=re.MULTILINE)
        name = re.search(r"Marketing Name:\s+(AMD Instinct[^\n]*)", shown)
        if architecture is None:
            raise InfrastructureError("rocminfo names no gfx architecture")
        version = Path("/sys/module/amdgpu/version")
        return DeviceFacts(
            architecture=architecture.group(1),
            device=name.group(1).strip() if name else "unknown",
            driver=version.read_text().strip() if version.exists() else "unknown",
            compiler=host.first_line(str(_hipcc()), "--version"),
        )

    def build(self, source: str) -> BuildRecipe:
        """Compile with hipcc for the device at hand."""
        argv = (
            str(_hipcc()),
            *("-x", "hip", "-O3", "-std=c++17", f"--offload-arch={self.facts().architecture}", "-fPIC", "-shared"),
            *("-o", "/out/kernel.so", f"/source/{source}"),
        )
        environment = {
            "PATH": f"{_hipcc().parent}:/usr/local/bin:/usr/bin:/bin",
            "HIP_PLATFORM": "amd",
            "LC_ALL": "C.UTF-8",
        }
        return BuildRecipe(argv, Provision((*host.system_mounts(), *_rocm_mounts()), environment))

    def native_worker(self) -> Provision:
        """Return the C++ library, the HIP runtime with what it needs, and the device; no BLAS."""
        library = _runtime_library()
        mounts = (
            *host.cpp_library_mounts(),
            host.mount(library, f"{host.LIBRARIES}/{library.name}"),
            *host.library_mounts([str(library)]),
            *_devices(),
        )
        environment = _runtime_environment(f"{host.LIBRARIES}/{library.name}")
        return Provision(mounts, {**environment, "LD_LIBRARY_PATH": host.LIBRARIES})

    def torch_process(self) -> Provision:
        """Return Python with its packages, ROCm and the device."""
        mounts = (*host.system_mounts(), *host.python_mounts(), *_rocm_mounts(), *_devices())
        environment = {
            **_runtime_environment(str(_runtime_library())),
            "PATH": f"{_hipcc().parent}:/usr/local/bin:/usr/bin:/bin",
        }
        return Provision(mounts, environment)

    def fp8_dtype(self) -> Fp8:
        """FNUZ e4m3 on gfx942, OCP e4m3 on later ones."""
        return "float8_e4m3fnuz" if self.facts().architecture == "gfx942" else "float8_e4m3fn"

    def is_verified(self, kind: EntryKind, dtypes: frozenset[str]) -> bool:
        """Everything runs on the device itself."""
        return True


def _rocm() -> Path | None:
    for candidate in (os.environ.get("ROCM_PATH"), "/opt/rocm"):
        if candidate and (Path(candidate) / "bin" / "hipcc").exists():
            return Path(candidate).resolve()
    found = shutil.which("hipcc")
    return Path(found).resolve().parent.parent if found else None


def _hipcc() -> Path:
    rocm = _rocm()
    if rocm is None:
        raise InfrastructureError("hipcc was not found")
    return rocm / "bin" / "hipcc"


def _rocm_mounts() -> tuple[Mount, ...]:
    rocm = _rocm()
    if rocm is None or rocm.is_relative_to("/usr"):
        return ()
    # Packages refer to /opt/rocm although it is a link to the versioned folder.
    return tuple({target: host.mount(rocm, target) for target in (str(rocm), "/opt/rocm")}.values())


def _runtime_library() -> Path:
    rocm = _rocm()
    found = sorted(rocm.glob("lib/libamdhip64.so.?"), key=lambda path: len(path.name)) if rocm else []
    if found:
        return found[0]
    named = ctypes.util.find_library("amdhip64")
    if named is None:
        raise InfrastructureError("libamdhip64.so was not found")
    return Path(named)


def _runtime_environment(library: str) -> dict[str, str]:
    return {"AKARENA_RUNTIME_LIBRARY": library, "AKARENA_RUNTIME_PREFIX": "hip"}


def _devices() -> tuple[Mount, ...]:
    nodes = sorted(Path("/dev/dri").glob("renderD*"))[:1]
    if not Path("/dev/kfd").exists() or not nodes:
        return ()
    return tuple(Mount(path, str(path), device=True) for path in (Path("/dev/kfd"), *nodes))
