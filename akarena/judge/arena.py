"""Memory that judge and worker share, and where each argument of each call lies in it.

The judge owns the memory. One arena serves one side for the whole judgement and holds nothing but the inputs, outputs
and canaries of the calls at hand.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from akarena import configurations
from akarena.expressions import DTYPE_BYTES
from akarena.records.task import InputArgument, OutputArgument, ScalarArgument, TaskRecord, Value
from akarena.worker.runtime import Runtime

_ALIGNMENT = 256
_LEAST_ALIGNMENT = 16
"""What vector loads of one element of every kind need."""
_PAGE = mmap.PAGESIZE
_MAX_PAD = 8 * _ALIGNMENT
_TIMED_BYTES = 6 << 30
"""Memory of one side where calls are timed. More would not fit into the device's address-translation caches."""
_GRAIN_BYTES = 2 << 20


def timed_bytes() -> int:
    """Return the size of an arena for timed calls: enough that a replay takes milliseconds, at most a sixth of all."""
    return _whole(min(_TIMED_BYTES, torch.cuda.get_device_properties(0).total_memory // 6))


def arena_bytes(task: TaskRecord, values: Mapping[str, Value], guarded: bool) -> int:
    """Return the size of an arena for single calls of a configuration."""
    return _whole(most_bytes(task, values, guarded))


def most_bytes(task: TaskRecord, values: Mapping[str, Value], guarded: bool) -> int:
    """Return the most that one set of tensors of a configuration can take, whatever the paddings."""
    tensors = sum(isinstance(argument, InputArgument | OutputArgument) for argument in task.arguments)
    around = 4 * _PAGE if guarded else _MAX_PAD + 2 * _ALIGNMENT
    return configurations.set_bytes(task, values) + tensors * (around + _PAGE)


def _whole(size: int) -> int:
    """Round up to a size that every dtype and page divides."""
    return -(-size // _GRAIN_BYTES) * _GRAIN_BYTES


class Memory(Protocol):
    """An arena: ``bytes`` is all of it as a flat uint8 tensor."""

    bytes: torch.Tensor

    def handover(self) -> tuple[dict[str, Any], int | None]:
        """Return what a worker needs to map it: the payload of ATTACH, and a descriptor on the cpu target."""

    def close(self) -> None:
        """Give the memory back."""


class DeviceMemory:
    """A raw allocation of its own on the device, never from torch's allocator."""

    def __init__(self, runtime: Runtime, size: int) -> None:
        self._runtime = runtime
        self._size = size
        self._address = runtime.allocate(size)
        interface = {"data": (self._address, False), "shape": (size,), "typestr": "|u1", "version": 3}
        holder = type("Holder", (), {"__cuda_array_interface__": interface})()
        self.bytes = torch.as_tensor(holder, device="cuda")
        self.bytes.zero_()

    def handover(self) -> tuple[dict[str, Any], int | None]:
        """Return the inter-process handle."""
        return {"handle": self._runtime.export(self._address).hex(), "bytes": self._size}, None

    def close(self) -> None:
        """Scrub and free."""
        self.bytes.zero_()
        torch.cuda.synchronize()
        self.bytes = torch.empty(0, dtype=torch.uint8)
        self._runtime.free(self._address)


class HostMemory:
    """An anonymous memory file, for the cpu target."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._descriptor = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self._descriptor, size)
        # A worker that cut the file short would kill the judge at its next access.
        fcntl.fcntl(self._descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._map = mmap.mmap(self._descriptor, size)
        self.bytes = torch.frombuffer(self._map, dtype=torch.uint8)

    def handover(self) -> tuple[dict[str, Any], int | None]:
        """Return the descriptor."""
        return {"bytes": self._size}, self._descriptor

    def close(self) -> None:
        """Drop the file; the mapping goes with the last tensor over it."""
        os.close(self._descriptor)


@dataclass(frozen=True)
class Slot:
    """Where one tensor argument lies: call ``k`` has it at ``base + k * stride``."""

    argument: InputArgument | OutputArgument
    shape: tuple[int, ...]
    dtype: str
    count: int
    base: int
    stride: int
    before: int
    """Bytes of canary in front of each copy."""

    @property
    def size(self) -> int:
        """Bytes of one copy."""
        return self.count * DTYPE_BYTES[self.dtype]

    @property
    def is_output(self) -> bool:
        """Whether the kernel fills it."""
        return isinstance(self.argument, OutputArgument)


class Layout:
    """Places for the tensors of ``sets`` calls of one configuration, at addresses that the secret generator varies.

    Args:
        task: The task.
        values: The configuration.
        sets: How many calls.
        secret: Generator of the paddings.
        guarded: Put an unreadable page behind each tensor (cpu target).
        flush: With nothing in between, as far as an alignment of 16 bytes allows.
    """

    def __init__(
        self,
        task: TaskRecord,
        values: Mapping[str, Value],
        sets: int,
        secret: random.Random,
        guarded: bool,
        flush: bool = False,
    ) -> None:
        self.sets = sets
        self.values = dict(values)
        self._task = task
        self._guarded = guarded
        self._alignment = _LEAST_ALIGNMENT if flush else _ALIGNMENT
        self.slots: list[Slot] = []
        self.guards: list[list[int]] = []
        position = 0
        for argument in task.arguments:
            if not isinstance(argument, InputArgument | OutputArgument):
                continue
            shape = configurations.tensor_shape(argument, values)
            dtype = configurations.resolve_dtype(argument.dtype, values)
            count = math.prod(shape)
            size = count * DTYPE_BYTES[dtype]
            slot = self._place(argument, shape, dtype, count, size, position, secret)
            self.slots.append(slot)
            position = slot.base - slot.before + sets * slot.stride
            position = -(-position // _PAGE) * _PAGE
        self.size = position

    def _place(
        self,
        argument: InputArgument | OutputArgument,
        shape: tuple[int, ...],
        dtype: str,
        count: int,
        size: int,
        position: int,
        secret: random.Random,
    ) -> Slot:
        if not self._guarded:
            before = secret.randrange(1, _MAX_PAD // _ALIGNMENT + 1) * _ALIGNMENT
            stride = -(-(before + size + _ALIGNMENT) // _ALIGNMENT) * _ALIGNMENT
            return Slot(argument, shape, dtype, count, position + before, stride, before)
        # The tensor ends at most one alignment before a page that the worker cannot touch.
        padded = -(-size // self._alignment) * self._alignment
        end = -(-(padded + _ALIGNMENT) // _PAGE) * _PAGE
        before = end - padded
        stride = end + _PAGE
        for index in range(self.sets):
            self.guards.append([position + index * stride + end, _PAGE])
        return Slot(argument, shape, dtype, count, position + before, stride, before)

    def guard_rest(self, arena_bytes: int) -> None:
        """Make what lies behind the last tensor of the arena unreadable too, where anything is."""
        if self._guarded and arena_bytes > self.size:
            self.guards.append([self.size, arena_bytes - self.size])

    def bindings(self) -> dict[str, Any]:
        """Return the payload of PREPARE: every argument of the entry, in call order."""
        slots = iter(self.slots)
        arguments: list[dict[str, Any]] = []
        for argument in self._task.arguments:
            if isinstance(argument, InputArgument | OutputArgument):
                slot = next(slots)
                arguments.append(
                    {
                        "kind": "tensor",
                        "dtype": slot.dtype,
                        "shape": list(slot.shape),
                        "base": slot.base,
                        "stride": slot.stride,
                        "output": slot.is_output,
                    }
                )
            else:
                kind = "float" if isinstance(argument, ScalarArgument) else "int"
                arguments.append({"kind": kind, "value": self.values[argument.name]})
        return {"arguments": arguments, "sets": self.sets, "guards": self.guards}


class View:
    """A layout laid over an arena: the judge's way to write inputs and to read outputs.

    Args:
        memory: The arena.
        layout: The places.
        dtypes: torch's dtype for each dtype of the task.
    """

    def __init__(self, memory: Memory, layout: Layout, dtypes: Mapping[str, torch.dtype]) -> None:
        self.layout = layout
        self._bytes = memory.bytes
        self._dtypes = dtypes
        self._canary: list[tuple[torch.Tensor, torch.Tensor]] = []

    def _rows(self, slot: Slot) -> torch.Tensor:
        start = slot.base - slot.before
        whole = self._bytes[start : start + self.layout.sets * slot.stride]
        return whole.view(self.layout.sets, slot.stride)

    def all_copies(self, slot: Slot) -> torch.Tensor:
        """Return all copies of an argument as one tensor of shape [sets, count], strided over the arena."""
        rows = self._rows(slot)[:, slot.before : slot.before + slot.size]
        return rows.view(self._dtypes[slot.dtype])

    def copy_of(self, slot: Slot, index: int) -> torch.Tensor:
        """Return the argument of one call, in its shape."""
        return self.all_copies(slot)[index].view(slot.shape)

    def write_canaries(self, source: torch.Generator) -> None:
        """Fill everything between the tensors with secret bytes, and keep a private copy."""
        self._canary = []
        for slot in self.layout.slots:
            rows = self._rows(slot)
            # Guard pages too: a worker may make its own mapping of them writable.
            for pad in (rows[:, : slot.before], rows[:, slot.before + slot.size :]):
                if pad.numel():
                    secret = torch.randint(0, 256, pad.shape, generator=source, device=pad.device, dtype=torch.uint8)
                    pad.copy_(secret)
                    self._canary.append((pad, secret))

    def canaries_intact(self) -> bool:
        """Say whether everything between the tensors is as it was written."""
        return all(bool(torch.equal(pad, secret)) for pad, secret in self._canary)

    def poison(self, word: int) -> None:
        """Fill every output with a pattern: NaN in every float format."""
        high, low = word >> 8, word & 0xFF
        for slot in self.layout.slots:
            if slot.is_output:
                rows = self._rows(slot)[:, slot.before : slot.before + slot.size]
                if slot.size % 2 == 0:
                    rows.view(torch.int16).fill_(word)
                else:
                    rows.fill_(high)
                    rows[:, ::2].fill_(low)


def poison_word(secret: random.Random) -> int:
    """Draw a 16-bit pattern that is NaN as fp16, as bf16, and (twice) as fp32."""
    return 0x7FC0 | secret.randrange(1, 64)
