"""What is wrong with the configurations of a task, seen and drawn, and with its expressions in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from akarena import configurations, expressions
from akarena.configurations import Space, SpaceError, resolve_dtype, set_bytes
from akarena.expressions import ExpressionError
from akarena.records.task import (
    DType,
    InputArgument,
    IntegersDistribution,
    NormalDistribution,
    OutputArgument,
    TargetName,
    TaskRecord,
    Value,
)

Found = Iterator[tuple[str, str]]
"""Key path and reason."""

LARGE_BYTES = 16 * 2**20
"""A memory-bound configuration moves more than this: more than rests in a GPU's inner caches."""
SMALL_BYTES = 2**20
"""A small configuration moves less than this."""
TOO_WIDE = 0.5
"""A tolerance from here on is as large as the outputs."""
SEEDS = 8
"""How many runs' unseen configurations are drawn for each target."""

_BITS = {DType.INT64: 63, DType.INT32: 31, DType.INT8: 7, DType.UINT8: 8}
"""Bits of an integer dtype, without the sign."""


def check_configurations(task: TaskRecord, *, drawable: bool) -> Found:
    """Yield what is wrong with seen configurations, and with expressions there and in unseen ones.

    Args:
        task: The task; every name in its expressions is an axis.
        drawable: Whether its axes are sound enough to draw unseen configurations.
    """
    legal: list[Mapping[str, Value]] = []
    broken = False
    spaces = _spaces(task)
    for prefix, _, where in spaces:
        faults, sound = _seen(f"{prefix}seen", where)
        yield from faults
        legal += sound
        broken |= bool(faults)
    if drawable and not broken:
        for prefix, target, _ in spaces:
            try:
                for seed in range(SEEDS):
                    drawn = configurations.unseen(task, target, hashlib.sha256(bytes([seed])).digest())
                    legal += [configuration.values for configuration in drawn]
            except (SpaceError, ExpressionError) as error:
                yield prefix.rstrip(".") or "axes", f"unseen configurations on {target.value}: {error}"
    # One message a key: an expression that is wrong in one configuration mostly is so in all.
    found: dict[str, str] = {}
    for values in legal:
        for key, reason in _values(task, values):
            found.setdefault(key, f"{reason} in {_short(values)}")
    yield from found.items()
    if not broken and not any(key.startswith("work.bytes") for key in found):
        yield from _traffic(task)


def all_expressions(task: TaskRecord) -> Iterator[tuple[str, str]]:
    """All expressions of a task, with their keys."""
    for index, text in enumerate(task.constraints):
        yield f"constraints[{index}]", text
    for index, argument in enumerate(task.arguments):
        if isinstance(argument, InputArgument | OutputArgument):
            for dimension, text in enumerate(argument.shape):
                yield f"arguments[{index}].shape[{dimension}]", text
        if isinstance(argument, InputArgument):
            distribution = argument.distribution
            if isinstance(distribution, NormalDistribution):
                yield f"arguments[{index}].distribution.std", distribution.std
            elif isinstance(distribution, IntegersDistribution):
                yield f"arguments[{index}].distribution.low", distribution.low
                yield f"arguments[{index}].distribution.high", distribution.high
    yield "work.bytes", task.work.bytes
    yield "work.flops", task.work.flops
    for dtype, tolerance in task.tolerance.items():
        yield f"tolerance.{dtype.value}.relative", tolerance.relative
        yield f"tolerance.{dtype.value}.absolute", tolerance.absolute


def _spaces(task: TaskRecord) -> list[tuple[str, TargetName, Space]]:
    """The spaces of a task, each with the prefix of its keys: that of the GPU targets and that of ``cpu``."""
    gpu = next((target for target in task.targets if target is not TargetName.CPU), TargetName.CUDA)
    spaces = [("", gpu, configurations.space(task, gpu))]
    if task.cpu is not None:
        spaces.append(("cpu.", TargetName.CPU, configurations.space(task, TargetName.CPU)))
    return spaces


def _seen(key: str, where: Space) -> tuple[list[tuple[str, str]], list[Mapping[str, Value]]]:
    """Return the faults of declared configurations, and those configurations that are legal."""
    faults: list[tuple[str, str]] = []
    legal: list[Mapping[str, Value]] = []
    for index, values in enumerate(where.seen):
        try:
            fault = where.fault(values)
        except ExpressionError:
            # The expression itself is at fault; evaluating each one under its own key tells which.
            faults += [(place, str(error)) for place, error in _failing(where.task, values)]
            continue
        if fault is not None:
            faults.append((f"{key}[{index}]", f"is not legal: {fault}"))
        elif values in where.seen[:index]:
            faults.append((f"{key}[{index}]", f"is the same as {key}[{where.seen.index(values)}]"))
        else:
            legal.append(values)
    return list(dict.fromkeys(faults)), legal


def _failing(task: TaskRecord, values: Mapping[str, Value]) -> Iterator[tuple[str, ExpressionError]]:
    for key, text in all_expressions(task):
        try:
            expressions.evaluate_size(text, values) if ".shape[" in key else expressions.evaluate(text, values)
        except ExpressionError as error:
            yield key, error


def _values(task: TaskRecord, values: Mapping[str, Value]) -> Found:
    """What the expressions of a task give in one legal configuration."""
    failing = dict(_failing(task, values))
    for key, error in failing.items():
        yield key, str(error)
    number = {key: expressions.evaluate(text, values) for key, text in all_expressions(task) if key not in failing}
    for key, value in number.items():
        if key.startswith("tolerance.") and not 0 <= value < TOO_WIDE:
            yield key, f"is {value:g}, expected 0 or more and less than {TOO_WIDE}"
        elif key.endswith(".std") and value <= 0:
            yield key, f"is {value:g}, expected more than 0"
    for index, argument in enumerate(task.arguments):
        if not (isinstance(argument, InputArgument) and isinstance(argument.distribution, IntegersDistribution)):
            continue
        key = f"arguments[{index}].distribution"
        low, high = number.get(f"{key}.low"), number.get(f"{key}.high")
        if low is None or high is None:
            continue
        dtype = DType(resolve_dtype(argument.dtype, values))
        bits = _BITS.get(dtype, 63)
        if not low < high:
            yield key, f"low {low:g} is not below high {high:g}"
        elif high > 2**bits or low < (0 if dtype is DType.UINT8 else -(2**bits)):
            yield key, f"{low:g}..{high:g} does not fit into {dtype.value}"
    if number.get("work.flops", 0) < 0:
        yield "work.flops", f"is {number['work.flops']:g}, expected 0 or more"
    moved, every = number.get("work.bytes"), set_bytes(task, values)
    if moved is not None and not 0 < moved <= every:
        yield "work.bytes", f"is {moved:g}, expected more than 0 and at most {every} (all inputs and outputs once)"


def _traffic(task: TaskRecord) -> Found:
    moved = [expressions.evaluate(task.work.bytes, values) for values in task.seen]
    if max(moved) <= LARGE_BYTES:
        yield "seen", f"none is memory-bound: the largest moves {_mib(max(moved))}, expected one over 16 MiB"
    if min(moved) >= SMALL_BYTES:
        yield "seen", f"none is small: the smallest moves {_mib(min(moved))}, expected one under 1 MiB"


def _mib(count: float) -> str:
    return f"{count / 2**20:.3g} MiB"


def _short(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())
