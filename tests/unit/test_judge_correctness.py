"""The reference: what the oracle may say, and that nothing of it stays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from akarena import paths, tasks
from akarena.judge import correctness
from akarena.judge.correctness import Checked, OracleError, Reference
from akarena.judge.side import Answer
from akarena.records.evaluation import CaseCorrect, CaseIncorrect, FailReason, Round
from akarena.records.task import Value

SOFTMAX = tasks.load(paths.root() / "tasks" / "hip2hip" / "softmax")
VALUES: Mapping[str, Value] = {"rows": 4, "cols": 8}


def answer() -> Answer:
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    return Answer({"x": x}, {"y": torch.softmax(x, 1)})


def test_the_oracle_of_a_task_is_loaded_and_agrees_with_an_honest_answer() -> None:
    reference = Reference(SOFTMAX.record, correctness.load_oracle(SOFTMAX.oracle))
    found = reference.compare(answer(), VALUES)["y"]
    assert found.reason is None
    assert reference.seconds_on(VALUES) > 0
    assert reference.seconds_on({"rows": 5, "cols": 8}) == 0


def test_expected_values_are_overwritten_after_the_comparison() -> None:
    kept: list[torch.Tensor] = []

    def oracle(x: torch.Tensor, **values: Any) -> dict[str, torch.Tensor]:
        kept.append(torch.softmax(x.double(), 1))
        return {"y": kept[0]}

    Reference(SOFTMAX.record, oracle).compare(answer(), VALUES)
    assert not kept[0].any()


def nan(**values: Any) -> dict[str, torch.Tensor]:
    return {"y": torch.full((4, 8), math.nan, dtype=torch.float64)}


def nothing(**values: Any) -> dict[str, torch.Tensor]:
    return {"z": torch.zeros(4, 8)}


@pytest.mark.parametrize(("oracle", "said"), [(nan, "gives NaN in y"), (nothing, "gives no y")])
def test_an_oracle_without_an_answer_is_a_fault_of_the_task(oracle: correctness.Oracle, said: str) -> None:
    with pytest.raises(OracleError, match=said):
        Reference(SOFTMAX.record, oracle).compare(answer(), VALUES)


def test_an_oracle_of_another_shape_is_refused() -> None:
    reference = Reference(SOFTMAX.record, lambda **values: {"y": torch.zeros(8, dtype=torch.float64)})
    with pytest.raises(ValueError, match="oracle gives"):
        reference.compare(answer(), VALUES)


def test_an_oracle_that_cannot_be_imported_is_told(tmp_path: Path) -> None:
    with pytest.raises(OracleError, match="cannot be imported"):
        correctness.load_oracle(tmp_path / "oracle.txt")


def test_a_verdict_keeps_the_errors_of_the_rounds_that_could_be_compared() -> None:
    reference = Reference(SOFTMAX.record, correctness.load_oracle(SOFTMAX.oracle))
    error = reference.compare(answer(), VALUES)["y"]
    baseline = {(round_, "y"): error for round_ in Round}
    right = correctness.verdict(Checked(dict(baseline)), baseline)
    assert isinstance(right, CaseCorrect)
    assert [found.round for found in right.errors] == list(Round)
    one = {(Round.ORDINARY, "y"): error}
    wrong = correctness.verdict(Checked(one, FailReason.CRASH, Round.LARGE, "e" * 5000), baseline)
    assert isinstance(wrong, CaseIncorrect)
    assert (wrong.reason, wrong.round, len(wrong.errors), len(wrong.evidence)) == (
        FailReason.CRASH,
        Round.LARGE,
        1,
        4000,
    )


def test_a_scrubbed_answer_holds_nothing() -> None:
    private = answer()
    private.scrub()
    assert not private.inputs["x"].any()
    assert not private.outputs["y"].any()
