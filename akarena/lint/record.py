"""What is wrong with the content of a ``task.toml`` that is well formed: names, ranges, expressions, configurations."""

from __future__ import annotations

import ast
import keyword
from collections import Counter
from collections.abc import Mapping

from akarena.lint.configurations import TOO_WIDE, Found, all_expressions, check_configurations
from akarena.lint.space import check_axis, check_cpu
from akarena.records.task import (
    Category,
    DType,
    DTypeAxis,
    InputArgument,
    IntegersDistribution,
    OutputArgument,
    ScalarArgument,
    ScalarAxis,
    SizeArgument,
    SizeAxis,
    TaskRecord,
    UniformDistribution,
)

MAX_CAP_MIB = 1024
"""Largest memory cap: several sets of inputs and outputs of both sides are in memory at once."""

_INTEGERS = {DType.INT64, DType.INT32, DType.INT8, DType.UINT8}
_ORDER: Mapping[bool, tuple[str, ...]] = {
    True: ("output", "input", "size", "scalar"),
    False: ("input", "output", "size", "scalar"),
}
"""Order of roles in a HIP entry (True) and in a Triton entry."""


def check(task: TaskRecord) -> Found:
    """Yield every fault of a record; what depends on sound names is left out where names are wrong."""
    names = list(_names(task))
    yield from names
    faults = [*_axes(task), *_arguments(task), *check_cpu(task), *_tolerance_table(task)]
    yield from faults
    if task.memory_cap_mib > MAX_CAP_MIB:
        yield "memory_cap_mib", f"is {task.memory_cap_mib}, expected at most {MAX_CAP_MIB}"
    if names:
        return
    yield from check_configurations(task, drawable=not faults)


def _used_names(text: str) -> set[str]:
    """Names in an expression, without functions; none where it does not parse (its evaluation says so)."""
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, RecursionError):
        return set()
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called}


def _names(task: TaskRecord) -> Found:
    known = ", ".join(sorted(task.axes))
    for key, text in all_expressions(task):
        for name in sorted(_used_names(text) - set(task.axes)):
            yield key, f"uses {name!r}, which is no axis (axes: {known})"
    counts = Counter(argument.name for argument in task.arguments)
    for index, argument in enumerate(task.arguments):
        key = f"arguments[{index}]"
        if counts[argument.name] > 1:
            yield f"{key}.name", f"{argument.name!r} is the name of {counts[argument.name]} arguments"
        if keyword.iskeyword(argument.name):
            yield f"{key}.name", f"{argument.name!r} is a word of Python"
        axis = task.axes.get(argument.name)
        if isinstance(argument, SizeArgument | ScalarArgument):
            wanted = SizeAxis if isinstance(argument, SizeArgument) else ScalarAxis
            if not isinstance(axis, wanted):
                yield f"{key}.name", f"{argument.name!r} is no {argument.role} axis (axes: {known})"
            continue
        if axis is not None:
            yield f"{key}.name", f"{argument.name!r} is the name of an axis too"
        if argument.dtype not in set(DType) and not isinstance(task.axes.get(argument.dtype), DTypeAxis):
            yield f"{key}.dtype", f"{argument.dtype!r} is neither a dtype ({', '.join(DType)}) nor a dtype axis"


def _axes(task: TaskRecord) -> Found:
    in_expressions = {name for _, text in all_expressions(task) for name in _used_names(text)}
    dtypes = {a.dtype for a in task.arguments if isinstance(a, InputArgument | OutputArgument)}
    passed = {a.name for a in task.arguments if isinstance(a, SizeArgument | ScalarArgument)}
    is_hip = task.category is not Category.TRITON_TO_TRITON
    for name, axis in task.axes.items():
        key = f"axes.{name}"
        if name in set(DType):
            yield key, "has the name of a dtype"
        if isinstance(axis, SizeAxis):
            yield from check_axis(key, axis)
            if name not in in_expressions | passed:
                yield key, "is never used, neither as an argument nor in an expression"
        else:
            if len(set(axis.choices)) != len(axis.choices):
                yield f"{key}.choices", "names a value twice"
            used = dtypes if isinstance(axis, DTypeAxis) else in_expressions | passed
            if name not in used:
                yield key, f"is never used as {'the dtype of' if isinstance(axis, DTypeAxis) else ''} an argument"
        if is_hip and isinstance(axis, DTypeAxis):
            yield key, "is a dtype axis, but the C types of a HIP entry are fixed"
        elif is_hip and name not in passed:
            yield key, "is no argument, so a HIP entry could not know its value"
    if sum(isinstance(axis, SizeAxis) for axis in task.axes.values()) < 2:
        yield "axes", "has fewer than two size axes"


def _arguments(task: TaskRecord) -> Found:
    roles = [argument.role for argument in task.arguments]
    if "output" not in roles:
        yield "arguments", "has no output"
    order = _ORDER[task.category is not Category.TRITON_TO_TRITON]
    if roles != sorted(roles, key=order.index):
        yield "arguments", f"is not in the order {', '.join(f'{role}s' for role in order)}"
    for index, argument in enumerate(task.arguments):
        if not isinstance(argument, InputArgument):
            continue
        key = f"arguments[{index}].distribution"
        dtypes = _dtypes_of(task, argument.dtype)
        wants_integers = isinstance(argument.distribution, IntegersDistribution)
        if dtypes and any((dtype in _INTEGERS) is not wants_integers for dtype in dtypes):
            yield key, f"is {argument.distribution.kind!r}, which does not fit the dtype {argument.dtype}"
        if isinstance(argument.distribution, UniformDistribution) and (
            argument.distribution.low >= argument.distribution.high
        ):
            yield key, f"low {argument.distribution.low} is not below high {argument.distribution.high}"


def _dtypes_of(task: TaskRecord, dtype: str) -> tuple[DType, ...]:
    """Every dtype that an argument can have."""
    if dtype in set(DType):
        return (DType(dtype),)
    axis = task.axes.get(dtype)
    return axis.choices if isinstance(axis, DTypeAxis) else ()


def _tolerance_table(task: TaskRecord) -> Found:
    outputs = [argument for argument in task.arguments if isinstance(argument, OutputArgument)]
    needed = {dtype: argument.name for argument in outputs for dtype in _dtypes_of(task, argument.dtype)}
    for dtype, name in needed.items():
        if dtype not in task.tolerance:
            yield f"tolerance.{dtype.value}", f"is missing, the output {name} can be {dtype.value}"
    for dtype, tolerance in task.tolerance.items():
        key = f"tolerance.{dtype.value}"
        if dtype not in needed:
            yield key, f"no output is {dtype.value}"
        if dtype in _INTEGERS:
            if (tolerance.relative, tolerance.absolute) != ("0", "0"):
                yield key, "gives relative or absolute, but for integers units decides alone"
            if bool(tolerance.units) != bool(tolerance.units_share):
                yield key, "gives one of units and units_share, expected both or none"
            if tolerance.units_share >= TOO_WIDE:
                yield f"{key}.units_share", f"is {tolerance.units_share}, expected less than {TOO_WIDE}"
        elif tolerance.units or tolerance.units_share:
            yield key, "gives units, which are for integers"
