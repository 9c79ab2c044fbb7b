"""Blocks of calls, timed on the judge's own clock.

For every replay the inputs are fresh and the outputs poisoned. When the clock has stopped the judge at once reads a
secret sample of the outputs, so an answer before the work is done is seen; some outputs, chosen in secret, are kept
and later compared in full with the oracle.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass

import numpy as np
import torch

from akarena.judge import inputs
from akarena.judge.arena import Slot, View, most_bytes, poison_word
from akarena.judge.job import Job
from akarena.judge.side import Answer, Side, synchronize
from akarena.judge.workers import NotCapturableError, WorkerFaultError
from akarena.records.evaluation import FailReason, Method, Round
from akarena.records.task import InputArgument, Value
from akarena.targets.base import EntryKind

BLOCK_SECONDS = 0.008
"""Least time of a block; the read-back that could hide unfinished work takes well under a hundredth of it."""
MAX_SETS = 2048
MAX_REPLAYS = 4
COLD_FACTOR = 6
"""The buffer sets together exceed the last-level cache this many times, so every call finds it cold."""
_POOL_BYTES = 256 << 20
_WARM_SECONDS = 0.02
_SAMPLE_BYTES = 256
_KEPT_CALLS = 40
_KEPT_BYTES = 2 << 30
_KEPT_SECONDS = 0.3
"""Most time that the oracle may take for the kept calls of one configuration."""
_EXPECTED_BLOCKS = 10


@dataclass(frozen=True)
class Plan:
    """How one side is timed on one configuration."""

    sets: int
    replays: int

    @property
    def calls(self) -> int:
        """Calls in one block."""
        return self.sets * self.replays


class Clock:
    """Times one side on one configuration.

    Args:
        job: The judgement.
        side: Baseline or candidate.
        values: The configuration.
        cache_bytes: Size of the last-level cache.
        overhead_us: What a replay costs besides its calls; taken off.
        oracle_seconds: What one comparison with the oracle takes; it bounds how many calls are kept.
    """

    def __init__(
        self,
        job: Job,
        side: Side,
        values: dict[str, Value],
        cache_bytes: int,
        overhead_us: float,
        oracle_seconds: float = 0.0,
    ) -> None:
        self._job = job
        self._side = side
        self._values = values
        self._cache_bytes = cache_bytes
        self._overhead_seconds = overhead_us / 1e6
        self._oracle_seconds = oracle_seconds
        self._secret = random.Random(f"{job.nonce}/{side.name}/clock/{sorted(values.items())}")
        self._numbers = np.random.default_rng(self._secret.getrandbits(128))
        self._pools: dict[str, torch.Tensor] = {}
        self._view: View | None = None
        self.method = Method.GRAPH
        self.plan = Plan(1, 1)
        self.kept: list[Answer] = []
        self._due = self._secret.random()

    @property
    def _checks_outputs(self) -> bool:
        """An eager baseline is our own code and leaves its results in its own memory."""
        return self._side.kind is not EntryKind.EAGER

    def set_up(self, method: Method) -> None:
        """Choose how many calls a block has, from a first estimate; afterwards the side is warm.

        Raises:
            NotCapturableError: The kernel cannot be recorded, so both sides must be run plainly.
            WorkerFaultError: It does not run.
        """
        self.method = method
        one_set = most_bytes(self._job.task, self._values, guarded=False)
        most = max(1, min(MAX_SETS, self._side.memory.bytes.numel() // one_set))
        cold = max(1, min(most, math.ceil(COLD_FACTOR * self._cache_bytes / one_set)))
        self._lay_out(min(most, max(cold, 16)))
        seconds = self._warm()
        sets = max(cold, min(most, math.ceil(BLOCK_SECONDS / seconds)))
        replays = max(1, min(MAX_REPLAYS, math.ceil(BLOCK_SECONDS / (seconds * sets))))
        self.use(Plan(sets, replays))

    def use(self, plan: Plan) -> None:
        """Lay the buffers of a plan out, where they do not lie already, and run it once."""
        self.plan = plan
        sets = plan.sets
        if self._view is not None and self._view.layout.sets != sets:
            self._lay_out(sets)
            self._refresh(poison_word(self._secret))
            self._run()

    def _lay_out(self, sets: int) -> None:
        # Both sides get the same relative places: how a layout falls onto the memory's banks is worth a few percent.
        secret = random.Random(f"{self._job.nonce}/layout/{sorted(self._values.items())}")
        self._view = self._side.lay_out(self._values, sets, secret)
        self._pools = {}
        for slot in self._view.layout.slots:
            if isinstance(slot.argument, InputArgument):
                name, dtype = slot.argument.name, self._side.dtypes[slot.dtype]
                source = inputs.generator(
                    self._side.device, self._job.nonce, self._side.name, "pool", name, self._secret.random()
                )
                # Longer than what is taken at a time: each piece starts somewhere else.
                length = slot.count * self._sets_at_once(slot) + min(slot.count, 1 << 20) + 64
                self._pools[name] = inputs.draw(slot.argument, (length,), dtype, Round.ORDINARY, source, self._values)
        if self.method is Method.GRAPH:
            self._side.worker.capture(sets, self._job.call_seconds + 10)

    def _sets_at_once(self, slot: Slot) -> int:
        assert self._view is not None
        return max(1, min(self._view.layout.sets, _POOL_BYTES // slot.size))

    def _warm(self) -> float:
        """Run until the clocks of the device are up; returns seconds per call of the last run."""
        assert self._view is not None
        self._refresh(poison_word(self._secret))
        started = time.perf_counter()
        while True:
            seconds = self._net_seconds()
            if time.perf_counter() - started >= _WARM_SECONDS:
                return max(seconds / self._view.layout.sets, 1e-8)

    def _run(self) -> float:
        assert self._view is not None
        synchronize(self._side.device)
        if self.method is Method.GRAPH:
            return self._side.worker.replay(self._job.call_seconds)
        return self._side.worker.plain(self._view.layout.sets, self._job.call_seconds)

    def _refresh(self, word: int) -> None:
        """Give every input fresh values and poison every output."""
        assert self._view is not None
        for slot in self._view.layout.slots:
            if isinstance(slot.argument, InputArgument):
                pool, copies = self._pools[slot.argument.name], self._view.all_copies(slot)
                at_once = self._sets_at_once(slot)
                for first in range(0, len(copies), at_once):
                    piece = copies[first : first + at_once]
                    start = self._secret.randrange(0, pool.numel() - piece.numel() + 1)
                    piece.copy_(pool[start : start + piece.numel()].view(piece.shape))
        self._view.poison(word)

    def _net_seconds(self) -> float:
        """Run once; what a replay costs besides its calls is taken off."""
        return max(self._run() - self._overhead_seconds, 1e-9)

    def fresh_replay(self) -> float:
        """Give fresh inputs and replay once; returns seconds with nothing taken off."""
        self._refresh(poison_word(self._secret))
        return self._run()

    def block(self) -> float:
        """Time one block; returns microseconds per call.

        Raises:
            WorkerFaultError: The worker failed, answered early, or wrote outside its outputs.
        """
        assert self._view is not None
        total = 0.0
        for _ in range(self.plan.replays):
            word = poison_word(self._secret)
            self._refresh(word)
            chosen = self._choose()
            given = [self._inputs_of(index) for index in chosen]
            sample = self._sample_places()
            total += self._net_seconds()
            if self._checks_outputs:
                early = self._read(sample)
                outputs = [self._outputs_of(index) for index in chosen]
                synchronize(self._side.device)
                self._judge_sample(early, self._read(sample), word)
                self.kept += [Answer(before, after) for before, after in zip(given, outputs, strict=True)]
        return total / self.plan.calls * 1e6

    def finish(self) -> None:
        """Look at the canaries, after all blocks.

        Raises:
            WorkerFaultError: Memory outside the outputs was written.
        """
        assert self._view is not None
        if self._checks_outputs and not self._view.canaries_intact():
            raise WorkerFaultError(FailReason.OUT_OF_BOUNDS, "memory outside the outputs was written while timed")

    def _choose(self) -> list[int]:
        """Choose in secret the calls of one replay that are kept: about forty over all blocks, bounded by memory."""
        assert self._view is not None
        size = sum(slot.size for slot in self._view.layout.slots)
        most = min(_KEPT_CALLS, _KEPT_BYTES / size, _KEPT_SECONDS / max(self._oracle_seconds, 1e-6))
        wanted = max(4.0, most) / (_EXPECTED_BLOCKS * self.plan.replays)
        self._due += wanted
        count = int(self._due)
        self._due -= count
        return self._secret.sample(range(self._view.layout.sets), min(count, self._view.layout.sets))

    def _inputs_of(self, index: int) -> dict[str, torch.Tensor]:
        assert self._view is not None
        slots = [slot for slot in self._view.layout.slots if not slot.is_output]
        return {slot.argument.name: self._view.copy_of(slot, index).clone() for slot in slots}

    def _outputs_of(self, index: int) -> dict[str, torch.Tensor]:
        assert self._view is not None
        slots = [slot for slot in self._view.layout.slots if slot.is_output]
        return {slot.argument.name: self._view.copy_of(slot, index).clone() for slot in slots}

    def _sample_places(self) -> torch.Tensor:
        """Choose bytes of outputs all over the arena; the last call of a replay is always among them."""
        assert self._view is not None
        slots = [slot for slot in self._view.layout.slots if slot.is_output]
        share = _SAMPLE_BYTES // len(slots)
        places = []
        for slot in slots:
            calls = self._numbers.integers(0, self._view.layout.sets, share)
            calls[::4] = self._view.layout.sets - 1
            places.append(slot.base + calls * slot.stride + self._numbers.integers(0, slot.size, share))
        return torch.from_numpy(np.concatenate(places)).to(self._side.device)

    def _read(self, places: torch.Tensor) -> torch.Tensor:
        return self._side.memory.bytes[places].cpu()

    def _judge_sample(self, early: torch.Tensor, later: torch.Tensor, word: int) -> None:
        if not torch.equal(early, later):
            changed = int((early != later).sum())
            raise WorkerFaultError(FailReason.ANSWERED_EARLY, f"{changed} of {len(early)} sampled bytes changed later")
        poison = (early == (word & 0xFF)) | (early == (word >> 8))
        if float(poison.to(torch.float32).mean()) > 0.5:
            share = float(poison.to(torch.float32).mean())
            raise WorkerFaultError(FailReason.ANSWERED_EARLY, f"{share:.0%} of the sampled outputs were not written")


def set_up_both(baseline: Clock, candidate: Clock) -> Method:
    """Set both sides up in the same way: graphs where both can be recorded, else plain calls."""
    method = Method.GRAPH
    try:
        baseline.set_up(method)
        candidate.set_up(method)
    except NotCapturableError:
        method = Method.PLAIN
        baseline.set_up(method)
        candidate.set_up(method)
    return method
