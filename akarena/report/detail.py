"""One planned trial as the report shows it, and what a person should look at. Text is bounded and made visible here."""

from __future__ import annotations

import math
from collections.abc import Iterator

from akarena import scoring
from akarena.records.evaluation import (
    Case,
    CaseCorrect,
    CaseIncorrect,
    CaseNotChecked,
    EvaluationRecord,
    FailReason,
    Gate,
    GateFailed,
    GatePassed,
    GateResult,
    GateVoid,
    Method,
    OutputError,
    Speed,
    SpeedAbsent,
    SpeedMeasured,
    SpeedUnknown,
)
from akarena.records.report import Flag
from akarena.records.report_trial import (
    CaseLine,
    GateLine,
    LogTail,
    QualityLine,
    RequestCount,
    Side,
    SpeedCell,
    TrialLine,
)
from akarena.records.trial import JudgedTrial, Ladder, LadderIncorrect, LadderMeasured, NotBuiltTrial, UnchangedTrial
from akarena.records.trial import VoidTrial as Void
from akarena.report.collect import CollectedTrial
from akarena.report.facts import Facts, reason
from akarena.report.text import block, line, number, rounded

REMARKABLE_SPEEDUP = 10.0
NEAR_ROOFLINE = 0.8
UNSEEN_DROP = 0.5
_SUSPICIOUS = frozenset(
    {
        FailReason.ANSWERED_EARLY,
        FailReason.BASELINE_BROKEN,
        FailReason.CALLS_NOT_APART,
        FailReason.DEVICE_KEPT_BUSY,
        FailReason.DEVICE_MEMORY_TAKEN,
        FailReason.FASTER_THAN_POSSIBLE,
        FailReason.INPUT_CHANGED,
        FailReason.NOTHING_LAUNCHED,
        FailReason.OUT_OF_BOUNDS,
        FailReason.PROTOCOL_BROKEN,
        FailReason.WRONG_WHEN_TIMED,
    }
)


def trial_line(trial: CollectedTrial, known: Facts, *, speed_measured: bool) -> TrialLine:
    """Lay out one trial."""
    outcome, beside = trial.outcome, trial.beside
    evaluation, trajectory = beside.evaluation, beside.trajectory
    note = trial.note
    if isinstance(outcome, Void):
        note = f"{outcome.reason}: {outcome.evidence}"
    elif isinstance(outcome, NotBuiltTrial):
        note = outcome.reason
    score = known.score
    overall = known.overall
    return TrialLine(
        task_id=trial.task_id,
        configuration_id=trial.configuration_id,
        attempt=trial.attempt,
        status=known.status,
        note=line(note),
        tries=trial.tries,
        seen=_side(known.seen),
        unseen=_side(known.unseen),
        overall=None if overall is None else rounded(overall),
        won=score.won if score and speed_measured else None,
        paper_score=rounded(score.paper_score, 4) if score else None,
        bounded_reward=rounded(score.bounded_reward)
        if score and speed_measured and score.bounded_reward is not None
        else None,
        agent_end=outcome.agent_end if outcome else "",
        agent_minutes=None if known.agent_minutes is None else rounded(known.agent_minutes),
        judge_minutes=rounded(outcome.judge_seconds / 60) if outcome else None,
        check_calls=trajectory.check_calls if trajectory else None,
        tokens=known.tokens,
        cost_usd=None if known.cost_usd is None else rounded(known.cost_usd, 4),
        candidate_digest=None if outcome is None or isinstance(outcome, Void) else outcome.candidate_digest,
        gates=tuple(_gate(result) for result in evaluation.gates) if evaluation else (),
        cases=tuple(_case(case, speed_measured) for case in evaluation.cases) if evaluation else (),
        diff=beside.diff,
        logs=tuple(LogTail(name=name, text=text) for name, text in beside.logs),
        requests=tuple(
            RequestCount(verdict=verdict, reason=why, requests=count)
            for (verdict, why), count in sorted(beside.requests.items())
        ),
        work=beside.work,
        quality=_quality(evaluation) if evaluation and speed_measured else None,
        inspection=beside.inspection,
        inspection_note="" if beside.inspection else _why_not_inspected(trial),
    )


def trial_flags(trial: CollectedTrial, known: Facts, *, speed_measured: bool) -> list[Flag]:
    """List what a person should look at in one trial. Nothing is removed for it."""
    where = f"{trial.task_id}, {trial.configuration_id}, attempt {trial.attempt}"
    found = [*trial.beside.problems, *_speed_flags(trial, known), *_cheat_flags(trial), *trial.beside.findings]
    if known.status == "missing":
        found.insert(0, f"missing: {trial.note}")
    if not speed_measured and isinstance(trial.outcome, JudgedTrial | UnchangedTrial):
        parts = (trial.outcome.seen, trial.outcome.unseen)
        if any(isinstance(part, LadderMeasured) for part in parts):
            found.append("states a speed although the run has no calibration; the speed is not shown")
    if not _consistent(trial):
        found.append("trial.json differs from what its evaluation.json gives")
    return [Flag(where=where, what=line(what)) for what in dict.fromkeys(found)]


def _why_not_inspected(trial: CollectedTrial) -> str:
    if trial.outcome is None:
        return "the trial is missing"
    if isinstance(trial.outcome, Void):
        return "the trial is void"
    gate = (
        next((g for g in trial.beside.evaluation.gates if g.gate is Gate.SCOPE), None)
        if trial.beside.evaluation
        else None
    )
    if isinstance(gate, GateFailed):
        return f"there was nothing to compile ({gate.reason})"
    return "no usable inspection.json: it was switched off, or the file is at fault"


def _speed_flags(trial: CollectedTrial, known: Facts) -> Iterator[str]:
    for name, part in (("seen", known.seen), ("unseen", known.unseen)):
        if isinstance(part, LadderMeasured) and part.geomean_speedup > REMARKABLE_SPEEDUP:
            yield f"{number(rounded(part.geomean_speedup))}x faster on {name} configurations"
    if (
        isinstance(known.seen, LadderMeasured)
        and isinstance(known.unseen, LadderMeasured)
        and known.unseen.geomean_speedup < UNSEEN_DROP * known.seen.geomean_speedup
    ):
        yield "the unseen speedup is less than half of the seen one"
    for case in trial.beside.evaluation.cases if trial.beside.evaluation else ():
        if not isinstance(case.candidate, CaseCorrect) or not isinstance(case.speed, SpeedMeasured):
            continue
        if case.speed.roofline_fraction > NEAR_ROOFLINE:
            yield f"{case.configuration.id}: {number(rounded(case.speed.roofline_fraction))} of the roofline"
        if case.speed.method is Method.PLAIN:
            yield f"{case.configuration.id}: timed as plain calls, not as a graph"
        for text in case.speed.flags:
            yield f"{case.configuration.id}: {text}"


def _cheat_flags(trial: CollectedTrial) -> Iterator[str]:
    for result in trial.beside.evaluation.gates if trial.beside.evaluation else ():
        if isinstance(result, GateFailed) and result.reason in _SUSPICIOUS:
            yield f"gate {result.gate}: {result.reason}"
    for case in trial.beside.evaluation.cases if trial.beside.evaluation else ():
        if isinstance(case.baseline, CaseIncorrect):
            yield f"{case.configuration.id}: the baseline is wrong ({case.baseline.reason}), a defect of the task"


def _consistent(trial: CollectedTrial) -> bool:
    outcome = trial.outcome
    if trial.beside.evaluation is None or not isinstance(outcome, JudgedTrial | UnchangedTrial):
        return True
    try:
        found = scoring.ladders(trial.beside.evaluation)
        score = scoring.score(*found, built=True, unchanged=isinstance(outcome, UnchangedTrial))
    except (ValueError, ArithmeticError):
        return False
    return all(
        _same(one.model_dump(), other.model_dump())
        for one, other in zip((*found, score), (outcome.seen, outcome.unseen, outcome.score), strict=True)
    )


def _same(one: dict[str, object], other: dict[str, object]) -> bool:
    """Compare two parts of records; floats may differ by what another machine's arithmetic gives."""

    def close(a: object, b: object) -> bool:
        if isinstance(a, float) and isinstance(b, float):
            return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)
        return a == b

    return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)


def _side(part: Ladder | None) -> Side | None:
    if part is None:
        return None
    measured = part if isinstance(part, LadderMeasured) else None
    return Side(
        state=part.state,
        reason=reason(part) + (f", {part.cases_failed} wrong" if isinstance(part, LadderIncorrect) else ""),
        speed=_cell(measured.geomean_speedup, measured.low, measured.high) if measured else None,
        arithmetic=rounded(measured.arithmetic_speedup) if measured else None,
        cases=measured.cases if measured else 0,
        cases_without_number=measured.cases_without_number if measured else 0,
    )


def _cell(speedup: float, low: float, high: float) -> SpeedCell:
    return SpeedCell(speedup=rounded(speedup), low=rounded(low), high=rounded(high))


def _quality(evaluation: EvaluationRecord) -> QualityLine | None:
    found = evaluation.quality
    if found is None:
        return None
    ratios = [
        alone.between_us / max(alone.before_us or 0.0, alone.after_us)
        for alone in found.baseline_alone
        if alone.between_us is not None
    ]
    return QualityLine(
        instrument_floor_percent=rounded(100 * found.instrument_floor),
        idle_looks=found.idle_looks,
        busy_looks=found.busy_looks,
        beside_over_alone=tuple(rounded(ratio, 4) for ratio in ratios),
    )


def _gate(result: GateResult) -> GateLine:
    code = "" if isinstance(result, GatePassed) else result.reason.value
    if isinstance(result, GatePassed):
        evidence = result.note
    else:
        evidence = result.evidence if isinstance(result, GateFailed | GateVoid) else ""
    failed = result.configuration if isinstance(result, GateFailed) else None
    return GateLine(
        gate=result.gate,
        verdict=result.verdict,
        reason=code,
        configuration=line(failed or "", 40),
        evidence=block(evidence, lines=12),
    )


def _case(case: Case, speed_measured: bool) -> CaseLine:
    found = case.candidate
    errors: tuple[OutputError, ...] = () if isinstance(found, CaseNotChecked) else found.errors
    speed = case.speed if isinstance(found, CaseCorrect) and speed_measured else None
    measured = speed if isinstance(speed, SpeedMeasured) else None
    return CaseLine(
        configuration=case.configuration.id,
        split=case.configuration.split,
        kind=case.configuration.kind,
        values=line(", ".join(f"{name}={value}" for name, value in sorted(case.configuration.values.items()))),
        candidate="correct" if isinstance(found, CaseCorrect) else found.reason.value,
        worst_ratio=rounded(max(error.worst_ratio for error in errors)) if errors else None,
        baseline_us=rounded(measured.baseline_median_us, 4) if measured else None,
        candidate_us=rounded(measured.candidate_median_us, 4) if measured else None,
        speed=_cell(measured.speedup, measured.low, measured.high) if measured else None,
        speed_note=_speed_note(speed),
    )


def _speed_note(speed: Speed | None) -> str:
    match speed:
        case SpeedMeasured():
            return speed.verdict.value
        case SpeedUnknown() | SpeedAbsent():
            return speed.reason.value
        case None:
            return ""
