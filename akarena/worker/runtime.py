"""The GPU runtime through ctypes: raw allocations, inter-process handles, streams and graphs.

One class serves CUDA and HIP, whose C functions differ in their prefix only. The judge and the native worker both use
it, so that neither needs torch's allocator for memory that is shared.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

HANDLE_BYTES = 64
_LAZY_PEER_ACCESS = 1
_CAPTURE_THREAD_LOCAL = 1


class DeviceRuntimeError(Exception):
    """A call of the GPU runtime failed."""

    def __init__(self, function: str, code: int, text: str) -> None:
        super().__init__(f"{function}: error {code} ({text})")
        self.code = code


class _Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * HANDLE_BYTES)]


class Runtime:
    """The runtime library of the device.

    Args:
        library: Path or name of ``libcudart`` or ``libamdhip64``.
        prefix: ``cuda`` or ``hip``.
    """

    def __init__(self, library: str, prefix: str) -> None:
        self._library = ctypes.CDLL(library)
        self._prefix = prefix

    def _call(self, name: str, *arguments: object) -> None:
        code = self.status(name, *arguments)
        if code:
            raise DeviceRuntimeError(f"{self._prefix}{name}", code, self.error_text(code))

    def status(self, name: str, *arguments: object) -> int:
        """Call a function of the runtime and return its error code."""
        function: Callable[..., int] = getattr(self._library, self._prefix + name)
        return function(*arguments)

    def error_text(self, code: int) -> str:
        """Return the runtime's words for an error code."""
        function = getattr(self._library, f"{self._prefix}GetErrorString")
        function.restype = ctypes.c_char_p
        text: bytes | None = function(code)
        return (text or b"unknown error").decode(errors="replace")

    def last_error(self) -> int:
        """Return and clear the error of the last launch."""
        return self.status("GetLastError")

    def set_device(self, index: int = 0) -> None:
        """Choose the device and make its context."""
        self._call("SetDevice", ctypes.c_int(index))
        self._call("Free", ctypes.c_void_p(0))

    def allocate(self, size: int) -> int:
        """Allocate device memory of its own; returns the address."""
        pointer = ctypes.c_void_p()
        self._call("Malloc", ctypes.byref(pointer), ctypes.c_size_t(size))
        return int(pointer.value or 0)

    def free(self, address: int) -> None:
        """Free what :meth:`allocate` returned."""
        self._call("Free", ctypes.c_void_p(address))

    def clear(self, address: int, size: int) -> None:
        """Set device memory to zero, and wait for it."""
        self._call("Memset", ctypes.c_void_p(address), ctypes.c_int(0), ctypes.c_size_t(size))
        self.synchronize()

    def export(self, address: int) -> bytes:
        """Return the handle by which another process of the same user namespace can map the allocation."""
        handle = _Handle()
        self._call("IpcGetMemHandle", ctypes.byref(handle), ctypes.c_void_p(address))
        return bytes(handle)

    def attach(self, handle: bytes) -> int:
        """Map an allocation of another process; returns its address here."""
        pointer = ctypes.c_void_p()
        self._call(
            "IpcOpenMemHandle",
            ctypes.byref(pointer),
            _Handle.from_buffer_copy(handle),
            ctypes.c_uint(_LAZY_PEER_ACCESS),
        )
        return int(pointer.value or 0)

    def new_stream(self) -> int:
        """Create a stream; returns its handle."""
        stream = ctypes.c_void_p()
        self._call("StreamCreate", ctypes.byref(stream))
        return int(stream.value or 0)

    def synchronize(self) -> None:
        """Wait for all work of this process on the device, side streams included."""
        self._call("DeviceSynchronize")

    def capture(self, stream: int, work: Callable[[], None]) -> int:
        """Record ``work`` on ``stream`` into a graph; returns its handle.

        Raises:
            DeviceRuntimeError: The work cannot be captured, or forks to a stream that it does not join.
        """
        self._call("StreamBeginCapture", ctypes.c_void_p(stream), ctypes.c_int(_CAPTURE_THREAD_LOCAL))
        graph = ctypes.c_void_p()
        try:
            work()
        finally:
            # The capture must be ended whatever happened, or the stream stays unusable.
            code = self.status("StreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
        if code:
            self.last_error()
            raise DeviceRuntimeError(f"{self._prefix}StreamEndCapture", code, self.error_text(code))
        return int(graph.value or 0)

    def chain(self, graphs: Sequence[int], stream: int) -> int:
        """Put recorded graphs one after another, each behind the whole of the one before.

        Returns:
            An executable, laid out on the device already, so that its first launch on ``stream`` is like any other.

        Raises:
            DeviceRuntimeError: One holds something that cannot be part of another graph.
        """
        whole, before = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("GraphCreate", ctypes.byref(whole), ctypes.c_uint(0))
        try:
            for index, graph in enumerate(graphs):
                node = ctypes.c_void_p()
                self._call(
                    "GraphAddChildGraphNode",
                    ctypes.byref(node),
                    whole,
                    ctypes.byref(before) if index else None,
                    ctypes.c_size_t(min(index, 1)),
                    ctypes.c_void_p(graph),
                )
                before = node
            executable = ctypes.c_void_p()
            self._call("GraphInstantiateWithFlags", ctypes.byref(executable), whole, ctypes.c_ulonglong(0))
        finally:
            self._call("GraphDestroy", whole)
        self._call("GraphUpload", executable, ctypes.c_void_p(stream))
        self.synchronize()
        return int(executable.value or 0)

    def launch_graph(self, executable: int, stream: int) -> None:
        """Replay a graph."""
        self._call("GraphLaunch", ctypes.c_void_p(executable), ctypes.c_void_p(stream))

    def destroy_graph(self, graph: int) -> None:
        """Free a graph."""
        self._call("GraphDestroy", ctypes.c_void_p(graph))

    def destroy_executable(self, executable: int) -> None:
        """Free the executable of a graph."""
        self._call("GraphExecDestroy", ctypes.c_void_p(executable))
