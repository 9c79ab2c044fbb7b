"""From judged configurations to ladders and scores. Pure: records in, parts of records out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from akarena.records.evaluation import (
    Case,
    CaseCorrect,
    CaseIncorrect,
    CaseNotChecked,
    EvaluationRecord,
    Gate,
    GateFailed,
    GateResult,
    GateSkipped,
    GateVoid,
    SkipReason,
    SpeedAbsent,
    SpeedMeasured,
    SpeedUnknown,
    SpeedVerdict,
    Split,
)
from akarena.records.trial import (
    Ladder,
    LadderCorrect,
    LadderIncorrect,
    LadderMeasured,
    LadderNotJudged,
    Score,
)
from akarena.statistics import Interval, geometric_mean_of_intervals, speed_verdict

_GATES = {
    Split.SEEN: (Gate.SEEN_CORRECT, Gate.SEEN_SPEED),
    Split.UNSEEN: (Gate.UNSEEN_CORRECT, Gate.UNSEEN_SPEED),
}
_CANDIDATE_AT_FAULT = {SkipReason.EARLIER_GATE_FAILED, SkipReason.EARLIER_CASE_FAILED}
_REWARD_MARGIN = 1.05


def ladders(evaluation: EvaluationRecord) -> tuple[Ladder, Ladder]:
    """Return the seen and the unseen ladder of one judgement.

    Raises:
        ValueError: A gate of either split is void: such a trial has no ladders.
    """
    floor = evaluation.quality.instrument_floor if evaluation.quality else 0.0
    seen, unseen = (
        ladder(evaluation.cases, split, gates=evaluation.gates, floor=floor) for split in (Split.SEEN, Split.UNSEEN)
    )
    return seen, unseen


def ladder(cases: Sequence[Case], split: Split, *, gates: Sequence[GateResult] = (), floor: float = 0.0) -> Ladder:
    """Sum up one split. What the other split did has no influence, except through the gates.

    The first of these that applies decides:

    1. A case is incorrect, or a gate of the split failed: ``incorrect``. A failed speed gate (faster than possible,
       answered early, wrong when timed) is a failure of the split like any other.
    2. The correctness gate was skipped, or there is no case: ``not_judged``.
    3. A case was not checked for another reason than ``unverified_on_target``, or none was checked: ``not_judged``,
       since a skipped check is never read as passed.
    4. No case has a number: ``correct``, with the reason. A failed measurement (unstable, not resolved, disturbed)
       is named before a measurement that was not tried.
    5. ``measured``. Cases without a number are counted, and enter neither mean nor verdict.

    Args:
        cases: All cases of the judgement; those of other splits are ignored.
        split: The split to sum up.
        gates: The gates of the judgement; without them the cases alone decide.
        floor: The instrument floor that each case's interval was widened by. It is shared by the cases, so it goes
            into the interval of the mean once and undiminished, and into the verdict.

    Raises:
        ValueError: A gate of the split is void.
    """
    own = [case for case in cases if case.configuration.split is split]
    by_gate = {result.gate: result for result in gates}
    correct_gate, speed_gate = (by_gate.get(gate) for gate in _GATES[split])
    for result in (correct_gate, speed_gate):
        if isinstance(result, GateVoid):
            raise ValueError(f"gate {result.gate} is void: the trial has no ladders")

    failed = [case.candidate for case in own if isinstance(case.candidate, CaseIncorrect)]
    for result in (correct_gate, speed_gate):
        if isinstance(result, GateFailed):
            return LadderIncorrect(state="incorrect", reason=result.reason, cases_failed=max(1, len(failed)))
    if failed:
        return LadderIncorrect(state="incorrect", reason=failed[0].reason, cases_failed=len(failed))

    if isinstance(correct_gate, GateSkipped):
        return LadderNotJudged(state="not_judged", reason=correct_gate.reason)
    correct = [case for case in own if isinstance(case.candidate, CaseCorrect)]
    unchecked = [case.candidate.reason for case in own if isinstance(case.candidate, CaseNotChecked)]
    strict = [reason for reason in unchecked if reason is not SkipReason.UNVERIFIED_ON_TARGET]
    if strict or not correct:
        reasons = [*strict, *unchecked, SkipReason.NOT_ASKED_FOR]
        return LadderNotJudged(state="not_judged", reason=reasons[0])
    return _correct_ladder(correct, floor)


def score(seen: Ladder | None, unseen: Ladder | None, built: bool, unchanged: bool) -> Score:
    """Score one trial that was judged.

    - ``won``: measured and ``faster`` on both splits.
    - ``bounded_reward``: from the geometric mean over all configurations of both splits that have a number.
    - Where the candidate is at fault on a split, or was not built: reward 0 and not won, whatever the target measures.
    - Where it is correct, and speed was measured but gave no number on a split (unstable, not resolved): not won, and
      the reward is null, because neither 0 nor a number would be true.
    - Where speed was not measured on a split, or the split was not judged: both null.
    - An unchanged candidate: where both would be numbers, reward 0 and not won. Its paper score follows the formula.

    Args:
        seen: Ladder of the seen configurations; None where nothing was built.
        unseen: Ladder of the unseen ones; None where nothing was built.
        built: Whether a program came of the candidate.
        unchanged: Whether the agent left the files as they were.
    """
    paper = paper_score(seen, built=built)
    if not built or seen is None or unseen is None or _at_fault(seen) or _at_fault(unseen):
        return Score(paper_score=paper, bounded_reward=0.0, won=False)
    if isinstance(seen, LadderMeasured) and isinstance(unseen, LadderMeasured):
        won = not unchanged and seen.verdict is SpeedVerdict.FASTER and unseen.verdict is SpeedVerdict.FASTER
        reward = 0.0 if unchanged else bounded_reward(overall_speedup(seen, unseen))
        return Score(paper_score=paper, bounded_reward=reward, won=won)
    tried = all(isinstance(part, LadderMeasured) or _tried(part) for part in (seen, unseen))
    if not tried:
        return Score(paper_score=paper, bounded_reward=None, won=None)
    return Score(paper_score=paper, bounded_reward=0.0 if unchanged else None, won=False)


def paper_score(seen: Ladder | None, *, built: bool) -> float:
    """Score as published: 0 not built; 20 built; 120 correct; 120 + 100 x arithmetic mean of the seen speedups.

    Only the seen configurations count. Correct without a speed (not measured, or no number) is 120; a split that was
    not judged proves nothing and is 20.
    """
    if not built:
        return 0.0
    if isinstance(seen, LadderMeasured):
        return 120.0 + 100.0 * seen.arithmetic_speedup
    return 120.0 if isinstance(seen, LadderCorrect) else 20.0


def bounded_reward(speedup: float) -> float:
    """Return max(0, 1 - 1.05 / speedup): 0 up to 5 % faster, below 1 however fast.

    Raises:
        ValueError: ``speedup`` is not a positive finite number.
    """
    if not (math.isfinite(speedup) and speedup > 0):
        raise ValueError(f"speedup must be a positive finite number, got {speedup}")
    # The quotient can vanish beside 1 in floating point; the reward stays below 1 all the same.
    return min(max(0.0, 1.0 - _REWARD_MARGIN / speedup), math.nextafter(1.0, 0.0))


def overall_speedup(seen: LadderMeasured, unseen: LadderMeasured) -> float:
    """Geometric mean over all configurations of both splits that have a number."""
    total = seen.cases * math.log(seen.geomean_speedup) + unseen.cases * math.log(unseen.geomean_speedup)
    return math.exp(total / (seen.cases + unseen.cases))


def _correct_ladder(correct: Sequence[Case], floor: float) -> Ladder:
    speeds = [case.speed for case in correct]
    measured = [speed for speed in speeds if isinstance(speed, SpeedMeasured)]
    if not measured:
        unknown = [speed.reason for speed in speeds if isinstance(speed, SpeedUnknown)]
        if unknown:
            return LadderCorrect(state="correct", reason=unknown[0].value)
        absent = [speed.reason for speed in speeds if isinstance(speed, SpeedAbsent)]
        return LadderCorrect(state="correct", reason=absent[0])
    mean = geometric_mean_of_intervals([Interval(s.speedup, s.low, s.high) for s in measured], floor=floor)
    return LadderMeasured(
        state="measured",
        verdict=speed_verdict(mean, floor),
        geomean_speedup=mean.point,
        low=mean.low,
        high=mean.high,
        arithmetic_speedup=sum(s.speedup for s in measured) / len(measured),
        cases=len(measured),
        cases_without_number=len(correct) - len(measured),
    )


def _at_fault(part: Ladder) -> bool:
    return isinstance(part, LadderIncorrect) or (
        isinstance(part, LadderNotJudged) and part.reason in _CANDIDATE_AT_FAULT
    )


def _tried(part: Ladder) -> bool:
    return isinstance(part, LadderCorrect) and not isinstance(part.reason, SkipReason)
