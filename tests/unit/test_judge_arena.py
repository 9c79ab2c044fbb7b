from __future__ import annotations

import ctypes
import faulthandler
import itertools
import mmap
import os
import random
import signal
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from akarena import paths, tasks
from akarena.expressions import DTYPE_BYTES
from akarena.judge import arena, inputs, side
from akarena.judge.arena import HostMemory, Layout, Slot, View
from akarena.records.task import InputArgument, IntegersDistribution, OutputArgument, TaskRecord, Value
from akarena.worker.memory import Arena

DTYPES = inputs.dtypes("float8_e4m3fn")
LAYER_NORM = tasks.load(paths.root() / "tasks" / "hip2hip" / "layer_norm").record
VALUES: dict[str, Value] = {"rows": 3, "cols": 10, "eps": 1e-5}
NO_VALUES: dict[str, Value] = {}


def tensor(index: int, shape: tuple[int, ...], dtype: str, output: bool) -> InputArgument | OutputArgument:
    extents = tuple(map(str, shape))
    if output:
        return OutputArgument(role="output", name=f"t{index}", dtype=dtype, shape=extents)
    distribution = IntegersDistribution(kind="integers", high="2")
    return InputArgument(role="input", name=f"t{index}", dtype=dtype, shape=extents, distribution=distribution)


def task_of(*tensors: tuple[tuple[int, ...], str, bool]) -> TaskRecord:
    arguments = tuple(tensor(index, *facts) for index, facts in enumerate(tensors))
    return LAYER_NORM.model_copy(update={"arguments": arguments})


TENSORS = st.lists(
    st.tuples(
        st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple), st.sampled_from(list(DTYPES)), st.booleans()
    ),
    min_size=1,
    max_size=6,
)


def spans_of(layout: Layout) -> list[tuple[int, int]]:
    return sorted(
        (slot.base + index * slot.stride, slot.base + index * slot.stride + slot.size)
        for slot in layout.slots
        for index in range(layout.sets)
    )


@settings(max_examples=150, deadline=None)
@given(tensors=TENSORS, sets=st.integers(1, 5), seed=st.integers(0, 2**32), guarded=st.booleans())
def test_any_layout_is_aligned_apart_and_as_large_as_was_said(
    tensors: list[tuple[tuple[int, ...], str, bool]], sets: int, seed: int, guarded: bool
) -> None:
    task = task_of(*tensors)
    layout = Layout(task, NO_VALUES, sets, random.Random(seed), guarded)
    spans = spans_of(layout)
    assert len(spans) == sets * len(tensors)
    assert all(start % 256 == 0 for start, _ in spans)
    assert spans[0][0] >= 256
    assert all(before[1] + 256 <= after[0] for before, after in itertools.pairwise(spans))
    assert spans[-1][1] <= layout.size
    assert layout.size <= sets * arena.most_bytes(task, NO_VALUES, guarded)
    assert arena.arena_bytes(task, NO_VALUES, guarded) >= arena.most_bytes(task, NO_VALUES, guarded)
    assert [slot.size for slot in layout.slots] == [
        torch.Size(shape).numel() * DTYPE_BYTES[dtype] for shape, dtype, _ in tensors
    ]


@settings(max_examples=60, deadline=None)
@given(tensors=TENSORS, sets=st.integers(1, 3), seed=st.integers(0, 2**32))
def test_every_tensor_ends_just_before_a_page_that_is_closed(
    tensors: list[tuple[tuple[int, ...], str, bool]], sets: int, seed: int
) -> None:
    layout = Layout(task_of(*tensors), NO_VALUES, sets, random.Random(seed), guarded=True)
    layout.guard_rest(layout.size + 3 * mmap.PAGESIZE)
    assert all(offset % mmap.PAGESIZE == 0 and length % mmap.PAGESIZE == 0 for offset, length in layout.guards)
    starts = sorted(offset for offset, _ in layout.guards)
    for begin, end in spans_of(layout):
        assert all(end <= offset or begin >= offset + length for offset, length in layout.guards)
        assert min(offset - end for offset in starts if offset >= end) < 256
    assert [layout.size, 3 * mmap.PAGESIZE] in layout.guards


def test_a_layout_without_guards_has_none() -> None:
    layout = Layout(LAYER_NORM, VALUES, 2, random.Random(0), guarded=False)
    layout.guard_rest(layout.size + mmap.PAGESIZE)
    assert layout.guards == []


def test_places_follow_the_secret() -> None:
    bases = {Layout(LAYER_NORM, VALUES, 1, random.Random(seed), guarded=False).slots[0].base for seed in range(40)}
    assert len(bases) > 4


def view_of(task: TaskRecord, values: dict[str, Value], sets: int, guarded: bool = False) -> View:
    layout = Layout(task, values, sets, random.Random(1), guarded)
    return View(HostMemory(layout.size), layout, DTYPES)


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("copy", [0, 1])
@pytest.mark.parametrize("where", ["first before", "last before", "first after", "last after"])
def test_a_byte_written_beside_a_tensor_is_found(where: str, copy: int, guarded: bool) -> None:
    view = view_of(LAYER_NORM, VALUES, 2, guarded)
    view.write_canaries(torch.Generator().manual_seed(3))
    assert view.canaries_intact()
    for slot in view.layout.slots:
        begin = slot.base + copy * slot.stride
        end = begin + slot.size
        row_end = begin - slot.before + slot.stride - (mmap.PAGESIZE if guarded else 0)
        if end == row_end and "after" in where:
            continue  # The closed page follows at once.
        place = {
            "first before": begin - slot.before,
            "last before": begin - 1,
            "first after": end,
            "last after": row_end - 1,
        }[where]
        view._bytes[place] ^= 1
        assert not view.canaries_intact(), slot.argument.name
        view._bytes[place] ^= 1
        assert view.canaries_intact()


def test_canaries_are_other_ones_each_time_and_spare_the_tensors() -> None:
    view = view_of(LAYER_NORM, VALUES, 2)
    for slot in view.layout.slots:
        view.all_copies(slot).fill_(1.0)
    source = torch.Generator().manual_seed(3)
    view.write_canaries(source)
    first = view._bytes.clone()
    view.write_canaries(source)
    assert not torch.equal(first, view._bytes)
    assert all(bool((view.all_copies(slot) == 1.0).all()) for slot in view.layout.slots)


@pytest.mark.parametrize("shape", [(8, 4), (7, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_poison_covers_outputs_of_every_dtype_and_no_input(dtype: str, shape: tuple[int, int]) -> None:
    view = view_of(task_of((shape, dtype, True), (shape, dtype, False)), {}, 2)
    output, given_ = view.layout.slots
    for slot in (output, given_):
        view.all_copies(slot).view(torch.uint8).zero_()
    word = arena.poison_word(random.Random(0))
    view.poison(word)
    assert not view.all_copies(given_).view(torch.uint8).any()
    raw = view.all_copies(output).contiguous().view(torch.uint8)
    assert bool((raw != 0).all())
    copies = view.all_copies(output)
    if copies.is_floating_point() and copies.element_size() > 1:
        assert bool(torch.isnan(copies).all())
    _only_what_is_left_is_counted(view, output, word)


def _only_what_is_left_is_counted(view: View, output: Slot, word: int) -> None:
    """Count unwritten elements as the judge does: exactly for fp32, fp16 and bf16, not at all for the others."""
    copy = view.copy_of(output, 0).contiguous()
    exact = copy.is_floating_point() and copy.element_size() in (2, 4)
    assert side._still_poisoned(copy, word) == (copy.numel() if exact else 0)
    written = copy.view(torch.uint8).zero_().view(copy.dtype)
    assert side._still_poisoned(written, word) == 0
    written.view(-1)[-1:].view(torch.uint8).copy_(view.copy_of(output, 1).reshape(-1)[-1:].view(torch.uint8))
    assert side._still_poisoned(written, word) == (1 if exact else 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_poison_word_is_nan_in_every_format(dtype: torch.dtype) -> None:
    for seed in range(64):
        word = arena.poison_word(random.Random(seed))
        raw = torch.tensor([word, word], dtype=torch.int16)
        assert bool(torch.isnan(raw.view(dtype)).all())


def test_a_host_arena_cannot_be_cut_short() -> None:
    memory = HostMemory(1 << 16)
    payload, descriptor = memory.handover()
    assert payload == {"bytes": 1 << 16}
    assert descriptor is not None
    for size in (0, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, size)
    memory.close()


def _signal_of(access: Callable[[], object]) -> int:
    """Do something in a child process; returns the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        access()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_closed_page_stops_reads_and_writes_of_the_worker() -> None:
    layout = Layout(LAYER_NORM, VALUES, 2, random.Random(1), guarded=True)
    layout.guard_rest(layout.size + mmap.PAGESIZE)
    size = layout.size + mmap.PAGESIZE
    view = mmap.mmap(-1, size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(view))
    worker = Arena(address, size, view)

    def touch(offset: int) -> Callable[[], object]:
        return lambda: ctypes.c_char.from_address(address + offset).value

    def write(offset: int) -> Callable[[], object]:
        return lambda: ctypes.memset(address + offset, 1, 1)

    places = [offset for offset, length in layout.guards for offset in (offset, offset + length - 1)]
    assert [_signal_of(touch(place)) for place in places] == [0] * len(places)
    worker.guard(layout.guards)
    assert [_signal_of(touch(place)) for place in places] == [signal.SIGSEGV] * len(places)
    assert _signal_of(write(places[0])) == signal.SIGSEGV
    for begin, end in spans_of(layout):
        assert _signal_of(write(begin)) == _signal_of(write(end - 1)) == 0
    worker.unguard()
    assert _signal_of(write(places[0])) == 0
