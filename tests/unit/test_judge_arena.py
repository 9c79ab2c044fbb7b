from __future__ import annotations

import itertools
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from akarena import paths, tasks
from akarena.judge import arena, inputs
from akarena.judge.arena import HostMemory, Layout, View
from akarena.records.evaluation import Round
from akarena.records.task import InputArgument, TaskRecord

DTYPES = inputs.dtypes("float8_e4m3fn")


@pytest.fixture(scope="module")
def layer_norm() -> TaskRecord:
    return tasks.load(paths.root() / "tasks" / "hip2hip" / "layer_norm").record


def view_of(task: TaskRecord, values: dict[str, int | float | str], sets: int, guarded: bool = False) -> View:
    layout = Layout(task, values, sets, random.Random(1), guarded)
    return View(HostMemory(layout.size), layout, DTYPES)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 50),
    cols=st.integers(8, 300),
    sets=st.integers(1, 5),
    seed=st.integers(0, 2**32),
    guarded=st.booleans(),
)
def test_tensors_are_aligned_and_never_overlap(rows: int, cols: int, sets: int, seed: int, guarded: bool) -> None:
    task = tasks.load(paths.root() / "tasks" / "hip2hip" / "layer_norm").record
    values: dict[str, int | float | str] = {"rows": rows, "cols": cols, "eps": 1e-5}
    layout = Layout(task, values, sets, random.Random(seed), guarded)
    spans = sorted(
        (slot.base + index * slot.stride, slot.base + index * slot.stride + slot.size)
        for slot in layout.slots
        for index in range(sets)
    )
    assert all(start % 256 == 0 for start, _ in spans)
    assert all(before[1] + 256 <= after[0] for before, after in itertools.pairwise(spans))
    assert spans[-1][1] <= layout.size
    assert layout.size <= sets * arena.most_bytes(task, values, guarded)
    for offset, length in layout.guards:
        assert all(end <= offset or start >= offset + length for start, end in spans)


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_byte_written_beside_an_output_is_found(layer_norm: TaskRecord, where: str) -> None:
    view = view_of(layer_norm, {"rows": 3, "cols": 10, "eps": 1e-5}, 2)
    view.write_canaries(torch.Generator().manual_seed(3))
    assert view.canaries_intact()
    slot = view.layout.slots[0]
    place = slot.base - 1 if where == "before" else slot.base + slot.stride + slot.size
    view._bytes[place] ^= 1
    assert not view.canaries_intact()


def test_poison_is_nan_and_touches_outputs_only(layer_norm: TaskRecord) -> None:
    view = view_of(layer_norm, {"rows": 3, "cols": 10, "eps": 1e-5}, 2)
    for slot in view.layout.slots:
        view.all_copies(slot).fill_(1.0)
    view.poison(arena.poison_word(random.Random(0)))
    for slot in view.layout.slots:
        copies = view.all_copies(slot)
        assert bool(torch.isnan(copies).all()) == slot.is_output
        assert bool((copies == 1.0).all()) != slot.is_output


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_poison_word_is_nan_in_every_format(dtype: torch.dtype) -> None:
    for seed in range(64):
        word = arena.poison_word(random.Random(seed))
        raw = torch.tensor([word, word], dtype=torch.int16)
        assert bool(torch.isnan(raw.view(dtype)).all())


def argument(task: TaskRecord, name: str) -> InputArgument:
    found = next(one for one in task.arguments if one.name == name)
    assert isinstance(found, InputArgument)
    return found


def test_inputs_follow_the_nonce_and_the_round(layer_norm: TaskRecord) -> None:
    values: dict[str, int | float | str] = {"rows": 64, "cols": 64, "eps": 1e-5}
    device = torch.device("cpu")

    def drawn(nonce: str, round_: Round) -> torch.Tensor:
        source = inputs.generator(device, nonce, "x", round_)
        return inputs.draw(argument(layer_norm, "x"), (64, 64), torch.float32, round_, source, values)

    assert torch.equal(drawn("a", Round.ORDINARY), drawn("a", Round.ORDINARY))
    assert not torch.equal(drawn("a", Round.ORDINARY), drawn("b", Round.ORDINARY))
    assert drawn("a", Round.LARGE).std() > 4 * drawn("a", Round.ORDINARY).std()
