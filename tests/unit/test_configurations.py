import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akarena import configurations, expressions, tasks
from akarena.configurations import UNSEEN_MIX, Space, SpaceError
from akarena.records.evaluation import Kind, Split
from akarena.records.task import SizeAxis, TargetName, TaskRecord, Value
from tests.tasks import fixtures
from tests.tasks.fixtures import HIP, TRITON, copy, edit

ROOT = Path(__file__).resolve().parents[2]
REAL = tasks.discover(ROOT / "tasks")
TARGETS = (TargetName.CPU, TargetName.CUDA)
SEEDS = st.binary(min_size=32, max_size=32)
every_space = pytest.mark.parametrize("target", TARGETS)
every_task = pytest.mark.parametrize("name", REAL)


@cache
def record(name: str) -> TaskRecord:
    return tasks.load(REAL[name]).record


def edited(root: Path, task: str, *changes: tuple[str, str]) -> TaskRecord:
    folder = copy(root, task)
    edit(folder / "task.toml", *changes)
    return tasks.load(folder).record


PINNED = [
    (26718, 8, 2.0),
    (4096, 9264, 0.5),
    (64, 136, 2.0),
    (17, 108, 0.5),
    (270, 552, 2.0),
    (1, 8000, 0.5),
    (1, 768, 0.5),
    (1, 4096, 2.0),
]


def example() -> TaskRecord:
    return tasks.load(fixtures.HERE / HIP).record


def legal(task: TaskRecord, target: TargetName, values: Mapping[str, Value]) -> bool:
    """A second, independent reading of what is legal."""
    if values.keys() != task.axes.keys():
        return False
    for name, axis in task.axes.items():
        value = values[name]
        if isinstance(axis, SizeAxis):
            low, high = axis.min, axis.max
            if target is TargetName.CPU:
                assert task.cpu is not None
                low, high = task.cpu.min.get(name, low), task.cpu.max[name]
            if type(value) is not int or value not in range(low, high + 1) or value % axis.multiple_of:
                return False
        elif value not in axis.choices:
            return False
    total = 0
    for argument in task.arguments:
        if argument.role in ("input", "output"):
            shape = configurations.tensor_shape(argument, values)
            size = expressions.DTYPE_BYTES[str(values.get(argument.dtype, argument.dtype))]
            for extent in shape:
                size *= extent
            total += size
    met = all(expressions.evaluate(constraint, values) for constraint in task.constraints)
    return met and total <= task.memory_cap_mib * 2**20


@every_task
@every_space
@settings(max_examples=12, deadline=None)
@given(seed=SEEDS)
def test_unseen(name: str, target: TargetName, seed: bytes) -> None:
    task = record(name)
    drawn = configurations.unseen(task, target, seed)
    assert [c.kind for c in drawn] == list(UNSEEN_MIX)
    assert [c.id for c in drawn] == [f"unseen-{index}" for index in range(8)]
    assert {c.split for c in drawn} == {Split.UNSEEN}
    assert all(legal(task, target, c.values) for c in drawn)
    values = [c.values for c in drawn]
    assert all(values.count(one) == 1 for one in values)
    seen = [c.values for c in configurations.seen(task, target)]
    assert not any(one in seen for one in values)
    assert configurations.unseen(task, target, seed) == drawn


@every_task
@every_space
@settings(max_examples=4, deadline=None)
@given(seed=SEEDS, position=st.integers(0, 255))
def test_unseen_differ_by_seed(name: str, target: TargetName, seed: bytes, position: int) -> None:
    other = (int.from_bytes(seed, "big") ^ (1 << position)).to_bytes(32, "big")
    task = record(name)
    assert configurations.unseen(task, target, seed) != configurations.unseen(task, target, other)


@every_task
@every_space
@settings(max_examples=8, deadline=None)
@given(seed=SEEDS)
def test_each_kind_is_what_its_name_says(name: str, target: TargetName, seed: bytes) -> None:
    task = record(name)
    where = configurations.space(task, target)
    volumes = [configurations.set_bytes(task, {**values, **_fp32(task)}) for values in where.seen]
    odd: list[bool] = []
    for configuration in configurations.unseen(task, target, seed):
        values, sizes = configuration.values, {axis: int(configuration.values[axis]) for axis in where.sizes}
        volume = configurations.set_bytes(task, {**values, **_fp32(task)})
        match configuration.kind:
            case Kind.EDGE:
                assert any(sizes[axis] == _lowest(limits) for axis, limits in where.sizes.items())
            case Kind.SCALE_UP:
                assert volume > max(volumes)
            case Kind.SCALE_DOWN:
                assert volume < min(volumes)
            case Kind.ALIGNMENT_STRESS:
                # The first is odd, the second twice odd.
                steps = [sizes[axis] // limits.multiple_of for axis, limits in where.sizes.items()]
                assert all(step % 2 == 1 for step in steps) or all(step % 4 == 2 for step in steps)
                odd.append(steps[0] % 2 == 1)
            case Kind.ASYMMETRIC:
                position = {
                    axis: (sizes[axis] - limits.min) / (limits.max - limits.min) for axis, limits in where.sizes.items()
                }
                assert max(position.values()) > min(position.values())
            case Kind.PRODUCTION_LIKE:
                assert all(sizes[axis] in limits.production for axis, limits in where.sizes.items())
    assert odd == [True, False]


def _lowest(axis: SizeAxis) -> int:
    return -(-axis.min // axis.multiple_of) * axis.multiple_of


def _fp32(task: TaskRecord) -> dict[str, str]:
    return {name: "fp32" for name, axis in task.axes.items() if axis.kind == "dtype"}


def test_the_mix_is_the_published_one() -> None:
    counts = {kind: UNSEEN_MIX.count(kind) for kind in Kind}
    assert sum(counts.values()) == 8
    assert {kind for kind, count in counts.items() if count == 2} == {Kind.ALIGNMENT_STRESS, Kind.PRODUCTION_LIKE}
    assert all(counts.values())


def test_tasks_do_not_share_their_draws() -> None:
    task = example()
    other = task.model_copy(update={"id": "hip2hip/another"})
    seed = bytes(32)
    assert configurations.unseen(task, TargetName.CUDA, seed) != configurations.unseen(other, TargetName.CUDA, seed)


def test_a_seed_gives_the_same_configurations_for_ever() -> None:
    # A run is judged again from its seed, perhaps years later: a change here needs a new version of the records.
    drawn = configurations.unseen(example(), TargetName.CUDA, bytes(range(32)))
    assert [tuple(c.values.values()) for c in drawn] == PINNED


def test_seen_are_those_declared() -> None:
    task = example()
    assert task.cpu is not None
    assert [c.values for c in configurations.seen(task, TargetName.CUDA)] == [dict(v) for v in task.seen]
    found = configurations.seen(task, TargetName.CPU)
    assert [c.values for c in found] == [dict(v) for v in task.cpu.seen]
    assert [(c.id, c.split, c.kind) for c in found[:2]] == [("seen-0", Split.SEEN, None), ("seen-1", Split.SEEN, None)]


SOUND: dict[str, Value] = {"rows": 64, "cols": 256, "scale": 0.5}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"rows": 1, "cols": 8}, None),
        ({"rows": 65536, "cols": 1020}, None),
        ({"rows": 0}, "rows = 0 is outside 1..65536"),
        ({"rows": 65537}, "rows = 65537 is outside 1..65536"),
        ({"rows": 64.0}, "rows = 64.0 is outside 1..65536"),
        ({"rows": "64"}, "rows = '64' is outside 1..65536"),
        ({"cols": 258}, "cols = 258 is not a multiple of 4"),
        ({"scale": 0.25}, "scale = 0.25 is none of"),
        ({"scale": "0.5"}, "scale = '0.5' is none of"),
        ({"scale": 2}, None),
        ({"rows": 65536, "cols": 1028}, "does not meet 'rows * cols <= 2 ** 26'"),
        ({"depth": 3}, "needs exactly the axes cols, rows, scale, got cols, depth, rows, scale"),
    ],
)
def test_fault(change: dict[str, Value], reason: str | None) -> None:
    fault = configurations.space(example(), TargetName.CUDA).fault({**SOUND, **change})
    assert fault is None if reason is None else (fault is not None and fault.startswith(reason))


def test_fault_of_missing_axis_and_of_the_cap(tmp_path: Path) -> None:
    task = edited(tmp_path, HIP, ("memory_cap_mib = 512", "memory_cap_mib = 1"))
    where = configurations.space(task, TargetName.CUDA)
    assert where.fault({"rows": 64, "cols": 256}) == "needs exactly the axes cols, rows, scale, got cols, rows"
    # 2 * 4 * 256 * 512 bytes are 1 MiB; the row of shifts is 2 KiB more.
    assert where.fault({**SOUND, "rows": 256, "cols": 512}) == "needs 2 MiB, the cap is 1 MiB"
    assert where.fault({**SOUND, "rows": 255, "cols": 512}) is None


def test_fault_of_a_dtype() -> None:
    where = configurations.space(tasks.load(fixtures.HERE / TRITON).record, TargetName.CUDA)
    assert where.fault({"rows": 1, "cols": 8, "dtype": "fp16"}) is None
    assert where.fault({"rows": 1, "cols": 8, "dtype": "bf16"}) == "dtype = 'bf16' is none of fp16, fp32"


def test_set_bytes_follow_the_dtype() -> None:
    task = tasks.load(fixtures.HERE / TRITON).record
    for dtype, size in (("fp16", 2), ("fp32", 4)):
        values: dict[str, Value] = {"rows": 3, "cols": 8, "dtype": dtype}
        assert configurations.set_bytes(task, values) == (3 * 8 + 8 + 3 * 8) * size


def test_cpu_space_is_smaller_and_needs_a_table() -> None:
    task = example()
    where = configurations.space(task, TargetName.CPU)
    assert (where.sizes["rows"].max, where.sizes["cols"].min, where.sizes["cols"].max) == (64, 8, 512)
    assert where.sizes["cols"].multiple_of == 4
    with pytest.raises(SpaceError, match=r"no \[cpu\] table"):
        configurations.space(task.model_copy(update={"cpu": None}), TargetName.CPU)


def test_space_without_room_says_which_kind(tmp_path: Path) -> None:
    task = edited(tmp_path, HIP, ("2 ** 26", "2 ** 24"))
    with pytest.raises(SpaceError, match="no scale_up configuration"):
        configurations.unseen(task, TargetName.CUDA, bytes(32))


def test_draw_avoids_what_is_taken() -> None:
    task = example()
    small = {name: SizeAxis(kind="size", min=low, max=low, multiple_of=1) for name, low in (("rows", 2), ("cols", 8))}
    where = Space(task, small, ({"rows": 2, "cols": 8, "scale": 0.5},))
    first: dict[str, Value] = {"rows": 2, "cols": 8, "scale": 0.5}
    assert configurations.draw(where, Kind.EDGE, random.Random(0), [first]) == {**first, "scale": 2.0}
    with pytest.raises(SpaceError, match="no edge configuration"):
        configurations.draw(where, Kind.EDGE, random.Random(0), [first, {**first, "scale": 2.0}])
