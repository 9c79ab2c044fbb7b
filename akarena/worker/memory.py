"""The arena that judge and worker share, as the worker sees it."""

from __future__ import annotations

import array
import ctypes
import mmap
import os
import socket
from typing import Any

from akarena.worker.runtime import Runtime

_PROT_NONE = 0


class Arena:
    """A mapped arena.

    Attributes:
        address: Where it begins in this process.
        size: Bytes.
        view: The mapping, on the cpu target.
    """

    def __init__(self, address: int, size: int, view: mmap.mmap | None = None) -> None:
        self.address = address
        self.size = size
        self.view = view

    def guard(self, ranges: list[list[int]]) -> None:
        """Make ranges of whole pages unreadable here, so that a stray access stops the process at once."""
        libc = ctypes.CDLL(None, use_errno=True)
        for offset, length in ranges:
            if libc.mprotect(ctypes.c_void_p(self.address + offset), ctypes.c_size_t(length), _PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")

    def unguard(self) -> None:
        """Make everything readable and writable again, before another layout is used."""
        libc = ctypes.CDLL(None, use_errno=True)
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        if libc.mprotect(ctypes.c_void_p(self.address), ctypes.c_size_t(self.size), protection):
            raise OSError(ctypes.get_errno(), "mprotect")


def attach_device(runtime: Runtime, payload: dict[str, Any]) -> Arena:
    """Map the device arena whose handle the judge sent."""
    return Arena(runtime.attach(bytes.fromhex(payload["handle"])), int(payload["bytes"]))


def attach_host(sock: socket.socket, payload: dict[str, Any]) -> Arena:
    """Map the memory file that the judge passes over the socket right after its request."""
    size = int(payload["bytes"])
    _, ancillary, _, _ = sock.recvmsg(1, socket.CMSG_SPACE(array.array("i").itemsize))
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: descriptors.itemsize])
    view = mmap.mmap(descriptors[0], size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    os.close(descriptors[0])
    address = ctypes.addressof(ctypes.c_char.from_buffer(view))
    return Arena(address, size, view)
