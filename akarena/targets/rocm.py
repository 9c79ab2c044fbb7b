"""The rocm target: hipcc, Triton and PyTorch of a ROCm installation.

It was written against the documented interfaces and has not been run on an AMD device by us; README says so.
"""

from __future__ import annotations

import ctypes.util
import os
import re
import shutil
from pathlib import Path

from akarena.errors import InfrastructureError
from akarena.records.task import TargetName
from akarena.sandbox.base import Mount, Role
from akarena.targets import host
from akarena.targets.base import BuildRecipe, Device, DeviceFacts, EntryKind, Fp8, Provision, Python
from akarena.targets.cpu import missing_packages

_TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")


class RocmTarget:
    """One AMD Instinct GPU with ROCm, torch and Triton."""

    name = TargetName.ROCM
    measures_speed = True

    def missing_device(self) -> list[str]:
        """Return whether there is a device."""
        return [] if self.device_nodes() else ["no /dev/kfd and /dev/dri/renderD*"]

    def missing(self) -> list[str]:
        """Return what this machine lacks."""
        lacks = self.missing_device()
        if _rocm() is None:
            lacks.append("hipcc was not found (ROCm, usually /opt/rocm)")
        return lacks + missing_packages()

    def device(self) -> Device:
        """Return what the kernel driver says; no program of ROCm is needed on the machine itself."""
        return Device(architecture=_architecture(_TOPOLOGY), name=_product_name(), driver=_driver_version())

    def device_nodes(self) -> tuple[Mount, ...]:
        """Return the nodes of the driver and of the first device, or nothing where there is none."""
        nodes = sorted(Path("/dev/dri").glob("renderD*"))[:1]
        if not Path("/dev/kfd").exists() or not nodes:
            return ()
        return tuple(Mount(path, str(path), device=True) for path in (Path("/dev/kfd"), *nodes))

    def settings(self) -> dict[str, str]:
        """Return nothing: the nodes decide which device is seen."""
        return {}

    def facts(self) -> DeviceFacts:
        """Return what the driver and hipcc say."""
        return host.facts(self.device(), host.first_line(str(_hipcc()), "--version"))

    def python(self, role: Role) -> Python:
        """Return our own interpreter, whatever the role."""
        return host.HostPython()

    def compile(self, compiler: str, python: str, source: str) -> BuildRecipe:
        """Compile with hipcc for the device at hand."""
        argv = (
            compiler,
            *("-x", "hip", "-O3", "-std=c++17", f"--offload-arch={self.device().architecture}", "-fPIC", "-shared"),
            *("-o", "/out/kernel.so", f"/source/{source}"),
        )
        path = f"{Path(compiler).parent}:{host.PLAIN['PATH']}"
        return BuildRecipe(argv, Provision((), {**host.PLAIN, "PATH": path, "HIP_PLATFORM": "amd"}))

    def build(self, source: str) -> BuildRecipe:
        """Build with the ROCm of this machine."""
        recipe = self.compile(str(_hipcc()), str(host.base_python()), source)
        return host.with_mounts(recipe, (*host.system_mounts(), *_rocm_mounts()))

    def native_worker(self) -> Provision:
        """Return the C++ library, the HIP runtime with what it needs, and the device; no BLAS."""
        library = _runtime_library()
        mounts = (
            *host.cpp_library_mounts(),
            host.mount(library, f"{host.LIBRARIES}/{library.name}"),
            *host.library_mounts([str(library)]),
            *self.device_nodes(),
        )
        environment = host.runtime_environment(f"{host.LIBRARIES}/{library.name}", "hip")
        return Provision(mounts, {**environment, "LD_LIBRARY_PATH": host.LIBRARIES})

    def torch_process(self) -> Provision:
        """Return Python with its packages, ROCm and the device."""
        mounts = (*host.system_mounts(), *host.python_mounts(), *_rocm_mounts(), *self.device_nodes())
        environment = {
            **host.runtime_environment(str(_runtime_library()), "hip"),
            "PATH": f"{_hipcc().parent}:/usr/local/bin:/usr/bin:/bin",
        }
        return Provision(mounts, environment)

    def fp8_dtype(self) -> Fp8:
        """FNUZ e4m3 on gfx942, OCP e4m3 on later ones."""
        return "float8_e4m3fnuz" if self.device().architecture == "gfx942" else "float8_e4m3fn"

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


def _architecture(topology: Path) -> str:
    """Return the first device's architecture from the driver's topology, where 90402 means gfx942.

    Raises:
        InfrastructureError: It names no device.
    """
    for path in sorted(topology.glob("*/properties"), key=lambda path: int(path.parent.name)):
        version = re.search(r"^gfx_target_version (\d+)$", path.read_text(), flags=re.MULTILINE)
        number = int(version.group(1)) if version else 0
        if number:
            major, minor, step = number // 10000, number // 100 % 100, number % 100
            return f"gfx{major}{minor:x}{step:x}"
    raise InfrastructureError(f"{topology}: names no device with a gfx architecture (the amdgpu driver)")


def _product_name() -> str:
    for path in sorted(Path("/sys/class/drm").glob("card*/device/product_name")):
        name = path.read_text().strip()
        if name:
            return name
    return "unknown"


def _driver_version() -> str:
    path = Path("/sys/module/amdgpu/version")
    return path.read_text().strip() if path.exists() else "unknown"
