"""Stands in for an AMD GPU while a Triton host function runs, so that kernels are compiled and never launched.

Only to be imported in a process that ends after one source: it changes classes of Triton and functions of torch.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
import triton
from torch.overrides import TorchFunctionMode
from triton.backends.compiler import GPUTarget
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from .toolchain import LDS_LIMIT_BYTES

_WAVE_SIZE = 64
_COMPUTE_UNITS = {"gfx942": 304, "gfx950": 256}
_GPU = torch.device("cuda", 0)
_IS_CUDA: Any = torch.Tensor.is_cuda
_DEVICE: Any = torch.Tensor.device


@dataclass
class Launched:
    """A compiled kernel, how often it was launched, and how many configurations its autotuner had."""

    kernel: Any
    constants: dict[str, str]
    autotune_configs: int
    launches: int = 1


class Recorder:
    """Compiles instead of launching, and keeps what was compiled, in the order of the first launches."""

    def __init__(self) -> None:
        self.launched: dict[str, Launched] = {}
        self._autotune_configs = 1

    def install(self) -> None:
        """Take the place of Triton's launcher and autotuner."""
        run, tune = JITFunction.run, Autotuner.run

        def compile_only(function: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
            del warmup
            try:
                # Triton's own way to compile for these arguments without a launch.
                kernel = run(function, *args, grid=grid, warmup=True, **kwargs)
            except Exception:
                # The host function may swallow it; the log must not.
                traceback.print_exc(file=sys.stderr)
                raise
            self._record(kernel.result() if hasattr(kernel, "result") else kernel)
            return kernel

        def first_config(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            every = tuner.configs
            tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
            tuner.configs = list(tuner.prune_configs(kwargs))[:1] if len(every) > 1 else every
            self._autotune_configs = len(every)
            try:
                return tune(tuner, *args, **kwargs)
            finally:
                tuner.configs = every
                self._autotune_configs = 1

        JITFunction.run = compile_only
        Autotuner.run = first_config

    def _record(self, kernel: Any) -> None:
        if kernel.hash in self.launched:
            self.launched[kernel.hash].launches += 1
            return
        names = kernel.src.fn.arg_names
        constants = {names[path[0]]: str(value) for path, value in kernel.src.constants.items()}
        self.launched[kernel.hash] = Launched(kernel, constants, self._autotune_configs)


class StandInDriver:
    """What Triton asks of a driver before a launch."""

    def __init__(self, architecture: str) -> None:
        self._target = GPUTarget("hip", architecture, _WAVE_SIZE)
        properties = {
            "max_shared_mem": LDS_LIMIT_BYTES[architecture],
            "multiprocessor_count": _COMPUTE_UNITS[architecture],
            "warpSize": _WAVE_SIZE,
        }
        self.utils = SimpleNamespace(get_device_properties=lambda device: properties)

    def get_current_target(self) -> Any:
        """Return what Triton compiles for."""
        return self._target

    def get_current_device(self) -> int:
        """Return the index of the only device."""
        return 0

    def get_current_stream(self, device: int) -> int:
        """Return the default stream."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """Return the only device, as torch names it."""
        return _GPU


class OnStandIn(TorchFunctionMode):
    """Makes tensors on ``device`` look as if they were on a GPU, and puts there what is asked for on a GPU."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = torch.device(device)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func == _IS_CUDA.__get__:
            return True
        if func == _DEVICE.__get__:
            return _GPU
        if func in (torch.Tensor.cuda, torch.Tensor.get_device):
            return args[0] if func is torch.Tensor.cuda else 0
        moved = {name: self._move(value) for name, value in (kwargs or {}).items()}
        return func(*(self._move(value) for value in args), **moved)

    def _move(self, value: Any) -> Any:
        named = isinstance(value, str) and value.partition(":")[0] == "cuda"
        return self._device if named or (isinstance(value, torch.device) and value.type == "cuda") else value


def install(architecture: str) -> Recorder:
    """Put the stand-ins in place for ``architecture`` and return the recorder of launches."""
    triton.runtime.driver.set_active(StandInDriver(architecture))
    major, minor = int(architecture[3]), int(architecture[4])
    properties = SimpleNamespace(
        name=architecture,
        gcnArchName=architecture,
        multi_processor_count=_COMPUTE_UNITS[architecture],
        shared_memory_per_block=LDS_LIMIT_BYTES[architecture],
        warp_size=_WAVE_SIZE,
        major=major,
        minor=minor,
    )
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "synchronize": lambda device=None: None,
        "current_stream": lambda device=None: SimpleNamespace(cuda_stream=0),
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: (major, minor),
        "get_device_name": lambda device=None: architecture,
        "device": lambda device: contextlib.nullcontext(),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    # Host code asks this to tell AMD from NVIDIA; its value is not used otherwise.
    torch.version.hip = "7.0"
    recorder = Recorder()
    recorder.install()
    return recorder
