"""The child process that imports a Triton source, calls its host function and writes the code objects.

Arguments: SOURCE ARCHITECTURE ENTRY ARGUMENTS_FILE OUT_FOLDER. Nothing that it writes is trusted by its parent.
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from .compile_triton import MANIFEST
from .triton_arguments import Argument, load_arguments
from .triton_stand_in import OnStandIn, Recorder, install

_MAX_CPU_BYTES = 1024**3


def main(argv: list[str]) -> int:
    """Compile what the host function launches; write ``N.hsaco`` for each kernel and the manifest last."""
    source, architecture, entry, arguments_file, out = argv
    _, arguments = load_arguments(Path(arguments_file))
    recorder = install(architecture)
    error = None
    try:
        _call(Path(source), architecture, entry, arguments, recorder)
    except Exception as problem:
        traceback.print_exc()
        error = f"{type(problem).__name__} for {architecture}: {problem}"
    _write(recorder, Path(out), error)
    return 0


def _call(source: Path, architecture: str, entry: str, arguments: list[Argument], recorder: Recorder) -> None:
    with OnStandIn("meta"):
        function = _load(source, entry)
        try:
            function(*_values(arguments, architecture, "meta"))
            return
        except (NotImplementedError, RuntimeError) as problem:
            # A host function that looks at values (.item(), .tolist()) needs tensors that have some.
            if "meta" not in str(problem) or _bytes(arguments) > _MAX_CPU_BYTES:
                raise
    recorder.launched.clear()
    with OnStandIn("cpu"):
        function(*_values(arguments, architecture, "cpu"))


def _load(source: Path, entry: str) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location("candidate", source)
    if spec is None or spec.loader is None:
        raise ImportError(f"{source.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    function = getattr(module, entry, None)
    if not callable(function):
        raise AttributeError(f"{source.name} has no function {entry!r}")
    return function  # type: ignore[no-any-return]


def _values(arguments: list[Argument], architecture: str, device: str) -> list[Any]:
    values: list[Any] = []
    for argument in arguments:
        if argument.dtype is None:
            values.append(argument.value)
        else:
            dtype = getattr(torch, argument.torch_dtype(architecture))
            values.append(torch.zeros(argument.shape, dtype=dtype, device=device))
    return values


def _bytes(arguments: list[Argument]) -> int:
    return sum(8 * math.prod(argument.shape) for argument in arguments if argument.dtype is not None)


def _write(recorder: Recorder, out: Path, error: str | None) -> None:
    kernels = []
    for index, launched in enumerate(recorder.launched.values()):
        metadata = launched.kernel.metadata
        (out / f"{index}.hsaco").write_bytes(launched.kernel.asm["hsaco"])
        kernels.append(
            {
                "lds_bytes": metadata.shared,
                "num_warps": metadata.num_warps,
                "num_stages": metadata.num_stages,
                "constants": launched.constants,
                "autotune_configs": launched.autotune_configs,
                "launches": launched.launches,
            }
        )
    (out / MANIFEST).write_text(json.dumps({"error": error, "kernels": kernels}), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
