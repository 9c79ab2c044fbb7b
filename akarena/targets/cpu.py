"""The cpu target: HIP through our own header, Triton through its interpreter. It decides correctness, never speed."""

from __future__ import annotations

import platform
import shutil

from akarena import paths
from akarena.records.task import TargetName
from akarena.sandbox.base import Mount, Role
from akarena.targets import host
from akarena.targets.base import BuildRecipe, Device, DeviceFacts, EntryKind, Fp8, Provision, Python

_INTERPRETER_FAULTS = frozenset({"bf16", "fp8"})
"""Dtypes whose arithmetic Triton's interpreter gets wrong without saying so."""


class CpuTarget:
    """Any x86-64 or aarch64 Linux machine with g++ and torch."""

    name = TargetName.CPU
    measures_speed = False

    def missing_device(self) -> list[str]:
        """Return nothing: there is always a processor."""
        return []

    def missing(self) -> list[str]:
        """Return what this machine lacks."""
        lacks = []
        if shutil.which("g++") is None:
            lacks.append("g++ was not found (Debian: apt-get install g++)")
        return lacks + missing_packages()

    def device(self) -> Device:
        """Describe the processor."""
        return Device(architecture=platform.machine(), name=_processor(), driver="none")

    def device_nodes(self) -> tuple[Mount, ...]:
        """Return nothing."""
        return ()

    def settings(self) -> dict[str, str]:
        """Let Triton interpret."""
        return {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "2"}

    def facts(self) -> DeviceFacts:
        """Return the processor and the compiler."""
        return host.facts(self.device(), host.first_line("g++", "--version"))

    def python(self, role: Role) -> Python:
        """Return our own interpreter, whatever the role."""
        return host.HostPython()

    def compile(self, compiler: str, python: str, source: str) -> BuildRecipe:
        """Rewrite the launches, then compile with g++."""
        rewritten = "/tmp/kernel.cpp"
        rewrite = f"{python} -I -S {host.CODE}/chevrons.py /source/{source} {rewritten}"
        compile_ = (
            f"{compiler} -x c++ -std=c++17 -O2 -g1 -fPIC -shared -pthread -I {host.CODE}/include/cpu "
            f"-o /out/kernel.so {rewritten}"
        )
        headers = paths.package() / "targets" / "include" / "cpu"
        mounts = (
            host.mount(paths.package() / "targets" / "chevrons.py", f"{host.CODE}/chevrons.py"),
            host.mount(headers, f"{host.CODE}/include/cpu"),
        )
        return BuildRecipe(("/bin/sh", "-c", f"{rewrite} && {compile_}"), Provision(mounts, dict(host.PLAIN)))

    def build(self, source: str) -> BuildRecipe:
        """Build with the g++ of this machine."""
        recipe = self.compile("g++", str(host.base_python()), source)
        return host.with_mounts(recipe, (*host.system_mounts(), *host.python_mounts()))

    def native_worker(self) -> Provision:
        """Return the C++ library."""
        return Provision(host.cpp_library_mounts(), {"LD_LIBRARY_PATH": host.LIBRARIES})

    def torch_process(self) -> Provision:
        """Return Python with its packages; Triton interprets."""
        environment = {**self.settings(), "PATH": host.PLAIN["PATH"]}
        return Provision((*host.system_mounts(), *host.python_mounts()), environment)

    def fp8_dtype(self) -> Fp8:
        """OCP e4m3."""
        return "float8_e4m3fn"

    def is_verified(self, kind: EntryKind, dtypes: frozenset[str]) -> bool:
        """Only the interpreter is in doubt, and only with the small float formats."""
        return kind is not EntryKind.TRITON or not dtypes & _INTERPRETER_FAULTS


def missing_packages() -> list[str]:
    """Return what Python lacks for judging."""
    lacks = []
    for package in ("torch", "triton"):
        if not _is_installed(package):
            lacks.append(f"the package {package} is not installed (pip install 'akarena[local]')")
    return lacks


def _is_installed(package: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(package) is not None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123 (a pseudo file)
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
