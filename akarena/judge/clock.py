"""Blocks of calls, timed on the judge's own clock.

For every replay the inputs are fresh and the outputs poisoned; the device must be idle and the outputs untouched when
the clock starts. After the answer the judge at once reads a secret sample of the outputs. What the steps around the
replays take longer than with the baseline is added to the candidate's time, so that nothing is gained by working ahead
or by answering before the work is done. Some outputs, chosen in secret, are kept and later compared with the oracle.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from akarena.judge import inputs
from akarena.judge.arena import Slot, View, most_bytes, poison_word
from akarena.judge.idle import IdleProbe
from akarena.judge.job import Job
from akarena.judge.sample import Sample
from akarena.judge.side import Answer, Side, give_inputs, synchronize
from akarena.judge.watch import Watch
from akarena.judge.workers import NotCapturableError, WorkerFaultError
from akarena.records.evaluation import FailReason, Method, Round
from akarena.records.task import InputArgument, Value
from akarena.targets.base import EntryKind

BLOCK_SECONDS = 0.004
"""Least time of a replay or, for short kernels, of a block."""
SLOW_SECONDS = 0.25
"""A replay takes no longer than this, or than one call: a slow candidate must not stretch the judgement."""
MAX_SETS = 2048
MAX_REPLAYS = 3
COLD_FACTOR = 6
"""The buffer sets together exceed the last-level cache this many times, so every call finds it cold."""
_POOL_BYTES = 256 << 20
_WARM_SECONDS = 0.02
_KEPT_CALLS = 40
_KEPT_BYTES = 2 << 30
_KEPT_SECONDS = 0.2
"""Most time that the oracle may take for the kept calls of one configuration."""
_EXPECTED_BLOCKS = 10
_CHANCE_SECONDS = 30e-6
_FEIGNED_SHARE = 0.25
"""Share of the replays before which the worker is woken once more than needed, in secret."""
_FEIGNED_SECONDS = 0.005
_KEPT_SHARE = 0.9
_WATCHED_SHARE = 0.4
"""Share of the blocks before which a replay is looked at while it runs, in secret."""
_WATCHED_FIRST, _WATCHED_LAST = 0.1, 0.6
"""When, in parts of a replay's time."""


@dataclass(frozen=True)
class Plan:
    """How one side is timed on one configuration."""

    sets: int
    replays: int

    @property
    def calls(self) -> int:
        """Calls in one block."""
        return self.sets * self.replays


@dataclass(frozen=True)
class Taken:
    """Seconds on the judge's clock: of the step before a replay, of the replay, and of the read after it."""

    wake: float
    replay: float
    read: float


class Clock:
    """Times one side on one configuration.

    Args:
        job: The judgement.
        side: Baseline or candidate.
        values: The configuration.
        cache_bytes: Size of the last-level cache.
        overhead_us: What a replay costs besides its calls; taken off.
        oracle_seconds: What one comparison with the oracle takes; it bounds how many calls are kept.
        probe: Tells whether the device is idle before the clock starts.

    Attributes:
        refresh_seconds: What giving fresh inputs took before each timed replay; it is work of the judge's alone.
        taken: All timed replays.
    """

    def __init__(
        self,
        job: Job,
        side: Side,
        values: dict[str, Value],
        cache_bytes: int,
        overhead_us: float,
        oracle_seconds: float = 0.0,
        probe: IdleProbe | None = None,
    ) -> None:
        self._job = job
        self._side = side
        self._values = values
        self._cache_bytes = cache_bytes
        self._overhead_seconds = overhead_us / 1e6
        self._oracle_seconds = oracle_seconds
        self._probe = probe
        self._secret = random.Random(f"{job.nonce}/{side.name}/clock/{sorted(values.items())}")
        self._numbers = np.random.default_rng(self._secret.getrandbits(128))
        self._pools: dict[str, torch.Tensor] = {}
        self._view: View | None = None
        self.method = Method.GRAPH
        self.plan = Plan(1, 1)
        self.kept: list[Answer] = []
        self.refresh_seconds: list[float] = []
        self.taken: list[Taken] = []
        self._due = self._secret.random()
        self.watched: list[float] = []
        self._faults = 0
        self._order: list[int] = []

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
        first = min(most, max(cold, 16))
        # A call as seen by the checks, launch and answer included, is an upper bound.
        self._lay_out(min(first, _calls_in(SLOW_SECONDS, self._side.call_seconds(self._values))))
        seconds = self._warm()
        sets = min(max(cold, min(most, math.ceil(BLOCK_SECONDS / seconds))), _calls_in(SLOW_SECONDS, seconds))
        replays = max(1, min(MAX_REPLAYS, math.ceil(BLOCK_SECONDS / (seconds * sets))))
        self.use(Plan(sets, replays))

    def use(self, plan: Plan) -> None:
        """Lay the buffers of a plan out, where they do not lie already, and run it once."""
        self.plan = plan
        sets = plan.sets
        if self._view is not None and self._view.layout.sets != sets:
            self._lay_out(sets)
            self.fresh_replay()

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
        # Nobody knows which call comes next when a call is recorded; it is the same order on both sides.
        self._order = secret.sample(range(sets), sets)
        if self.method is Method.GRAPH:
            self._side.worker.capture(sets, self._job.call_seconds + 10)
            self._side.worker.chain([self._order], self._job.call_seconds + 10)

    def _sets_at_once(self, slot: Slot) -> int:
        assert self._view is not None
        return max(1, min(self._view.layout.sets, _POOL_BYTES // slot.size))

    def _warm(self) -> float:
        """Run until the clocks of the device are up; returns seconds per call of the last run."""
        assert self._view is not None
        word = poison_word(self._secret)
        self._refresh(word)
        started = time.perf_counter()
        while True:
            taken, _ = self._timed(self._sample(word))
            if time.perf_counter() - started >= _WARM_SECONDS:
                return self._net_seconds(taken) / self._view.layout.sets

    @property
    def _outputs(self) -> list[Slot]:
        assert self._view is not None
        return [slot for slot in self._view.layout.slots if slot.is_output]

    def _sample(self, word: int, calls: Sequence[int] = ()) -> Sample:
        return Sample(self._side.memory, self._outputs, calls or self._order, word, self._numbers)

    def _timed(self, sample: Sample, meanwhile: Callable[[], None] | None = None) -> tuple[Taken, torch.Tensor]:
        """Run once, then read the sample of outputs."""
        assert self._view is not None
        wake = self._wake()
        if self.method is Method.GRAPH:
            replay = self._side.worker.replay(self._job.call_seconds, meanwhile)
        else:
            replay = self._side.worker.plain(self._order, self._job.call_seconds, meanwhile)
        started = time.perf_counter()
        found = sample.read()
        return Taken(wake, replay, time.perf_counter() - started), found

    def _wake(self) -> float:
        """Turn processor and device to the worker; returns the seconds of the latter."""
        synchronize(self._side.device)
        # A processor that slept takes its time, which says nothing about the kernel.
        self._side.worker.echo(self._job.call_seconds)
        return self._side.worker.wake(self._job.call_seconds)

    def _feign(self, sample: Sample) -> None:
        """Wake the worker as before a replay, ask for none, and look whether it has begun nevertheless.

        Raises:
            WorkerFaultError: It has.
        """
        self._wake()
        last_seconds = self.taken[-1].replay if self.taken else BLOCK_SECONDS
        time.sleep(min(last_seconds, _FEIGNED_SECONDS))
        sample.require_untouched(sample.read())

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

    def fresh_replay(self) -> Taken:
        """Give fresh inputs and replay once."""
        word = self.fresh()
        sample = self._sample(word)
        sample.read()
        return self._timed(sample)[0]

    def block(self) -> float:
        """Time one block; returns microseconds per call.

        Raises:
            WorkerFaultError: The worker failed, started or answered early, or wrote outside its outputs.
        """
        if self._checks_outputs and self.taken and self._secret.random() < _WATCHED_SHARE:
            self._watched()
        return sum(self._replay_once() for _ in range(self.plan.replays)) / self.plan.calls * 1e6

    def _watched(self) -> None:
        """Replay once untimed and look at it in the middle; to the worker it is a replay like all others.

        Raises:
            WorkerFaultError: Calls are carried out together, and not only in one of these looks.
        """
        word = self.fresh()
        sample = self._sample(word)
        whole = statistics.median(taken.replay for taken in self.taken)
        wait = whole * self._secret.uniform(_WATCHED_FIRST, _WATCHED_LAST)
        watch = Watch(self._side.memory, self._outputs, self._order, word, self._numbers, wait, whole)
        watch.prepare()
        sample.require_untouched(sample.read())
        _, early = self._timed(sample, meanwhile=watch.look)
        sample.require_written(early, sample.read())
        fault = watch.fault()
        self.watched.append((watch.done or 0) / len(self._order))
        if fault is None:
            return
        self._faults += 1
        if self._faults > 1:
            raise WorkerFaultError(FailReason.CALLS_NOT_APART, fault)
        self._watched()

    def _replay_once(self) -> float:
        """Time one replay and keep some of its calls; returns the seconds of its calls."""
        word = poison_word(self._secret)
        sample = self._sample(word)
        synchronize(self._side.device)
        started = time.perf_counter()
        self._refresh(word)
        synchronize(self._side.device)
        self.refresh_seconds.append(time.perf_counter() - started)
        chosen = self._choose()
        given = [self._give(index) for index in chosen]
        if self._probe is not None:
            self._probe.run()
        sample.require_untouched(sample.read())
        if self._secret.random() < _FEIGNED_SHARE:
            self._feign(sample)
        taken, early = self._timed(sample)
        if self._checks_outputs:
            outputs = [self._outputs_of(index) for index in chosen]
            synchronize(self._side.device)
            sample.require_written(early, sample.read())
            self.kept += [Answer(before, after) for before, after in zip(given, outputs, strict=True)]
        self.taken.append(taken)
        return self._net_seconds(taken)

    def _net_seconds(self, taken: Taken) -> float:
        """Return the time of the calls of a replay, without what it costs besides them."""
        return max(taken.replay - self._overhead_seconds, 1e-9)

    def finish(self) -> None:
        """Look at the canaries, after all blocks.

        Raises:
            WorkerFaultError: Memory outside the outputs was written.
        """
        assert self._view is not None
        if self._checks_outputs and not self._view.canaries_intact():
            raise WorkerFaultError(FailReason.OUT_OF_BOUNDS, "memory outside the outputs was written while timed")

    def fresh(self) -> int:
        """Give every input fresh values and poison every output; returns the poison."""
        word = poison_word(self._secret)
        self._refresh(word)
        synchronize(self._side.device)
        return word

    def ask_for(self, orders: Sequence[Sequence[int]], word: int) -> list[float]:
        """Have these calls carried out and no others, in a replay for each of the orders, right one after another.

        A replay is no longer that of the plan afterwards, so this comes last.

        Args:
            orders: Some of the calls that are laid out.
            word: The poison in their outputs.

        Returns:
            Seconds of each replay, with what it costs besides its calls.

        Raises:
            WorkerFaultError: They were not carried out.
            NotCapturableError: They cannot be parts of one graph.
        """
        worker, limit = self._side.worker, self._job.call_seconds
        if self.method is Method.GRAPH:
            worker.chain(orders, limit + 10)
        sample = self._sample(word, [index for order in orders for index in order])
        sample.read()
        self._wake()
        if self.method is Method.GRAPH:
            seconds = [worker.replay(limit, which=which) for which in range(len(orders))]
        else:
            seconds = [worker.plain(order, limit) for order in orders]
        early = sample.read()
        if self._checks_outputs:
            sample.require_written(early, sample.read())
        return seconds

    def require_apart(self, calls: Sequence[int], word: int) -> None:
        """Look at calls that were not asked for.

        Raises:
            WorkerFaultError: Something was written there.
        """
        if self._checks_outputs:
            sample = self._sample(word, calls)
            sample.require_apart(sample.read())

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

    def _give(self, index: int) -> dict[str, torch.Tensor]:
        """Give a call that is kept values of any round, so that what is timed must be right on all of them."""
        assert self._view is not None
        round_ = self._secret.choice(inputs.rounds(self._job.task))
        return give_inputs(self._view, index, round_, self._secret, self._job.nonce, self._side.name)

    def _outputs_of(self, index: int) -> dict[str, torch.Tensor]:
        assert self._view is not None
        return {slot.argument.name: self._view.copy_of(slot, index).clone() for slot in self._outputs}


def charge_us(baseline: Clock, candidate: Clock) -> float:
    """Return what is added to the candidate's time per call for work that it did outside the timed replays.

    The steps before and after a replay are the same small pieces of work of our own on both sides. If they take longer
    on the candidate's, the device was at work for it then. Means without the largest tenth are compared: rare delays do
    not count, work in a large part of the replays does. Below 30 us a replay nothing is told from chance.
    """
    late = 0.0
    for step in ("wake", "read"):
        means = [_mean_of_most([getattr(one, step) for one in clock.taken]) for clock in (candidate, baseline)]
        late += max(means[0] - means[1] - _CHANCE_SECONDS, 0.0)
    return late / candidate.plan.sets * 1e6


def _mean_of_most(values: list[float]) -> float:
    kept = sorted(values)[: max(1, math.ceil(_KEPT_SHARE * len(values)))]
    return sum(kept) / len(kept)


def _calls_in(seconds: float, call_seconds: float) -> int:
    """Return how many calls fit into a time; one where not even that fits."""
    return max(1, int(seconds / max(call_seconds, 1e-9)))


def set_up_both(baseline: Clock, candidate: Clock) -> Method:
    """Set both sides up; returns how the candidate is run.

    The baseline is always replayed from a graph. A candidate that cannot be recorded is run as plain calls and pays for
    its launches itself, so nothing is won by refusing to be recorded.

    Raises:
        NotCapturableError: The baseline cannot be recorded: a defect of the task.
        WorkerFaultError: A side does not run.
    """
    baseline.set_up(Method.GRAPH)
    try:
        candidate.set_up(Method.GRAPH)
    except NotCapturableError:
        candidate.set_up(Method.PLAIN)
    return candidate.method
