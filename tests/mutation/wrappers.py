"""Wrappers that spoil what a correct kernel gives, or how it is called; they know nothing but the task's record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from akarena.judge import compare
from akarena.records.evaluation import Configuration
from akarena.records.task import (
    DType,
    DTypeAxis,
    InputArgument,
    OutputArgument,
    ScalarArgument,
    SizeArgument,
    SizeAxis,
    TaskRecord,
)
from tests.mutation.mutant import Mutant, Operator

FACTOR = 4
"""How many tolerances an element is off."""
TAIL = 512
"""Most elements that are left as they were."""
PLACES = ("first", "middle", "last")
REAL = frozenset({DType.FP32, DType.FP16, DType.BF16, DType.FP8})


@dataclass(frozen=True)
class Off:
    """How far an output is moved: the largest tolerance of any configuration, times :data:`FACTOR`."""

    relative: float
    absolute: float
    units: int


@dataclass(frozen=True)
class Spoil:
    """One way to spoil an output after the call.

    Attributes:
        operator: What is done.
        output: Its name.
        place: Which element, one of :data:`PLACES`; empty where it concerns many.
    """

    operator: Operator
    output: str
    place: str = ""


@dataclass(frozen=True)
class Call:
    """One way to call wrongly.

    Attributes:
        operator: What is done.
        first: The argument that is changed.
        second: The input that it is exchanged with.
        step: By how much a size is less.
    """

    operator: Operator
    first: str
    second: str = ""
    step: int = 0


def dtypes(task: TaskRecord, argument: InputArgument | OutputArgument) -> tuple[DType, ...]:
    """Return every dtype that an argument may have."""
    axis = task.axes.get(argument.dtype)
    return axis.choices if isinstance(axis, DTypeAxis) else (DType(argument.dtype),)


def outputs(task: TaskRecord) -> list[OutputArgument]:
    """Return the outputs of a task."""
    return [argument for argument in task.arguments if isinstance(argument, OutputArgument)]


def off(task: TaskRecord, cases: Sequence[Configuration]) -> dict[DType, Off]:
    """Return how far an output of each dtype is moved."""
    found: dict[DType, Off] = {}
    for dtype, tolerance in task.tolerance.items():
        allowed = [compare.resolve(tolerance, case.values) for case in cases]
        found[dtype] = Off(
            relative=FACTOR * max(one.relative for one in allowed),
            absolute=FACTOR * max(one.absolute for one in allowed),
            units=tolerance.units + 1,
        )
    return found


def spoils(task: TaskRecord) -> Iterator[Spoil]:
    """Return every way to spoil an output."""
    for output in outputs(task):
        real = all(dtype in REAL for dtype in dtypes(task, output))
        for place in PLACES:
            yield Spoil(Operator.ONE_ELEMENT, output.name, place)
        yield Spoil(Operator.TAIL_STALE, output.name)
        yield Spoil(Operator.NEIGHBOURS_SWAPPED, output.name)
        if DType.UINT8 not in dtypes(task, output):
            yield Spoil(Operator.SIGN, output.name)
        if real:
            yield Spoil(Operator.SCALED, output.name)
            yield Spoil(Operator.NOT_A_NUMBER, output.name, "middle")


def calls(task: TaskRecord) -> Iterator[Call]:
    """Return every way to call wrongly. A size that is no argument is one of the tensors' leading extents."""
    sizes = [argument.name for argument in task.arguments if isinstance(argument, SizeArgument)]
    leading = [] if sizes else [outputs(task)[0].shape[0]]
    for name in sizes or leading:
        axis = task.axes.get(name)
        yield Call(Operator.SIZE_LESS, name, step=axis.multiple_of if isinstance(axis, SizeAxis) else 1)
    inputs = [argument for argument in task.arguments if isinstance(argument, InputArgument)]
    for one, other in combinations(inputs, 2):
        if (one.shape, one.dtype) == (other.shape, other.dtype):
            yield Call(Operator.INPUTS_SWAPPED, one.name, other.name)
    for argument in task.arguments:
        if isinstance(argument, ScalarArgument):
            yield Call(Operator.SCALAR_OFF, argument.name)


def every(task: TaskRecord) -> list[Spoil | Call]:
    """Return every wrapper of a task."""
    return [*spoils(task), *calls(task)]


def mutant(what: Spoil | Call, text: str) -> Mutant:
    """Return the mutant that a wrapped text is."""
    if isinstance(what, Spoil):
        change = " ".join(filter(None, (what.output, what.place)))
    else:
        change = " and ".join(filter(None, (what.first, what.second)))
    return Mutant("wrapped", what.operator, 0, "", change, text, 0)
