"""The three kinds of kernel: a C symbol of a shared library, a Triton host function, an eager PyTorch module."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from akarena.worker.memory import Arena
from akarena.worker.runtime import DeviceRuntimeError, Runtime


class EntryError(Exception):
    """The kernel returned an error code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the entry returned {code}")
        self.code = code


class EntryMissingError(Exception):
    """The file has no such entry."""


class NotCapturableError(Exception):
    """The work could not be recorded into a graph."""


class Entry(Protocol):
    """One kernel, ready to be called on prepared sets of arguments."""

    def prepare(self, arena: Arena, arguments: list[dict[str, Any]], sets: int) -> None:
        """Bind the arguments of ``sets`` calls."""

    def call(self, index: int, order_seed: int) -> None:
        """Run one call, outputs included, and wait for it."""

    def capture(self, sets: int) -> None:
        """Record one call on each of the first ``sets`` sets, each by itself."""

    def chain(self, orders: list[list[int]]) -> None:
        """Put recorded calls into what replays run, one after another in each of these orders."""

    def replay(self, which: int) -> None:
        """Run the calls of one of the orders and wait for them."""

    def plain(self, order: list[int]) -> None:
        """Run one call on each of these sets, unrecorded, and wait for each: they must not overlap."""


_C_VALUES: dict[str, Callable[[Any], Any]] = {"int": ctypes.c_int, "float": ctypes.c_float}


class NativeEntry:
    """``extern "C" int NAME(..., stream)`` of a shared library."""

    def __init__(self, path: str, name: str, runtime: Runtime | None) -> None:
        library = ctypes.CDLL(path)
        try:
            self._function = getattr(library, name)
        except AttributeError:
            raise EntryMissingError(name) from None
        self._function.restype = ctypes.c_int
        self._set_order_seed = getattr(library, "hip_on_cpu_set_order_seed", None)
        self._runtime = runtime
        self._stream = runtime.new_stream() if runtime else 0
        self._calls: list[tuple[Any, ...]] = []
        self._graphs: list[int] = []
        self._executables: list[int] = []

    def prepare(self, arena: Arena, arguments: list[dict[str, Any]], sets: int) -> None:
        """Bind pointers and values."""
        self._drop_graphs()
        self._calls = []
        for index in range(sets):
            bound: list[Any] = []
            for argument in arguments:
                if argument["kind"] == "tensor":
                    bound.append(ctypes.c_void_p(arena.address + argument["base"] + index * argument["stride"]))
                else:
                    bound.append(_C_VALUES[argument["kind"]](argument["value"]))
            self._calls.append((*bound, ctypes.c_void_p(self._stream)))

    def call(self, index: int, order_seed: int) -> None:
        """Run one call; the order of threads follows the seed on the cpu target."""
        if self._set_order_seed is not None:
            self._set_order_seed(ctypes.c_ulonglong(order_seed))
        self._run(index)
        self._wait()

    def capture(self, sets: int) -> None:
        """Record the calls."""
        if self._runtime is None:
            raise NotCapturableError("there are no graphs on this target")
        self._drop_graphs()
        try:
            for index in range(sets):
                self._graphs.append(self._runtime.capture(self._stream, functools.partial(self._run, index)))
        except (DeviceRuntimeError, EntryError) as error:
            self._runtime.last_error()
            raise NotCapturableError(str(error)) from None

    def chain(self, orders: list[list[int]]) -> None:
        """Chain graphs."""
        assert self._runtime is not None
        self._drop_executables()
        for order in orders:
            graphs = [self._graphs[index] for index in order]
            self._executables.append(_chained(self._runtime, graphs, self._stream))

    def replay(self, which: int) -> None:
        """Replay a chain."""
        assert self._runtime is not None
        self._runtime.launch_graph(self._executables[which], self._stream)
        self._runtime.synchronize()

    def plain(self, order: list[int]) -> None:
        """Run without a graph."""
        for index in order:
            self._run(index)
            self._wait()

    def _run(self, index: int) -> None:
        code = self._function(*self._calls[index])
        if code:
            raise EntryError(code)

    def _wait(self) -> None:
        if self._runtime is not None:
            code = self._runtime.last_error()
            if code:
                raise DeviceRuntimeError("launch", code, self._runtime.error_text(code))
            self._runtime.synchronize()

    def _drop_graphs(self) -> None:
        self._drop_executables()
        if self._runtime is not None:
            for graph in self._graphs:
                self._runtime.destroy_graph(graph)
        self._graphs = []

    def _drop_executables(self) -> None:
        if self._runtime is not None:
            for executable in self._executables:
                self._runtime.destroy_executable(executable)
        self._executables = []


def _chained(runtime: Runtime, graphs: list[int], stream: int) -> int:
    try:
        return runtime.chain(graphs, stream)
    except DeviceRuntimeError as error:
        runtime.last_error()
        raise NotCapturableError(str(error)) from None


_TORCH_DTYPES = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "int64": "int64",
    "int32": "int32",
    "int8": "int8",
    "uint8": "uint8",
}


class _TorchEntry:
    """What the two kinds that run on torch share: tensors over the arena, and torch's own graphs."""

    def __init__(self, path: str, name: str, runtime: Runtime | None, fp8: str) -> None:
        import torch

        self._torch = torch
        self._runtime = runtime
        self._stream: Any = torch.cuda.Stream() if runtime else None  # type: ignore[no-untyped-call]
        self._dtypes = {key: getattr(torch, value) for key, value in _TORCH_DTYPES.items()}
        self._dtypes["fp8"] = getattr(torch, fp8)
        self._function = _import_function(path, name)
        self._calls: list[tuple[list[Any], list[Any]]] = []
        self._graphs: list[Any] = []
        self._executables: list[int] = []

    def prepare(self, arena: Arena, arguments: list[dict[str, Any]], sets: int) -> None:
        """Lay tensors over the arena: for each set, all arguments in order, and the outputs."""
        self._drop_graphs()
        device = None if arena.view is not None else self._whole(arena)
        self._calls = []
        for index in range(sets):
            bound: list[Any] = []
            outputs: list[Any] = []
            for argument in arguments:
                if argument["kind"] != "tensor":
                    bound.append(argument["value"])
                    continue
                shape, dtype = argument["shape"], self._dtypes[argument["dtype"]]
                offset, size = argument["base"] + index * argument["stride"], math.prod(shape) * dtype.itemsize
                if device is None:
                    # A storage of its own: Triton's interpreter touches all of a tensor's storage, guards included.
                    flat = self._torch.frombuffer(arena.view, dtype=self._torch.uint8, count=size, offset=offset)
                else:
                    flat = device[offset : offset + size]
                tensor = flat.view(dtype).view(shape)
                bound.append(tensor)
                if argument["output"]:
                    outputs.append(tensor)
            self._calls.append((bound, outputs))

    def _whole(self, arena: Arena) -> Any:
        interface = {"data": (arena.address, False), "shape": (arena.size,), "typestr": "|u1", "version": 3}
        holder = type("Holder", (), {"__cuda_array_interface__": interface})()
        return self._torch.as_tensor(holder, device="cuda")

    def call(self, index: int, order_seed: int) -> None:
        """Run one call and leave its results in the output buffers."""
        bound, outputs = self._calls[index]
        with self._torch.no_grad():
            self._run_kept(bound, outputs)
        self._wait()

    def capture(self, sets: int) -> None:
        """Record each call into a graph of torch's; all take their memory from one pool."""
        if self._runtime is None:
            raise NotCapturableError("there are no graphs on this target")
        self._drop_graphs()
        pool = self._torch.cuda.graph_pool_handle()
        try:
            with self._torch.no_grad(), self._torch.cuda.stream(self._stream):
                for bound, _ in self._calls[:sets]:
                    self._graphs.append(self._captured(bound, pool))
        except Exception as error:
            self._wait()
            raise NotCapturableError(str(error)) from None

    def _captured(self, bound: list[Any], pool: Any) -> Any:
        graph = self._torch.cuda.CUDAGraph(keep_graph=True)
        graph.capture_begin(pool=pool, capture_error_mode="thread_local")
        try:
            self._run(bound)
        finally:
            graph.capture_end()
        return graph

    def chain(self, orders: list[list[int]]) -> None:
        """Chain the graphs."""
        assert self._runtime is not None
        self._drop_executables()
        for order in orders:
            graphs = [self._graphs[index].raw_cuda_graph() for index in order]
            self._executables.append(_chained(self._runtime, graphs, self._stream.cuda_stream))

    def replay(self, which: int) -> None:
        """Replay a chain."""
        assert self._runtime is not None
        self._runtime.launch_graph(self._executables[which], self._stream.cuda_stream)
        self._wait()

    def plain(self, order: list[int]) -> None:
        """Run without a graph."""
        with self._torch.no_grad():
            for index in order:
                self._run(self._calls[index][0])
                self._wait()

    def _run(self, bound: list[Any]) -> Any:
        return self._function(*bound)

    def _run_kept(self, bound: list[Any], outputs: list[Any]) -> None:
        self._run(bound)

    def _wait(self) -> None:
        if self._runtime is not None:
            self._torch.cuda.synchronize()

    def _drop_graphs(self) -> None:
        self._drop_executables()
        self._graphs = []

    def _drop_executables(self) -> None:
        if self._runtime is not None:
            for executable in self._executables:
                self._runtime.destroy_executable(executable)
        self._executables = []


class TritonEntry(_TorchEntry):
    """``NAME(inputs..., outputs...)`` of a Python file; it fills the outputs."""

    def __init__(self, path: str, name: str, runtime: Runtime | None, fp8: str) -> None:
        if runtime is None:
            import triton

            triton.runtime.driver.set_active(_NoDevice())
        super().__init__(path, name, runtime, fp8)


class _NoDevice:
    """What an autotuner asks Triton's driver for, where kernels are interpreted: how long a call takes."""

    def get_benchmarker(self) -> Callable[..., list[float]]:
        def milliseconds(call: Callable[[], object], quantiles: list[float] | None = None, **_: object) -> list[float]:
            started = time.perf_counter()
            call()
            return [(time.perf_counter() - started) * 1e3] * len(quantiles or (0.5,))

        return milliseconds


class EagerEntry(_TorchEntry):
    """``forward(inputs...)`` of a PyTorch module; it returns fresh tensors, which only a checked call copies out."""

    def prepare(self, arena: Arena, arguments: list[dict[str, Any]], sets: int) -> None:
        """Lay tensors over the arena; an eager call takes no outputs and no sizes."""
        super().prepare(arena, arguments, sets)
        keep = [argument["kind"] == "float" or not argument.get("output", True) for argument in arguments]
        self._calls = [
            ([value for value, kept in zip(bound, keep, strict=True) if kept], outputs)
            for bound, outputs in self._calls
        ]

    def _run_kept(self, bound: list[Any], outputs: list[Any]) -> None:
        results = self._run(bound)
        if not isinstance(results, tuple):
            results = (results,)
        for output, result in zip(outputs, results, strict=True):
            if result.shape != output.shape or result.dtype != output.dtype:
                raise TypeError(f"forward gives {result.dtype} {tuple(result.shape)}, the task says otherwise")
            output.copy_(result)


def _import_function(path: str, name: str) -> Any:
    spec = importlib.util.spec_from_file_location("kernel", Path(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Triton finds the source of a kernel through its module.
    sys.modules["kernel"] = module
    spec.loader.exec_module(module)
    try:
        return getattr(module, name)
    except AttributeError:
        raise EntryMissingError(name) from None
