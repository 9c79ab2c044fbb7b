from pathlib import Path

import pytest

from akarena import tasks
from akarena.errors import UserError
from akarena.records.task import Category
from akarena.tasks import Task
from tests.tasks import fixtures
from tests.tasks.fixtures import HIP, PYTORCH, TRITON, copy, edit

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def three() -> list[Task]:
    return tasks.load_all(fixtures.HERE)


def ids(chosen: list[Task]) -> list[str]:
    return [task.id for task in chosen]


def test_discover_is_sorted_by_category_and_name(tmp_path: Path) -> None:
    for task in fixtures.ALL:
        copy(tmp_path, task)
    (tmp_path / "tasks" / "hip2hip" / "empty").mkdir()
    (tmp_path / "tasks" / "README.md").write_text("")
    found = tasks.discover(tmp_path / "tasks")
    assert list(found) == [HIP, TRITON, PYTORCH]
    assert all(folder == tmp_path / "tasks" / name for name, folder in found.items())


def test_real_tasks_load() -> None:
    loaded = tasks.load_all(ROOT / "tasks")
    assert {task.record.category for task in loaded} == set(Category)
    assert all(task.oracle.is_file() and task.baseline.is_file() for task in loaded)


@pytest.mark.parametrize(
    ("task", "baseline"),
    [(HIP, "agent/kernel.hip"), (TRITON, "agent/kernel.py"), (PYTORCH, "agent/module.py")],
)
def test_baseline(task: str, baseline: str) -> None:
    assert tasks.load(fixtures.HERE / task).baseline == fixtures.HERE / task / baseline


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ([], [HIP, TRITON, PYTORCH]),
        ([TRITON], [TRITON]),
        (["row_dot"], [PYTORCH]),
        (["hip2hip"], [HIP]),
        (["*2hip/*"], [HIP, PYTORCH]),
        (["*"], [HIP, TRITON, PYTORCH]),
        (["tag:elementwise"], [HIP, TRITON]),
        (["tag:reduction"], [PYTORCH]),
        (["difficulty:1"], [HIP, TRITON, PYTORCH]),
        # The order is that of the tasks, and a task chosen twice is taken once.
        ([PYTORCH, "tag:elementwise", HIP], [HIP, TRITON, PYTORCH]),
    ],
)
def test_select(three: list[Task], patterns: list[str], expected: list[str]) -> None:
    assert ids(tasks.select(three, patterns)) == expected


@pytest.mark.parametrize(
    ("pattern", "nearest"),
    [
        ("hip2hip/scale_shft", HIP),
        ("row_dott", "row_dot"),
        ("hip2hop", "hip2hip"),
        ("tag:elementwize", "tag:elementwise"),
        ("difficulty:2", "difficulty:1"),
    ],
)
def test_select_unknown_names_the_nearest(three: list[Task], pattern: str, nearest: str) -> None:
    with pytest.raises(UserError) as raised:
        tasks.select(three, ["hip2hip", pattern])
    message = str(raised.value)
    assert message.startswith(f"--tasks: task {pattern!r} does not exist; did you mean ")
    assert nearest in message.partition("did you mean ")[2].partition("? (known: ")[0].split(" or ")
    assert message.endswith(f"(known: {HIP}, {PYTORCH}, {TRITON})")


@pytest.mark.parametrize("pattern", ["zzzzzz", "HIP2HIP", "tag:", "difficulty:", "difficulty:01", "", "hip2hip/"])
def test_select_takes_nothing_else(three: list[Task], pattern: str) -> None:
    with pytest.raises(UserError, match="does not exist"):
        tasks.select(three, [pattern])


def test_load_names_file_and_key(tmp_path: Path) -> None:
    folder = copy(tmp_path)
    edit(folder / "task.toml", ("difficulty = 1", "difficulty = 2026-01-02"))
    with pytest.raises(UserError, match=r"task\.toml: difficulty: .*2026-01-02"):
        tasks.load(folder)
    (folder / "task.toml").write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"task\.toml: is not TOML"):
        tasks.load(folder)
    with pytest.raises(UserError, match=r"task\.toml: cannot be read \(No such file or directory\)"):
        tasks.load(tmp_path)


def test_digest_covers_names_and_bytes_of_all_files(tmp_path: Path) -> None:
    folder = copy(tmp_path)
    seen = {tasks.load(folder).digest}
    edit(folder / "judge" / "oracle.py", ("scale *", "2 * scale *"))
    seen.add(tasks.load(folder).digest)
    (folder / "solution" / "kernel.hip").rename(folder / "solution" / "other.hip")
    seen.add(tasks.load(folder).digest)
    (folder / "judge" / "__pycache__").mkdir()
    (folder / "judge" / "__pycache__" / "oracle.pyc").write_bytes(b"")
    assert len(seen) == 3
    assert tasks.load(folder).digest in seen
