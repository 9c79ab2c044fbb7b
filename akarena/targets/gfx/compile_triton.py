"""Compiles every Triton kernel that a host function launches, for one architecture.

The source is Python, so compiling it means running it. That happens in a child process of its own: a compiler that
aborts or a candidate that prints takes nothing with it, and this process reads files only.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .bounds import describe_exit, printable, read_regular, run_logged
from .inspect import MAX_CODE_OBJECT_BYTES, MAX_KERNELS, InvalidCodeObjectError, read_kernels
from .kernels import Compiled, KernelResources, Launch
from .toolchain import LDS_LIMIT_BYTES, Unavailable, find_triton

_PACKAGE = __package__
# The folder that the package is imported from, under whichever name.
_IMPORT_ROOT = Path(__file__).absolute().parents[len(_PACKAGE.split("."))]
MANIFEST = "kernels.json"
_MAX_MANIFEST_BYTES = 1024 * 1024
_MAX_CONSTANTS = 64
_MAX_TEXT = 120
_MAX_REASON = 400
_PROBE_TIMEOUT_S = 120.0


def find_triton_versions() -> dict[str, str]:
    """Return the versions of Triton and torch for the record.

    Raises:
        Unavailable: When one of them is not installed.
    """
    _, triton = find_triton()
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError as error:
        raise Unavailable("torch is not installed (a Triton source needs it for its tensors)") from error
    return {"triton": triton, "torch": torch, "python": sys.version.split()[0]}


def compile_triton(
    source: Path, architecture: str, out: Path, entry: str, arguments: Path, timeout_s: float = 300.0
) -> Compiled:
    """Run ``entry`` of ``source`` once without launching anything, and compile what it would have launched.

    Args:
        source: A Python file with ``@triton.jit`` kernels and the host function.
        architecture: One of ``LDS_LIMIT_BYTES``.
        out: An existing folder; the code objects go to its folder ``ARCHITECTURE``.
        entry: The name of the host function.
        arguments: A JSON file with the arguments of the host function, see ``triton_arguments``.
        timeout_s: Limit for the whole, in seconds.

    Raises:
        Unavailable: When Triton or torch cannot be imported, which is no fault of the source.
    """
    folder = out / architecture
    # A failed compilation must not leave an older answer in place.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with tempfile.TemporaryDirectory() as cache:
        environment = _environment(Path(cache))
        command = [sys.executable, "-P", "-m", f"{_PACKAGE}.triton_child", str(source.resolve()), architecture, entry]
        command += [str(arguments.resolve()), str(folder.resolve())]
        code, log = run_logged(command, Path(cache), timeout_s, environment)
        manifest = _read_manifest(folder / MANIFEST)
        if manifest is None:
            # Asked only now, and without the source, so that a candidate cannot claim that Triton is missing.
            _require_imports(environment)
            return Compiled(f"the Triton compiler {describe_exit(code, timeout_s)} for {architecture}", log)
    try:
        kernels, code_objects = _read_code_objects(manifest["kernels"], folder, architecture)
    except (InvalidCodeObjectError, OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        return Compiled(f"the code objects for {architecture} cannot be read: {error}"[:_MAX_REASON], log)
    return Compiled(_failure(manifest.get("error"), kernels, architecture), log, kernels, code_objects)


def _failure(error: object, kernels: list[KernelResources], architecture: str) -> str | None:
    if error is not None:
        return printable(" ".join(str(error)[:_MAX_REASON].split()))
    if not kernels:
        return f"the host function launched no Triton kernel for {architecture}"
    limit = LDS_LIMIT_BYTES[architecture]
    for kernel in kernels:
        # Triton itself finds this out only when it loads the kernel on the device.
        if kernel.lds_bytes > limit:
            return f"kernel {kernel.name} needs {kernel.lds_bytes} bytes of LDS, {architecture} has {limit}"
    return None


def _environment(cache: Path) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    paths = [str(_IMPORT_ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRITON_CACHE_DIR": str(cache),
    }


def _require_imports(environment: dict[str, str]) -> None:
    command = [sys.executable, "-P", "-c", "import torch, triton"]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"importing triton and torch takes longer than {_PROBE_TIMEOUT_S:g} s") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unavailable(f"triton and torch cannot be imported: {last[:200]}")


def _read_manifest(path: Path) -> dict[str, Any] | None:
    try:
        manifest = json.loads(read_regular(path, _MAX_MANIFEST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return manifest if isinstance(manifest, dict) and isinstance(manifest.get("kernels"), list) else None


def _read_code_objects(entries: list[Any], folder: Path, architecture: str) -> tuple[list[KernelResources], list[Path]]:
    kernels: list[KernelResources] = []
    code_objects: list[Path] = []
    for index, entry in enumerate(entries[:MAX_KERNELS]):
        path = folder / f"{index}.hsaco"
        launch = Launch(
            num_warps=_count(entry["num_warps"]),
            num_stages=_count(entry["num_stages"]),
            constants={
                str(k)[:_MAX_TEXT]: str(v)[:_MAX_TEXT] for k, v in list(entry["constants"].items())[:_MAX_CONSTANTS]
            },
            autotune_configs=_count(entry["autotune_configs"]),
            launches=_count(entry["launches"]),
        )
        # Triton's LDS is asked for at launch, so the code object itself says 0.
        at_launch = _count(entry["lds_bytes"])
        for kernel in read_kernels(read_regular(path, MAX_CODE_OBJECT_BYTES), architecture):
            kernels.append(dataclasses.replace(kernel, lds_bytes=kernel.lds_bytes + at_launch, launch=launch))
        code_objects.append(path)
    return kernels, code_objects


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**32:
        raise ValueError(f"{str(value)[:40]!r} is no count")
    return value
