from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from akarena import paths, tasks
from akarena.judge import arena, inputs
from akarena.judge.sample import PIECES, Sample
from akarena.judge.workers import WorkerFaultError
from akarena.records.evaluation import FailReason
from akarena.records.task import OutputArgument, TaskRecord

DTYPES = inputs.dtypes("float8_e4m3fn")
LAYER_NORM = tasks.load(paths.root() / "tasks" / "hip2hip" / "layer_norm").record
SETS = 6
WORD = 0x7FC5


def output(index: int, dtype: str, shape: tuple[str, ...]) -> OutputArgument:
    return OutputArgument(role="output", name=f"t{index}", dtype=dtype, shape=shape)


class Scene:
    """Poisoned outputs of a few calls, and a sample of them."""

    def __init__(self, *outputs: OutputArgument, seed: int = 0) -> None:
        task: TaskRecord = LAYER_NORM.model_copy(update={"arguments": outputs})
        layout = arena.Layout(task, {}, SETS, random.Random(seed), guarded=False)
        self.memory = arena.HostMemory(1 << 20)
        self.view = arena.View(self.memory, layout, DTYPES)
        self.view.poison(WORD)
        self.sample = Sample(self.memory, layout.slots, range(SETS), WORD, np.random.default_rng(seed))

    def fill(self, value: float, *, but_call: int | None = None) -> None:
        for slot in self.view.layout.slots:
            for index in range(SETS):
                if index != but_call:
                    self.view.copy_of(slot, index).fill_(value)


SHAPES = [
    (output(0, "fp32", ("40",)), output(1, "int32", ("9",))),
    (output(0, "fp16", ("7",)),),
    (output(0, "fp8", ("33",)), output(1, "bf16", ("5", "3"))),
    (output(0, "int8", ("64",)),),
    (output(0, "fp32", ("1",)),),
]


@pytest.mark.parametrize("outputs", SHAPES)
def test_poison_is_untouched_and_not_written(outputs: tuple[OutputArgument, ...]) -> None:
    scene = Scene(*outputs)
    found = scene.sample.read()
    assert found.shape == (-(-PIECES // len(outputs)) * len(outputs), 16)
    scene.sample.require_untouched(found)
    with pytest.raises(WorkerFaultError, match="were not written when the worker answered") as raised:
        scene.sample.require_written(found, found)
    assert raised.value.reason is FailReason.ANSWERED_EARLY


@pytest.mark.parametrize("outputs", SHAPES)
def test_written_outputs_pass(outputs: tuple[OutputArgument, ...]) -> None:
    scene = Scene(*outputs)
    scene.fill(3.0)
    found = scene.sample.read()
    scene.sample.require_written(found, scene.sample.read())
    with pytest.raises(WorkerFaultError, match="before the clock started"):
        scene.sample.require_untouched(found)


@pytest.mark.parametrize("call", range(SETS))
def test_a_call_that_is_left_out_is_seen(call: int) -> None:
    scene = Scene(output(0, "fp32", ("500",)))
    scene.fill(1.0, but_call=call)
    found = scene.sample.read()
    with pytest.raises(WorkerFaultError, match="were not written"):
        scene.sample.require_written(found, found)


def test_a_change_after_the_answer_is_seen() -> None:
    scene = Scene(output(0, "fp32", ("50",)))
    scene.fill(1.0)
    early = scene.sample.read()
    scene.fill(2.0)
    with pytest.raises(WorkerFaultError, match="changed after the worker had answered"):
        scene.sample.require_written(early, scene.sample.read())


def test_saturated_bytes_are_no_poison() -> None:
    scene = Scene(output(0, "int8", ("64",)))
    scene.fill(127)
    found = scene.sample.read()
    scene.sample.require_written(found, found)


def test_two_samples_differ() -> None:
    places = [Scene(output(0, "fp32", ("500",)), seed=seed).sample._pieces._places for seed in (1, 2)]
    assert not torch.equal(*places)
