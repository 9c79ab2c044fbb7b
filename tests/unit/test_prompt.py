from __future__ import annotations

import pytest

from akarena import configurations, paths, prompt, tasks
from akarena.records.task import TargetName
from akarena.tasks import Task

ALL = tasks.load_all(paths.root() / "tasks")


def rendered(task: Task, target: TargetName = TargetName.CUDA, contract: bool = True) -> str:
    return prompt.render(task.record, target, "sm_90", contract=contract, check_calls=5, seconds=600)


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.id)
def test_a_prompt_tells_the_seen_and_hides_the_rest(task: Task) -> None:
    text = rendered(task)
    assert task.record.entry in text
    assert task.record.formula in text
    oracle = task.oracle.read_text("utf-8")
    assert not any(line in text for line in oracle.splitlines() if len(line.strip()) > 30)
    for tolerance in task.record.tolerance.values():
        assert not any(value in text for value in (tolerance.relative, tolerance.absolute) if len(value) > 4)
    for case in configurations.unseen(task.record, TargetName.CUDA, b"s" * 32):
        line = ", ".join(f"{name} = {value}" for name, value in case.values.items())
        assert line not in text


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.id)
def test_the_contract_can_be_withheld(task: Task) -> None:
    assert "These are legal" in rendered(task)
    assert "These are legal" not in rendered(task, contract=False)


def test_the_signature_is_that_of_the_kernel() -> None:
    task = next(task for task in ALL if task.id == "hip2hip/softmax")
    assert prompt.signature(task.record) == "float* y, const float* x, int rows, int cols, hipStream_t stream"
    assert "wave size is 32" in rendered(task)
    assert "wave size is 64" in rendered(task, TargetName.ROCM)
