"""What is wrong with a task's oracle, inputs and tolerances, found by running the oracle on small sizes with torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch

from akarena.configurations import set_bytes, tensor_shape
from akarena.judge import inputs
from akarena.judge.controls import Case, Outcome, Tensors, draw_inputs, make_case, run_controls
from akarena.judge.correctness import Oracle, Reference, load_oracle
from akarena.records.evaluation import FailReason
from akarena.records.task import InputArgument, ScalarAxis, TaskRecord, Value
from akarena.tasks import Task

Found = Iterator[tuple[str, str, str]]
"""File, key and reason."""

ENOUGH_ELEMENTS = 64
"""Output elements from which on a configuration must catch every control."""
_LOCAL = frozenset({"one_element_wrong", "last_block_skipped"})
"""Controls that spoil few elements."""
_LARGEST_BYTES = 2**24
"""Configurations of a task without a cpu range that are small enough to be run here."""
_TOML = "task.toml"
_ORACLE = "judge/oracle.py"


def check(task: Task) -> Found:
    """Yield what is wrong with a task that is otherwise sound.

    The oracle takes the declared arguments and gives finite values of the declared shapes in every round; each input
    and each scalar changes an output beyond its tolerance; every negative control is refused.
    """
    try:
        oracle = load_oracle(task.oracle)
    except Exception as error:
        yield _ORACLE, "oracle", f"cannot be imported: {_text(error)}"
        return
    record = task.record
    key, cases = _small_configurations(record)
    if not cases:
        yield _TOML, "seen", "none is small enough to run the oracle on a CPU; declare a [cpu] range"
        return
    faults = [fault for index, values in cases for fault in _answers(record, oracle, f"{key}[{index}]", values)]
    yield from faults
    if faults:
        return
    made = [make_case(record, values, oracle) for _, values in cases]
    yield from _inputs_matter(record, made)
    yield from _scalars_matter(record, made)
    large = [index for index, case in enumerate(made) if _elements(case) >= ENOUGH_ELEMENTS]
    for position in large or range(len(made)):
        index, values = cases[position]
        for name, caught in run_controls(record, values, oracle).items():
            where = f"the wrong answer {name} for output {caught.output}"
            if caught.outcome is Outcome.PASSED:
                reason = f"the gate takes {where}"
            elif name in _LOCAL and caught.reason is FailReason.LOW_PRECISION:
                reason = f"only the rms error tells {where}, which a larger output would hide"
            else:
                continue
            yield _TOML, f"{key}[{index}]", f"{reason} (error over tolerance {caught.worst_ratio:.3g})"


def _small_configurations(task: TaskRecord) -> tuple[str, list[tuple[int, Mapping[str, Value]]]]:
    if task.cpu is not None:
        return "cpu.seen", list(enumerate(task.cpu.seen))
    return "seen", [(i, values) for i, values in enumerate(task.seen) if set_bytes(task, values) <= _LARGEST_BYTES]


def _elements(case: Case) -> int:
    return sum(output.numel() for output in case.expected.values())


def _answers(task: TaskRecord, oracle: Oracle, place: str, values: Mapping[str, Value]) -> Found:
    """Ask the oracle in every round and check the form of what it gives."""
    reference = Reference(task, oracle)
    for round_ in inputs.rounds(task):
        given = draw_inputs(task, values, "lint", round_)
        before = {name: tensor.clone() for name, tensor in given.items()}
        where = f"in the {round_.value} round of {place}"
        try:
            expected = reference.expected(given, values)
        except Exception as error:
            yield _ORACLE, "oracle", f"fails {where}: {_text(error)}"
            return
        if any(not _same_bytes(tensor, before[name]) for name, tensor in given.items()):
            yield _ORACLE, "oracle", f"changes its inputs {where}"
        yield from _form(reference, expected, values, where)


def _form(reference: Reference, expected: Tensors, values: Mapping[str, Value], where: str) -> Found:
    known = {output.name for output in reference.outputs}
    if set(expected) != known:
        yield _ORACLE, "oracle", f"gives {', '.join(sorted(expected))}, expected {', '.join(sorted(known))}"
    dtypes = inputs.dtypes("float8_e4m3fn")
    for output in reference.outputs:
        tensor, dtype = expected[output.name], dtypes[str(values.get(output.dtype, output.dtype))]
        shape = tensor_shape(output, values)
        wanted = dtype if inputs.is_integer(dtype) else torch.float64
        if tuple(tensor.shape) != shape:
            yield _ORACLE, "oracle", f"gives {output.name} the shape {tuple(tensor.shape)}, expected {shape} {where}"
        if tensor.dtype is not wanted:
            yield _ORACLE, "oracle", f"gives {output.name} as {tensor.dtype}, expected {wanted} {where}"
        elif not bool(torch.isfinite(tensor.to(dtype).to(torch.float64)).all()):
            yield _ORACLE, "oracle", f"gives values of {output.name} that are not finite in {dtype} {where}"


def _inputs_matter(task: TaskRecord, cases: list[Case]) -> Found:
    for index, argument in enumerate(task.arguments):
        if isinstance(argument, InputArgument) and not any(
            _matters(case, _redrawn(case, argument.name)) for case in cases
        ):
            reason = f"other values of {argument.name} change no output beyond its tolerance: a kernel could ignore it"
            yield _TOML, f"arguments[{index}]", reason


def _scalars_matter(task: TaskRecord, cases: list[Case]) -> Found:
    for name, axis in task.axes.items():
        if not isinstance(axis, ScalarAxis) or len(axis.choices) < 2:
            continue
        others = [
            (case, replace(case, values={**case.values, name: choice}))
            for case in cases
            for choice in axis.choices
            if choice != case.values[name]
        ]
        if not any(_matters(case, _ask(other, other.inputs)) for case, other in others):
            reason = "another choice changes no output beyond its tolerance: a kernel could ignore it"
            yield _TOML, f"axes.{name}", reason


def _redrawn(case: Case, name: str) -> Tensors:
    return _ask(case, {**case.inputs, name: case.other[name]})


def _ask(case: Case, given: Tensors) -> Tensors:
    return case.reference.expected(given, case.values)


def _matters(case: Case, answer: Tensors) -> bool:
    """Whether the gate tells another answer from the right one."""
    stored = case.stored(answer)
    return any(case.gate(name, stored[name])[0] is not None for name in case.dtypes)


def _same_bytes(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.equal(left.reshape(-1).view(torch.uint8), right.reshape(-1).view(torch.uint8))


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
