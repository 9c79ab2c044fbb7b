"""What is wrong with the ranges of a task: its size axes and the smaller ones of the cpu target."""

from __future__ import annotations

from collections.abc import Iterator

from akarena.records.task import (
    Category,
    CpuRange,
    DType,
    InputArgument,
    OutputArgument,
    SizeAxis,
    TargetName,
    TaskRecord,
)

_INTERPRETED_WRONG = {DType.BF16.value, DType.FP8.value}
"""Dtypes whose arithmetic Triton's interpreter gets wrong, so that the cpu target leaves them unverified."""


def check_axis(key: str, axis: SizeAxis, source: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a size axis.

    Args:
        key: Its key path.
        axis: The axis.
        source: Key path of its production values, where they stand elsewhere.
    """
    if axis.min > axis.max:
        yield key, f"min {axis.min} is larger than max {axis.max}"
    elif axis.max // axis.multiple_of * axis.multiple_of < axis.min:
        yield key, f"{axis.min}..{axis.max} holds no multiple of {axis.multiple_of}"
    place = source or f"{key}.production"
    for value in axis.production:
        if not axis.min <= value <= axis.max:
            yield place, f"{value} is outside {axis.min}..{axis.max}"
        elif value % axis.multiple_of:
            yield place, f"{value} is not a multiple of {axis.multiple_of}"
    if len(set(axis.production)) != len(axis.production):
        yield place, "names a value twice"


def check_cpu(task: TaskRecord) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the ``[cpu]`` table, apart from its configurations."""
    wanted = TargetName.CPU in task.targets
    if len(set(task.targets)) != len(task.targets):
        yield "targets", "names a target twice"
    if task.cpu is None:
        if wanted:
            yield "cpu", "is missing, but targets lists cpu"
        return
    if not wanted:
        yield "cpu", "is there, but targets does not list cpu"
    sizes = {name: axis for name, axis in task.axes.items() if isinstance(axis, SizeAxis)}
    for table in ("min", "max", "production"):
        names = set(getattr(task.cpu, table))
        for name in sorted(names - set(sizes)):
            yield f"cpu.{table}.{name}", "is no size axis"
        if table != "min" and set(sizes) - names:
            yield f"cpu.{table}", f"lacks {', '.join(sorted(set(sizes) - names))}"
    for name, axis in sizes.items():
        yield from _range(task.cpu, name, axis)
    if task.category is Category.TRITON_TO_TRITON and all(
        _unverified(task, index) for index in range(len(task.cpu.seen))
    ):
        yield "cpu.seen", "every one holds bf16 or fp8, which the cpu target does not verify"


def _range(cpu: CpuRange, name: str, axis: SizeAxis) -> Iterator[tuple[str, str]]:
    low, high = cpu.min.get(name, axis.min), cpu.max.get(name, axis.max)
    if low < axis.min:
        yield f"cpu.min.{name}", f"is {low}, below the axis' own {axis.min}"
    if high > axis.max:
        yield f"cpu.max.{name}", f"is {high}, above the axis' own {axis.max}"
    smaller = axis.model_copy(update={"min": low, "max": high, "production": cpu.production.get(name, ())})
    yield from check_axis(f"cpu.max.{name}", smaller, f"cpu.production.{name}")


def _unverified(task: TaskRecord, index: int) -> bool:
    assert task.cpu is not None
    values = task.cpu.seen[index]
    tensors = (argument for argument in task.arguments if isinstance(argument, InputArgument | OutputArgument))
    return any(values.get(argument.dtype, argument.dtype) in _INTERPRETED_WRONG for argument in tensors)
