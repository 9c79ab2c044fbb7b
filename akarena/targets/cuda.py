"""The cuda target: HIP through our header and nvcc, Triton and PyTorch as they are."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
from pathlib import Path

from akarena import paths
from akarena.errors import InfrastructureError
from akarena.records.task import TargetName
from akarena.sandbox.base import Mount, Role
from akarena.targets import host
from akarena.targets.base import BuildRecipe, Device, DeviceFacts, EntryKind, Fp8, Provision, Python
from akarena.targets.cpu import missing_packages

_DRIVER_PATTERNS = (
    "libcuda.so*",
    "libnvidia-ptxjitcompiler.so*",
    "libnvidia-nvvm*.so*",
    "libnvidia-gpucomp.so*",
    "libnvidia-ml.so*",
)


class CudaTarget:
    """One NVIDIA GPU with its driver, nvcc, torch and Triton."""

    name = TargetName.CUDA
    measures_speed = True

    def missing_device(self) -> list[str]:
        """Return whether there is a device that can be asked."""
        lacks = []
        if not self.device_nodes():
            lacks.append("no /dev/nvidia0 and /dev/nvidiactl")
        if shutil.which("nvidia-smi") is None:
            lacks.append("nvidia-smi was not found")
        return lacks

    def missing(self) -> list[str]:
        """Return what this machine lacks."""
        lacks = self.missing_device()
        if self.device_nodes() and _driver_folder() is None:
            lacks.append("libcuda.so.1 cannot be loaded (the NVIDIA driver's libraries)")
        if shutil.which("nvcc") is None and not Path("/usr/local/cuda/bin/nvcc").exists():
            lacks.append("nvcc was not found (the CUDA toolkit)")
        return lacks + missing_packages()

    def device(self) -> Device:
        """Return what nvidia-smi says."""
        line = host.first_line("nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader")
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 3:
            raise InfrastructureError(f"nvidia-smi does not describe a device: {line!r}")
        name, driver, capability = parts
        return Device(architecture=f"sm_{capability.replace('.', '')}", name=name, driver=driver)

    def device_nodes(self) -> tuple[Mount, ...]:
        """Return the device nodes, or nothing where there is no device."""
        needed = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")
        if not all(Path(path).exists() for path in needed[:2]):
            return ()
        return tuple(Mount(Path(path), path, device=True) for path in needed if Path(path).exists())

    def settings(self) -> dict[str, str]:
        """Pass a choice of device on."""
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        return {"CUDA_VISIBLE_DEVICES": visible} if visible else {}

    def facts(self) -> DeviceFacts:
        """Return what nvidia-smi and nvcc say."""
        return host.facts(self.device(), _nvcc_release())

    def python(self, role: Role) -> Python:
        """Return our own interpreter, whatever the role."""
        return host.HostPython()

    def compile(self, compiler: str, python: str, source: str) -> BuildRecipe:
        """Compile with nvcc for the device at hand."""
        headers = paths.package() / "targets" / "include" / "cuda"
        argv = (
            compiler,
            *("-x", "cu", "-O3", "-std=c++17", f"-arch={self.device().architecture}"),
            *("--cudart", "shared", "-shared", "-Xcompiler", "-fPIC"),
            *("-I", f"{host.CODE}/include/cuda", "-o", "/out/kernel.so", f"/source/{source}"),
        )
        path = f"{Path(compiler).parent}:{host.PLAIN['PATH']}"
        mounts = (host.mount(headers, f"{host.CODE}/include/cuda"),)
        return BuildRecipe(argv, Provision(mounts, {**host.PLAIN, "PATH": path}))

    def build(self, source: str) -> BuildRecipe:
        """Build with the toolkit of this machine."""
        nvcc = _nvcc()
        recipe = self.compile(str(nvcc), str(host.base_python()), source)
        return host.with_mounts(recipe, (*host.system_mounts(), *_toolkit_mounts(nvcc)))

    def native_worker(self) -> Provision:
        """Return the C++ library, the CUDA runtime, the driver's own libraries and the device; no BLAS."""
        driver = _driver_folder()
        assert driver is not None
        files = sorted({path for pattern in _DRIVER_PATTERNS for path in driver.glob(pattern)})
        library = _runtime_library()
        mounts = (
            *host.cpp_library_mounts(),
            *(host.mount(path, f"{host.LIBRARIES}/{path.name}") for path in (library, *files)),
            *host.library_mounts(map(str, (library, *files))),
            *self.device_nodes(),
        )
        environment = host.runtime_environment(f"{host.LIBRARIES}/{library.name}", "cuda")
        return Provision(mounts, {**self.settings(), **environment, "LD_LIBRARY_PATH": host.LIBRARIES})

    def torch_process(self) -> Provision:
        """Return Python with its packages, the toolkit, the driver and the device."""
        driver = _driver_folder()
        assert driver is not None
        mounts = (
            *host.system_mounts(),
            *host.python_mounts(),
            *_toolkit_mounts(_nvcc()),
            *(() if driver.is_relative_to("/usr") else (host.mount(driver),)),
            *self.device_nodes(),
        )
        library = _runtime_library()
        environment = {
            **self.settings(),
            **host.runtime_environment(str(library), "cuda"),
            "LD_LIBRARY_PATH": f"{driver}",
            "PATH": f"{_nvcc().parent}:/usr/local/bin:/usr/bin:/bin",
        }
        return Provision(mounts, environment)

    def fp8_dtype(self) -> Fp8:
        """OCP e4m3."""
        return "float8_e4m3fn"

    def is_verified(self, kind: EntryKind, dtypes: frozenset[str]) -> bool:
        """Everything runs on the device itself."""
        return True


@functools.cache
def _driver_folder() -> Path | None:
    """Find the driver's libraries by loading libcuda and looking where it came from."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if "/libcuda.so" in path:
            return Path(path).parent
    return None


def _nvcc() -> Path:
    found = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    # A wrapper script on PATH may call the real one; the toolkit's folder is what we need.
    for candidate in (Path(found).resolve(), *sorted(Path("/usr/local").glob("cuda*/bin/nvcc"), reverse=True)):
        if (candidate.parent.parent / "include" / "cuda_runtime.h").exists() or list(
            candidate.parent.parent.glob("targets/*/include/cuda_runtime.h")
        ):
            return candidate
    raise InfrastructureError(f"nvcc ({found}) has no toolkit beside it")


def _toolkit_mounts(nvcc: Path) -> tuple[Mount, ...]:
    toolkit = nvcc.parent.parent
    return () if toolkit.is_relative_to("/usr") else (host.mount(toolkit),)


def _runtime_library() -> Path:
    toolkit = _nvcc().parent.parent
    for pattern in ("lib64/libcudart.so.*", "targets/*/lib/libcudart.so.*", "lib/libcudart.so.*"):
        # The soname (libcudart.so.13) is what a kernel asks for, so that name is wanted, not the full version.
        found = sorted(toolkit.glob(pattern), key=lambda path: len(path.name))
        if found:
            return found[0]
    raise InfrastructureError(f"no libcudart.so in {toolkit}")


def _nvcc_release() -> str:
    import subprocess

    shown = subprocess.run([str(_nvcc()), "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"release [^\n]+", shown)
    return f"nvcc {match.group(0)}" if match else "nvcc, version unknown"
