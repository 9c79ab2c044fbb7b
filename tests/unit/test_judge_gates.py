from __future__ import annotations

import pytest

from akarena.judge import gates
from akarena.judge.gates import Stop
from akarena.records.evaluation import (
    Case,
    CaseCorrect,
    CaseIncorrect,
    CaseNotChecked,
    Configuration,
    FailReason,
    Gate,
    Kind,
    OutputError,
    Round,
    SkipReason,
    SpeedAbsent,
    Split,
    VoidReason,
)

ERROR = OutputError(
    round=Round.ORDINARY, output="y", worst_ratio=0.1, baseline_worst_ratio=0.1, rms_error=0.0, baseline_rms_error=0.0
)
RIGHT = CaseCorrect(verdict="correct", errors=(ERROR,))
UNVERIFIED = CaseNotChecked(verdict="not_checked", reason=SkipReason.UNVERIFIED_ON_TARGET)
NO_SPEED = SpeedAbsent(state="absent", reason=SkipReason.NOT_MEASURED_ON_TARGET)


def wrong(reason: FailReason) -> CaseIncorrect:
    return CaseIncorrect(verdict="incorrect", reason=reason, round=None, evidence="e")


def case(split: Split, candidate: CaseCorrect | CaseIncorrect | CaseNotChecked, number: int = 0) -> Case:
    kind = None if split is Split.SEEN else Kind.EDGE
    configuration = Configuration(id=f"{split}-{number}", split=split, kind=kind, values={"n": 1})
    return Case(configuration=configuration, baseline=RIGHT, candidate=candidate, speed=NO_SPEED)


def verdicts(*cases: Case) -> dict[Gate, str]:
    return {result.gate: result.verdict for result in gates.judged(cases)}


@pytest.mark.parametrize("gate", [Gate.SCOPE, Gate.BUILD])
def test_a_stop_skips_all_later_gates(gate: Gate) -> None:
    results = gates.stopped(Stop(gate, FailReason.COMPILE_ERROR, "e"))
    assert [result.gate for result in results] == list(Gate)
    after = [result.verdict for result in results][list(Gate).index(gate) :]
    assert after == ["fail"] + ["skipped"] * (len(after) - 1)


def test_a_void_stop_is_void() -> None:
    assert gates.stopped(Stop(Gate.SCOPE, VoidReason.BASELINE_FAILED, "e"))[0].verdict == "void"


def test_a_failed_split_leaves_the_other_alone() -> None:
    found = verdicts(case(Split.SEEN, RIGHT), case(Split.UNSEEN, wrong(FailReason.WRONG_VALUES)))
    assert found[Gate.SEEN_CORRECT] == "pass"
    assert found[Gate.UNSEEN_CORRECT] == "fail"
    assert found[Gate.UNSEEN_SPEED] == "skipped"


@pytest.mark.parametrize("reason", sorted(gates.PROVEN_CHEATS))
def test_a_proven_cheat_fails_both_splits(reason: FailReason) -> None:
    found = verdicts(case(Split.SEEN, RIGHT), case(Split.UNSEEN, wrong(reason)))
    assert found[Gate.SEEN_CORRECT] == found[Gate.UNSEEN_CORRECT] == "fail"


def test_what_cannot_be_verified_is_no_pass() -> None:
    found = verdicts(case(Split.SEEN, UNVERIFIED), case(Split.UNSEEN, RIGHT), case(Split.UNSEEN, UNVERIFIED, 1))
    assert found[Gate.SEEN_CORRECT] == "skipped"
    assert found[Gate.UNSEEN_CORRECT] == "pass"


def test_without_times_speed_is_skipped_with_the_reason() -> None:
    results = {result.gate: result for result in gates.judged([case(Split.SEEN, RIGHT), case(Split.UNSEEN, RIGHT)])}
    speed = results[Gate.SEEN_SPEED]
    assert speed.verdict == "skipped"
    assert speed.reason is SkipReason.NOT_MEASURED_ON_TARGET
