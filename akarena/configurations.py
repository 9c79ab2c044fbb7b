"""Seen configurations as declared, and unseen ones drawn from a task's declared space.

The unseen ones come in the published mix of six kinds. Every draw is legal by construction: it is in range, a multiple
where asked, meets all constraints and the memory cap, and equals no seen configuration and no other draw.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from akarena import expressions
from akarena.records.evaluation import Configuration, Kind, Split
from akarena.records.task import (
    DTypeAxis,
    InputArgument,
    OutputArgument,
    ScalarAxis,
    SizeAxis,
    TargetName,
    TaskRecord,
    Value,
)

UNSEEN_MIX = (
    Kind.EDGE,
    Kind.SCALE_UP,
    Kind.SCALE_DOWN,
    Kind.ALIGNMENT_STRESS,
    Kind.ALIGNMENT_STRESS,
    Kind.ASYMMETRIC,
    Kind.PRODUCTION_LIKE,
    Kind.PRODUCTION_LIKE,
)
"""Kinds of the eight unseen configurations, as published."""

_ATTEMPTS = 4000


class SpaceError(ValueError):
    """A task's space is inconsistent or holds no configuration of some kind."""


@dataclass(frozen=True)
class Space:
    """The legal configurations of a task on one target."""

    task: TaskRecord
    sizes: Mapping[str, SizeAxis]
    seen: tuple[Mapping[str, Value], ...]

    @cached_property
    def seen_volumes(self) -> list[int]:
        """Size of each seen problem, which scaled configurations are held against."""
        return [_volume(self, values) for values in self.seen]

    def fault(self, values: Mapping[str, Value]) -> str | None:
        """Say why a configuration is not legal, or None where it is."""
        axes = self.task.axes
        if set(values) != set(axes):
            return f"needs exactly the axes {', '.join(sorted(axes))}, got {', '.join(sorted(values))}"
        for name, axis in axes.items():
            value = values[name]
            if isinstance(axis, SizeAxis):
                limits = self.sizes[name]
                if not isinstance(value, int) or not limits.min <= value <= limits.max:
                    return f"{name} = {value!r} is outside {limits.min}..{limits.max}"
                if value % limits.multiple_of:
                    return f"{name} = {value} is not a multiple of {limits.multiple_of}"
            elif isinstance(axis, ScalarAxis):
                if isinstance(value, str) or float(value) not in axis.choices:
                    return f"{name} = {value!r} is none of {axis.choices}"
            elif value not in axis.choices:
                return f"{name} = {value!r} is none of {', '.join(axis.choices)}"
        for constraint in self.task.constraints:
            if not expressions.evaluate(constraint, values):
                return f"does not meet {constraint!r}"
        used = set_bytes(self.task, values)
        if used > self.task.memory_cap_mib * 2**20:
            return f"needs {-(-used // 2**20)} MiB, the cap is {self.task.memory_cap_mib} MiB"
        return None


def space(task: TaskRecord, target: TargetName) -> Space:
    """Return the space of a task on a target; ``cpu`` has a smaller one."""
    sizes = {name: axis for name, axis in task.axes.items() if isinstance(axis, SizeAxis)}
    if target is not TargetName.CPU:
        return Space(task, sizes, task.seen)
    if task.cpu is None:
        raise SpaceError("has no [cpu] table, which the cpu target needs")
    smaller = {
        name: axis.model_copy(
            update={
                "min": task.cpu.min.get(name, axis.min),
                "max": task.cpu.max.get(name, axis.max),
                "production": task.cpu.production.get(name, ()),
            }
        )
        for name, axis in sizes.items()
    }
    return Space(task, smaller, task.cpu.seen)


def resolve_dtype(dtype: str, values: Mapping[str, Value]) -> str:
    """Return the dtype that an argument has in a configuration; ``dtype`` may be the name of an axis."""
    return str(values.get(dtype, dtype))


def tensor_shape(argument: InputArgument | OutputArgument, values: Mapping[str, Value]) -> tuple[int, ...]:
    """Return the shape of a tensor argument in a configuration."""
    return tuple(expressions.evaluate_size(extent, values) for extent in argument.shape)


def used_dtypes(task: TaskRecord, values: Mapping[str, Value]) -> frozenset[str]:
    """Return every dtype that a configuration uses."""
    tensors = [argument for argument in task.arguments if isinstance(argument, InputArgument | OutputArgument)]
    chosen = {str(values[name]) for name, axis in task.axes.items() if isinstance(axis, DTypeAxis)}
    return frozenset({resolve_dtype(argument.dtype, values) for argument in tensors} | chosen)


def set_bytes(task: TaskRecord, values: Mapping[str, Value]) -> int:
    """Return the bytes of all inputs and outputs of one call."""
    total = 0
    for argument in task.arguments:
        if isinstance(argument, InputArgument | OutputArgument):
            count = 1
            for extent in tensor_shape(argument, values):
                count *= extent
            total += count * expressions.DTYPE_BYTES[resolve_dtype(argument.dtype, values)]
    return total


def seen(task: TaskRecord, target: TargetName) -> list[Configuration]:
    """Return the declared configurations of a task on a target."""
    return [
        Configuration(id=f"seen-{index}", split=Split.SEEN, kind=None, values=dict(values))
        for index, values in enumerate(space(task, target).seen)
    ]


def unseen(
    task: TaskRecord,
    target: TargetName,
    seed: bytes,
    verified: Callable[[Mapping[str, Value]], bool] = lambda values: True,
) -> list[Configuration]:
    """Draw the eight unseen configurations of a task.

    Args:
        task: The task.
        target: The target, whose space is used.
        seed: Secret of the run; the same seed gives the same configurations.
        verified: Says whether the target can verify a configuration. At least every second draw is such a one.

    Raises:
        SpaceError: The space holds no further configuration of some kind.
    """
    where = space(task, target)
    generator = random.Random(hashlib.sha256(b"unseen\0" + task.id.encode() + b"\0" + seed).digest())
    taken = [dict(values) for values in where.seen]
    drawn = []
    for index, kind in enumerate(UNSEEN_MIX):
        before = UNSEEN_MIX[:index].count(kind)
        values = draw(where, kind, generator, taken, before)
        while index % 2 == 0 and not verified(values):
            values = draw(where, kind, generator, taken, before)
        taken.append(values)
        drawn.append(Configuration(id=f"unseen-{index}", split=Split.UNSEEN, kind=kind, values=values))
    return drawn


def draw(
    where: Space, kind: Kind, generator: random.Random, taken: list[dict[str, Value]] | None = None, before: int = 0
) -> dict[str, Value]:
    """Draw one legal configuration of a kind that is not among ``taken``; ``before`` of the kind were drawn already.

    Raises:
        SpaceError: None was found.
    """
    smallest, largest = min(where.seen_volumes), max(where.seen_volumes)
    for _ in range(_ATTEMPTS):
        ways = _DRAWS[kind]
        sizes = ways[before % len(ways)](where, generator)
        values: dict[str, Value] = {}
        for name, axis in where.task.axes.items():
            if isinstance(axis, SizeAxis):
                values[name] = sizes[name]
            elif isinstance(axis, ScalarAxis | DTypeAxis):
                choice = generator.choice(axis.choices)
                values[name] = choice if isinstance(choice, float) else str(choice)
        if where.fault(values) is not None or values in (taken or []):
            continue
        volume = _volume(where, values)
        if kind is Kind.SCALE_UP and volume <= largest:
            continue
        if kind is Kind.SCALE_DOWN and volume >= smallest:
            continue
        return values
    raise SpaceError(f"no {kind.value} configuration was found in {_ATTEMPTS} draws; widen the axes or the cap")


def _volume(where: Space, values: Mapping[str, Value]) -> int:
    """Size of a problem: the bytes of its tensors, whatever their dtype would be."""
    widest = {name: ("fp32" if isinstance(axis, DTypeAxis) else values[name]) for name, axis in where.task.axes.items()}
    return set_bytes(where.task, widest)


def _snap(axis: SizeAxis, value: float) -> int:
    """Nearest legal value of an axis."""
    step = axis.multiple_of
    lowest, highest = -(-axis.min // step), axis.max // step
    return min(max(round(value / step), lowest), highest) * step


def _log_uniform(axis: SizeAxis, generator: random.Random, low: float, high: float) -> int:
    """Draw between two fractions of the axis' range, on a logarithmic scale."""
    ratio = axis.max / axis.min
    return _snap(axis, axis.min * ratio ** generator.uniform(low, high))


def _edge(where: Space, generator: random.Random) -> dict[str, int]:
    sizes = {
        name: generator.choice((_snap(axis, axis.min), _log_uniform(axis, generator, 0.0, 1.0)))
        for name, axis in where.sizes.items()
    }
    pinned = generator.choice(sorted(where.sizes))
    sizes[pinned] = _snap(where.sizes[pinned], where.sizes[pinned].min)
    return sizes


def _scaled(where: Space, generator: random.Random, base: Callable[[list[int]], int], up: bool) -> dict[str, int]:
    """Scale an extreme seen configuration by a factor on some of its sizes."""
    start = where.seen[where.seen_volumes.index(base(where.seen_volumes))]
    sizes = {name: int(start[name]) for name in where.sizes}
    changed = generator.sample(sorted(sizes), generator.randint(1, len(sizes)))
    for name in changed:
        factor = generator.uniform(1.1, 3.0)
        sizes[name] = _snap(where.sizes[name], sizes[name] * factor if up else sizes[name] / factor)
    return sizes


def _scale_up(where: Space, generator: random.Random) -> dict[str, int]:
    return _scaled(where, generator, max, up=True)


def _scale_down(where: Space, generator: random.Random) -> dict[str, int]:
    return _scaled(where, generator, min, up=False)


def _alignment_stress(where: Space, generator: random.Random) -> dict[str, int]:
    """Primes and odd composites, times the step that the axis demands."""
    sizes = {}
    for name, axis in where.sizes.items():
        value = _log_uniform(axis, generator, 0.2, 0.9) // axis.multiple_of
        odd = value | 1
        if generator.random() < 0.5:
            while not _is_prime(odd):
                odd += 2
        sizes[name] = odd * axis.multiple_of
    return sizes


def _twice_odd(where: Space, generator: random.Random) -> dict[str, int]:
    """Twice odd numbers, times the step: pairs fit and fours do not, where other lines run than where nothing fits."""
    return {
        name: 2 * (_log_uniform(axis, generator, 0.2, 0.9) // axis.multiple_of // 2 | 1) * axis.multiple_of
        for name, axis in where.sizes.items()
    }


def _asymmetric(where: Space, generator: random.Random) -> dict[str, int]:
    """One size near its top, another near its bottom."""
    names = generator.sample(sorted(where.sizes), len(where.sizes))
    sizes = {name: _log_uniform(where.sizes[name], generator, 0.2, 0.7) for name in names}
    sizes[names[0]] = _log_uniform(where.sizes[names[0]], generator, 0.75, 1.0)
    if len(names) > 1:
        sizes[names[1]] = _log_uniform(where.sizes[names[1]], generator, 0.0, 0.2)
    return sizes


def _production_like(where: Space, generator: random.Random) -> dict[str, int]:
    return {
        name: generator.choice(axis.production) if axis.production else _log_uniform(axis, generator, 0.3, 0.8)
        for name, axis in where.sizes.items()
    }


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


_DRAWS: dict[Kind, tuple[Callable[[Space, random.Random], dict[str, int]], ...]] = {
    Kind.EDGE: (_edge,),
    Kind.SCALE_UP: (_scale_up,),
    Kind.SCALE_DOWN: (_scale_down,),
    Kind.ALIGNMENT_STRESS: (_alignment_stress, _twice_odd),
    Kind.ASYMMETRIC: (_asymmetric,),
    Kind.PRODUCTION_LIKE: (_production_like,),
}
"""How each kind is drawn; where there are several ways, the draws of a judgement take turns."""
