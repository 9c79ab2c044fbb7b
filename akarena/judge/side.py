"""One side of a judgement: a worker, its arena, and the calls that are laid out in it."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from akarena.judge import inputs
from akarena.judge.arena import Layout, Memory, View, poison_word
from akarena.judge.job import Job, Process, SideJob
from akarena.judge.workers import Worker, WorkerFaultError
from akarena.records.evaluation import FailReason, Round
from akarena.records.task import InputArgument, TargetName, Value
from akarena.sandbox.control import Control
from akarena.targets.base import EntryKind


@dataclass(frozen=True)
class Answer:
    """Private copies of what one call was given and what it left."""

    inputs: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]

    def scrub(self) -> None:
        """Overwrite the copies."""
        for tensor in (*self.inputs.values(), *self.outputs.values()):
            tensor.zero_()


class Side:
    """Baseline or candidate.

    Args:
        job: The judgement.
        control: The launcher.
        process: Which of the two.
        side: What its worker loads.
        memory: Its arena.
        device: Where torch works.
    """

    def __init__(
        self, job: Job, control: Control, process: Process, side: SideJob, memory: Memory, device: torch.device
    ) -> None:
        self.job = job
        self.kind = side.kind
        self.name = process.value
        self.memory = memory
        self.device = device
        # Only the candidate can be slow on purpose.
        allowance = job.candidate_seconds if process is Process.CANDIDATE else math.inf
        self.worker = Worker(control, process.value, side, job.fp8, allowance)
        self.secret = random.Random(f"{job.nonce}/{process.value}")
        self.dtypes = inputs.dtypes(job.fp8)
        self.first_call_seconds = 0.0
        self._call_seconds: dict[str, float] = {}
        self._compile_left = job.compile_seconds

    @property
    def guarded(self) -> bool:
        """Whether unreadable pages lie between the tensors."""
        return self.job.target is TargetName.CPU

    def start(self) -> None:
        """Start the worker and load its kernel, where it is not running.

        Raises:
            WorkerFaultError: The kernel cannot be loaded.
        """
        self.worker.start(self.memory, self.job.compile_seconds)

    def call_seconds(self, values: Mapping[str, Value]) -> float:
        """Return the least time of a single call on a configuration so far, or 0 where there was none."""
        return self._call_seconds.get(_key(values), 0.0)

    def lay_out(
        self, values: Mapping[str, Value], sets: int, secret: random.Random | None = None, flush: bool = False
    ) -> View:
        """Bind ``sets`` calls of a configuration, with canaries and at addresses that ``secret`` varies."""
        layout = Layout(self.job.task, values, sets, secret or self.secret, self.guarded, flush)
        layout.guard_rest(self.memory.bytes.numel())
        view = View(self.memory, layout, self.dtypes)
        view.write_canaries(inputs.generator(self.device, self.job.nonce, self.name, "canary", self.secret.random()))
        synchronize(self.device)
        self.worker.prepare(layout.bindings(), self.job.call_seconds)
        return view

    def answer(self, values: Mapping[str, Value], round_: Round, *, first: bool) -> Answer:
        """Run one call on fresh values and return private copies of its inputs and outputs.

        Args:
            values: The configuration.
            round_: Which input values.
            first: Whether the kernel may still compile or tune for this configuration.

        Raises:
            WorkerFaultError: The call failed, wrote outside its outputs or changed an input.
        """
        # In one round a single element too far is a page too far; else addresses are as aligned as on a device.
        view = self.lay_out(values, 1, flush=round_ is Round.LARGE)
        given = give_inputs(view, 0, round_, self.secret, self.job.nonce, self.name)
        word = poison_word(self.secret)
        view.poison(word)
        synchronize(self.device)
        self._call(first, values)
        outputs = {slot.argument.name: view.copy_of(slot, 0).clone() for slot in view.layout.slots if slot.is_output}
        for slot in view.layout.slots:
            if not slot.is_output and not _same_bytes(view.copy_of(slot, 0), given[slot.argument.name]):
                raise WorkerFaultError(FailReason.INPUT_CHANGED, f"input {slot.argument.name} was changed")
        if not view.canaries_intact():
            raise WorkerFaultError(FailReason.OUT_OF_BOUNDS, "memory outside the outputs was written")
        for name, output in outputs.items():
            untouched = _still_poisoned(output, word)
            if untouched:
                raise WorkerFaultError(FailReason.OUTPUT_NOT_WRITTEN, f"{untouched} elements of {name} are unwritten")
        return Answer(given, outputs)

    def _call(self, first: bool, values: Mapping[str, Value]) -> None:
        # A native kernel was compiled by the build; the others compile or tune when they are first called.
        compiling = first and self.kind is not EntryKind.NATIVE
        allowed = max(self._compile_left, self.job.call_seconds) if compiling else self.job.call_seconds
        started = time.perf_counter()
        try:
            self.worker.call(0, self.secret.getrandbits(63), allowed)
        finally:
            taken = time.perf_counter() - started
            if compiling:
                self.first_call_seconds += taken
                self._compile_left -= taken
            key = _key(values)
            self._call_seconds[key] = min(taken, self._call_seconds.get(key, taken))


def give_inputs(
    view: View, index: int, round_: Round, secret: random.Random, nonce: str, side: str
) -> dict[str, torch.Tensor]:
    """Give one of the calls that are laid out fresh inputs; returns private copies of them.

    Args:
        view: The calls.
        index: Which of them.
        round_: Which input values.
        secret: Makes them differ from all others.
        nonce: The judgement's.
        side: Name of the side.
    """
    given: dict[str, torch.Tensor] = {}
    for slot in view.layout.slots:
        if isinstance(slot.argument, InputArgument):
            name, place = slot.argument.name, view.copy_of(slot, index)
            source = inputs.generator(place.device, nonce, side, name, round_, secret.random())
            given[name] = inputs.draw(slot.argument, slot.shape, place.dtype, round_, source, view.layout.values)
            place.copy_(given[name])
    return given


def _key(values: Mapping[str, Value]) -> str:
    return str(sorted(values.items()))


_WHOLE: dict[int, Callable[[int], tuple[torch.dtype, int]]] = {
    2: lambda word: (torch.int16, word),
    4: lambda word: (torch.int32, word << 16 | word),
}
"""Integer dtype and poisoned value of a whole element, by its size."""


def synchronize(device: torch.device) -> None:
    """Wait for the judge's own work on the device."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def _same_bytes(left: torch.Tensor, right: torch.Tensor) -> bool:
    return bool(torch.equal(left.reshape(-1).view(torch.uint8), right.reshape(-1).view(torch.uint8)))


def _still_poisoned(output: torch.Tensor, word: int) -> int:
    """Count elements that still hold the poison, where the dtype is wide enough to tell it from a result."""
    if not output.is_floating_point() or output.element_size() not in _WHOLE:
        return 0
    whole, pattern = _WHOLE[output.element_size()](word)
    return int((output.reshape(-1).view(whole) == pattern).sum())
