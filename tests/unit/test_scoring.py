import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akarena import scoring
from akarena.records.evaluation import (
    Case,
    CaseCorrect,
    CaseIncorrect,
    CaseNotChecked,
    Configuration,
    Correctness,
    FailReason,
    Gate,
    GateFailed,
    GatePassed,
    GateSkipped,
    GateVoid,
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
from akarena.records.trial import Ladder, LadderCorrect, LadderIncorrect, LadderMeasured, LadderNotJudged, Score

RIGHT = CaseCorrect(
    verdict="correct",
    errors=(
        OutputError(
            round=Round.ORDINARY,
            output="y",
            worst_ratio=0.1,
            baseline_worst_ratio=0.1,
            rms_error=0.0,
            baseline_rms_error=0.0,
        ),
    ),
)
WRONG = CaseIncorrect(verdict="incorrect", reason=FailReason.WRONG_VALUES, round=Round.LARGE, evidence="off")
ABSENT = SpeedAbsent(state="absent", reason=SkipReason.NOT_MEASURED_ON_TARGET)


def measured(speedup: float, spread: float = 1.01) -> SpeedMeasured:
    return SpeedMeasured(
        state="measured",
        verdict=SpeedVerdict.FASTER,
        speedup=speedup,
        low=speedup / spread,
        high=speedup * spread,
        baseline_median_us=100.0,
        candidate_median_us=100.0 / speedup,
        blocks=10,
        calls_per_block=20,
        method=Method.GRAPH,
        roofline_fraction=0.5,
        outputs_checked=16,
    )


def unknown(reason: SpeedUnknownReason = SpeedUnknownReason.UNSTABLE) -> SpeedUnknown:
    return SpeedUnknown(state="unknown", reason=reason, evidence="")


def case(index: int, candidate: Correctness, speed: Speed, split: Split = Split.SEEN) -> Case:
    kind = Kind.EDGE if split is Split.UNSEEN else None
    configuration = Configuration(id=f"{split}-{index}", split=split, kind=kind, values={"n": 8})
    return Case(configuration=configuration, baseline=RIGHT, candidate=candidate, speed=speed)


def cases(*speeds: Speed) -> list[Case]:
    return [case(i, RIGHT, speed) for i, speed in enumerate(speeds)]


def ladder(*speedups: float, verdict: SpeedVerdict = SpeedVerdict.FASTER, without: int = 0) -> LadderMeasured:
    mean = math.exp(sum(map(math.log, speedups)) / len(speedups))
    return LadderMeasured(
        state="measured",
        verdict=verdict,
        geomean_speedup=mean,
        low=mean,
        high=mean,
        arithmetic_speedup=sum(speedups) / len(speedups),
        cases=len(speedups),
        cases_without_number=without,
    )


CORRECT = LadderCorrect(state="correct", reason=SkipReason.NOT_MEASURED_ON_TARGET)
UNSTABLE = LadderCorrect(state="correct", reason="unstable")
INCORRECT = LadderIncorrect(state="incorrect", reason=FailReason.WRONG_VALUES, cases_failed=1)
EARLIER = LadderNotJudged(state="not_judged", reason=SkipReason.EARLIER_GATE_FAILED)
NOT_ASKED = LadderNotJudged(state="not_judged", reason=SkipReason.NOT_ASKED_FOR)
EVERY: list[Ladder] = [
    ladder(2.0),
    ladder(0.5, verdict=SpeedVerdict.SLOWER),
    CORRECT,
    UNSTABLE,
    INCORRECT,
    EARLIER,
    NOT_ASKED,
]


def test_f25_means_of_a_ladder() -> None:
    result = scoring.ladder(cases(measured(2.0), measured(0.5)), Split.SEEN)
    assert isinstance(result, LadderMeasured)
    assert result.geomean_speedup == pytest.approx(1.0)
    assert result.arithmetic_speedup == pytest.approx(1.25)
    assert result.verdict is SpeedVerdict.NO_DIFFERENCE_SHOWN


def test_one_wrong_case_fails_its_split_and_not_the_other() -> None:
    judged = [
        *cases(measured(2.0), measured(2.0)),
        case(0, RIGHT, measured(3.0), Split.UNSEEN),
        case(1, WRONG, SpeedAbsent(state="absent", reason=SkipReason.EARLIER_CASE_FAILED), Split.UNSEEN),
        case(2, WRONG, SpeedAbsent(state="absent", reason=SkipReason.EARLIER_CASE_FAILED), Split.UNSEEN),
    ]
    seen, unseen = scoring.ladder(judged, Split.SEEN), scoring.ladder(judged, Split.UNSEEN)
    assert isinstance(seen, LadderMeasured)
    assert seen.verdict is SpeedVerdict.FASTER
    assert unseen == LadderIncorrect(state="incorrect", reason=FailReason.WRONG_VALUES, cases_failed=2)


def test_a_case_without_number_is_counted_and_not_averaged() -> None:
    result = scoring.ladder(cases(measured(2.0), unknown(), ABSENT), Split.SEEN)
    assert isinstance(result, LadderMeasured)
    assert (result.cases, result.cases_without_number) == (1, 2)
    assert result.geomean_speedup == pytest.approx(2.0)


def test_cases_without_any_number_make_no_speed_and_no_win() -> None:
    result = scoring.ladder(cases(ABSENT, unknown(SpeedUnknownReason.NOT_RESOLVED), unknown()), Split.SEEN)
    assert result == LadderCorrect(state="correct", reason="not_resolved")
    assert scoring.score(result, ladder(9.0), True, False) == Score(paper_score=120, bounded_reward=None, won=False)


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ([], NOT_ASKED),
        ([SkipReason.UNVERIFIED_ON_TARGET] * 2, SkipReason.UNVERIFIED_ON_TARGET),
        ([SkipReason.EARLIER_CASE_FAILED], SkipReason.EARLIER_CASE_FAILED),
        ([None, SkipReason.UNVERIFIED_ON_TARGET], CORRECT),
        ([None, SkipReason.UNVERIFIED_ON_TARGET, SkipReason.NOT_ASKED_FOR], SkipReason.NOT_ASKED_FOR),
    ],
)
def test_what_was_not_checked_is_never_read_as_passed(
    candidates: list[SkipReason | None], expected: Ladder | SkipReason
) -> None:
    judged = [
        case(i, RIGHT if reason is None else CaseNotChecked(verdict="not_checked", reason=reason), ABSENT)
        for i, reason in enumerate(candidates)
    ]
    if isinstance(expected, SkipReason):
        expected = LadderNotJudged(state="not_judged", reason=expected)
    assert scoring.ladder(judged, Split.SEEN) == expected


def test_gates_decide_over_cases() -> None:
    good = cases(measured(50.0))
    cheat = GateFailed(
        verdict="fail", gate=Gate.SEEN_SPEED, reason=FailReason.FASTER_THAN_POSSIBLE, evidence="0.1 of the floor"
    )
    passed = GatePassed(verdict="pass", gate=Gate.SEEN_CORRECT)
    expected = LadderIncorrect(state="incorrect", reason=FailReason.FASTER_THAN_POSSIBLE, cases_failed=1)
    assert scoring.ladder(good, Split.SEEN, gates=[passed, cheat]) == expected
    skipped = GateSkipped(verdict="skipped", gate=Gate.SEEN_CORRECT, reason=SkipReason.EARLIER_GATE_FAILED)
    assert scoring.ladder([], Split.SEEN, gates=[skipped]) == EARLIER
    other = GateFailed(verdict="fail", gate=Gate.UNSEEN_CORRECT, reason=FailReason.CRASH, evidence="")
    assert isinstance(scoring.ladder(good, Split.SEEN, gates=[passed, other]), LadderMeasured)
    void = GateVoid(verdict="void", gate=Gate.SEEN_CORRECT, reason=VoidReason.JUDGE_CRASHED, evidence="")
    with pytest.raises(ValueError, match="void"):
        scoring.ladder(good, Split.SEEN, gates=[void])


def test_the_floor_enters_the_verdict() -> None:
    judged = cases(*[measured(1.06, 1.05 * 1.001)] * 8)
    tight = scoring.ladder(judged, Split.SEEN, floor=0.0)
    wide = scoring.ladder(judged, Split.SEEN, floor=0.05)
    assert isinstance(tight, LadderMeasured)
    assert isinstance(wide, LadderMeasured)
    assert tight.verdict is SpeedVerdict.FASTER
    assert wide.verdict is SpeedVerdict.NO_DIFFERENCE_SHOWN
    assert wide.high - wide.low > tight.high - tight.low


@pytest.mark.parametrize(
    ("seen", "built", "expected"),
    [
        (None, False, 0),
        (INCORRECT, True, 20),
        (NOT_ASKED, True, 20),
        (CORRECT, True, 120),
        (UNSTABLE, True, 120),
        (ladder(2.0, 0.5), True, 245),
    ],
)
def test_paper_score(seen: Ladder | None, built: bool, expected: float) -> None:
    assert scoring.paper_score(seen, built=built) == pytest.approx(expected)
    if seen is not None:
        assert scoring.score(seen, INCORRECT, built, False).paper_score == pytest.approx(expected)


@pytest.mark.parametrize(("speedup", "expected"), [(0.01, 0), (1.0, 0), (1.05, 0), (2.1, 0.5), (1e300, 1)])
def test_bounded_reward(speedup: float, expected: float) -> None:
    assert scoring.bounded_reward(speedup) == pytest.approx(expected)
    assert 0 <= scoring.bounded_reward(speedup) < 1


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_bounded_reward_refuses_what_is_no_speedup(bad: float) -> None:
    with pytest.raises(ValueError):
        scoring.bounded_reward(bad)


def test_reward_is_over_all_configurations_of_both_splits() -> None:
    result = scoring.score(ladder(2.0), ladder(4.0, 4.0, 4.0), True, False)
    assert result.bounded_reward == pytest.approx(1 - 1.05 / 2 ** (7 / 4))
    assert result.won is True


def test_win_needs_faster_on_both() -> None:
    slower = ladder(0.5, verdict=SpeedVerdict.SLOWER)
    level = ladder(1.1, verdict=SpeedVerdict.NO_DIFFERENCE_SHOWN)
    for other in (slower, level):
        assert scoring.score(ladder(3.0), other, True, False).won is False
        assert scoring.score(other, ladder(3.0), True, False).won is False


def test_unchanged_never_wins_and_keeps_the_published_formula() -> None:
    assert scoring.score(ladder(2.0), ladder(2.0), True, True) == Score(paper_score=320, bounded_reward=0.0, won=False)
    assert scoring.score(CORRECT, CORRECT, True, True) == Score(paper_score=120, bounded_reward=None, won=None)
    assert scoring.score(UNSTABLE, ladder(2.0), True, True) == Score(paper_score=120, bounded_reward=0.0, won=False)


def test_fault_is_zero_even_where_speed_is_not_measured() -> None:
    assert scoring.score(None, None, False, False) == Score(paper_score=0, bounded_reward=0, won=False)
    assert scoring.score(CORRECT, INCORRECT, True, False) == Score(paper_score=120, bounded_reward=0, won=False)
    assert scoring.score(INCORRECT, EARLIER, True, False) == Score(paper_score=20, bounded_reward=0, won=False)
    assert scoring.score(CORRECT, NOT_ASKED, True, False) == Score(paper_score=120, bounded_reward=None, won=None)


def test_every_pair_of_ladders_has_a_score_that_keeps_the_rules() -> None:
    for seen, unseen, unchanged in itertools.product(EVERY, EVERY, (False, True)):
        result = scoring.score(seen, unseen, True, unchanged)
        both = isinstance(seen, LadderMeasured) and isinstance(unseen, LadderMeasured)
        if result.won:
            assert both
            assert not unchanged
        if result.bounded_reward:
            assert both
        if result.won is None:
            assert result.bounded_reward is None


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12))
def test_overall_speedup_is_the_mean_of_all(seen: list[float], unseen: list[float]) -> None:
    both = scoring.overall_speedup(ladder(*seen), ladder(*unseen))
    assert both == pytest.approx(ladder(*seen, *unseen).geomean_speedup)
