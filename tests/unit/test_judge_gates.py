from __future__ import annotations

import itertools

import pytest

from akarena.judge import gates
from akarena.judge.gates import Stop
from akarena.records.evaluation import (
    Case,
    CaseCorrect,
    CaseIncorrect,
    CaseNotChecked,
    Configuration,
    Correctness,
    FailReason,
    Gate,
    Kind,
    Method,
    OutputError,
    Round,
    SkipReason,
    Speed,
    SpeedAbsent,
    SpeedMeasured,
    SpeedUnknown,
    SpeedUnknownReason,
    SpeedVerdict,
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


def case(
    split: Split,
    candidate: Correctness,
    number: int = 0,
    speed: Speed = NO_SPEED,
) -> Case:
    kind = None if split is Split.SEEN else Kind.EDGE
    configuration = Configuration(id=f"{split}-{number}", split=split, kind=kind, values={"n": 1})
    return Case(configuration=configuration, baseline=RIGHT, candidate=candidate, speed=speed)


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


NOT_REACHED = CaseNotChecked(verdict="not_checked", reason=SkipReason.EARLIER_CASE_FAILED)
MEASURED = SpeedMeasured(
    state="measured",
    verdict=SpeedVerdict.FASTER,
    speedup=2.0,
    low=1.9,
    high=2.1,
    baseline_median_us=10.0,
    candidate_median_us=5.0,
    blocks=10,
    calls_per_block=100,
    method=Method.GRAPH,
    roofline_fraction=0.5,
    outputs_checked=16,
)
UNSTABLE = SpeedUnknown(state="unknown", reason=SpeedUnknownReason.UNSTABLE, evidence="e")
STOPPED = SpeedAbsent(state="absent", reason=SkipReason.EARLIER_GATE_FAILED)
HALVES: dict[str, tuple[list[tuple[Correctness, Speed]], str, str]] = {
    # Name: what the two cases of a split came to, with what its gates must say.
    "fast": ([(RIGHT, MEASURED), (RIGHT, MEASURED)], "pass", "pass"),
    "partly timed": ([(RIGHT, MEASURED), (RIGHT, UNSTABLE)], "pass", "pass"),
    "unstable": ([(RIGHT, UNSTABLE), (RIGHT, UNSTABLE)], "pass", "skipped"),
    "untimed": ([(RIGHT, NO_SPEED), (RIGHT, NO_SPEED)], "pass", "skipped"),
    "partly verified": ([(RIGHT, NO_SPEED), (UNVERIFIED, NO_SPEED)], "pass", "skipped"),
    "unverified": ([(UNVERIFIED, NO_SPEED), (UNVERIFIED, NO_SPEED)], "skipped", "skipped"),
    "wrong": ([(wrong(FailReason.WRONG_VALUES), STOPPED), (NOT_REACHED, STOPPED)], "fail", "skipped"),
    "wrong at the end": ([(RIGHT, MEASURED), (wrong(FailReason.CRASH), STOPPED)], "fail", "skipped"),
    "cheats": ([(RIGHT, MEASURED), (wrong(FailReason.ANSWERED_EARLY), STOPPED)], "fail", "skipped"),
    "empty": ([], "skipped", "skipped"),
}


@pytest.mark.parametrize(("seen", "unseen"), list(itertools.product(HALVES, HALVES)))
def test_each_split_stands_alone_but_for_a_proven_cheat(seen: str, unseen: str) -> None:
    cases = [
        case(split, half[0], number, half[1])
        for split, name in ((Split.SEEN, seen), (Split.UNSEEN, unseen))
        for number, half in enumerate(HALVES[name][0])
    ]
    results = gates.judged(cases)
    assert [result.gate for result in results] == list(Gate)
    found = [result.verdict for result in results]
    expected = ["pass", "pass"]
    for name in (seen, unseen):
        expected += ["fail", "skipped"] if "cheats" in (seen, unseen) else list(HALVES[name][1:])
    assert found == expected
    for result in results:
        if result.verdict == "fail":
            failing = next(one for one in cases if one.configuration.id == result.configuration)
            assert isinstance(failing.candidate, CaseIncorrect)
            assert failing.candidate.reason is result.reason


def test_the_first_wrong_configuration_of_a_split_is_named() -> None:
    cases = [
        case(Split.SEEN, RIGHT, 0),
        case(Split.SEEN, wrong(FailReason.CRASH), 1),
        case(Split.SEEN, NOT_REACHED, 2),
        case(Split.UNSEEN, wrong(FailReason.ANSWERED_EARLY), 0),
    ]
    results = {result.gate: result for result in gates.judged(cases)}
    seen, unseen = results[Gate.SEEN_CORRECT], results[Gate.UNSEEN_CORRECT]
    assert seen.verdict == unseen.verdict == "fail"
    assert (seen.configuration, seen.reason) == ("seen-1", FailReason.CRASH)
    assert (unseen.configuration, unseen.reason) == ("unseen-0", FailReason.ANSWERED_EARLY)


@pytest.mark.parametrize("reason", [*FailReason, *VoidReason])
@pytest.mark.parametrize("gate", Gate)
def test_every_stop_gives_six_gates(gate: Gate, reason: FailReason | VoidReason) -> None:
    results = gates.stopped(Stop(gate, reason, "e" * 9000))
    assert [result.gate for result in results] == list(Gate)
    at = list(Gate).index(gate)
    assert {result.verdict for result in results[:at]} <= {"pass"}
    assert results[at].verdict == ("void" if isinstance(reason, VoidReason) else "fail")
    assert {result.verdict for result in results[at + 1 :]} <= {"skipped"}
