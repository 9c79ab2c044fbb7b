"""From judged configurations to the six gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from akarena.records.evaluation import (
    Case,
    CaseCorrect,
    CaseIncorrect,
    CaseNotChecked,
    FailReason,
    Gate,
    GateFailed,
    GatePassed,
    GateResult,
    GateSkipped,
    GateVoid,
    SkipReason,
    SpeedAbsent,
    SpeedMeasured,
    Split,
    VoidReason,
)

PROVEN_CHEATS = frozenset(
    {
        FailReason.ANSWERED_EARLY,
        FailReason.WRONG_WHEN_TIMED,
        FailReason.FASTER_THAN_POSSIBLE,
        FailReason.DEVICE_KEPT_BUSY,
        FailReason.CALLS_NOT_APART,
    }
)
"""Reasons that fail both splits, since a program that does this is right on neither."""

_SPLITS = {
    Split.SEEN: (Gate.SEEN_CORRECT, Gate.SEEN_SPEED),
    Split.UNSEEN: (Gate.UNSEEN_CORRECT, Gate.UNSEEN_SPEED),
}


@dataclass(frozen=True)
class Stop:
    """Why the judgement ended before any configuration was judged."""

    gate: Gate
    reason: FailReason | VoidReason
    evidence: str


def stopped(stop: Stop) -> tuple[GateResult, ...]:
    """Return the gates of a judgement that ended at one of them."""
    results: list[GateResult] = []
    for gate in Gate:
        if gate is stop.gate:
            if isinstance(stop.reason, VoidReason):
                results.append(GateVoid(verdict="void", gate=gate, reason=stop.reason, evidence=stop.evidence[:8000]))
            else:
                results.append(GateFailed(verdict="fail", gate=gate, reason=stop.reason, evidence=stop.evidence[:8000]))
        elif len(results) and not isinstance(results[-1], GatePassed):
            results.append(GateSkipped(verdict="skipped", gate=gate, reason=SkipReason.EARLIER_GATE_FAILED))
        else:
            results.append(GatePassed(verdict="pass", gate=gate))
    return tuple(results)


def judged(cases: Sequence[Case]) -> tuple[GateResult, ...]:
    """Return the gates of a candidate that was built and judged."""
    results: list[GateResult] = [GatePassed(verdict="pass", gate=gate) for gate in (Gate.SCOPE, Gate.BUILD)]
    cheat = next(
        (
            case
            for case in cases
            if isinstance(case.candidate, CaseIncorrect) and case.candidate.reason in PROVEN_CHEATS
        ),
        None,
    )
    for split, (correct_gate, speed_gate) in _SPLITS.items():
        own = [case for case in cases if case.configuration.split is split]
        correct = _correct(correct_gate, own, cheat)
        results += [correct, _speed(speed_gate, own, correct)]
    return tuple(results)


def _correct(gate: Gate, own: Sequence[Case], cheat: Case | None) -> GateResult:
    wrong = next((case for case in own if isinstance(case.candidate, CaseIncorrect)), cheat)
    if wrong is not None and isinstance(wrong.candidate, CaseIncorrect):
        return GateFailed(
            verdict="fail",
            gate=gate,
            reason=wrong.candidate.reason,
            configuration=wrong.configuration.id,
            evidence=wrong.candidate.evidence,
        )
    checked = [case for case in own if isinstance(case.candidate, CaseCorrect)]
    if not checked:
        reasons = [case.candidate.reason for case in own if isinstance(case.candidate, CaseNotChecked)]
        return GateSkipped(verdict="skipped", gate=gate, reason=reasons[0] if reasons else SkipReason.NOT_ASKED_FOR)
    open_ = len(own) - len(checked)
    note = f"{open_} of {len(own)} configurations cannot be verified on this target" if open_ else ""
    return GatePassed(verdict="pass", gate=gate, note=note)


def _speed(gate: Gate, own: Sequence[Case], correct: GateResult) -> GateResult:
    if not isinstance(correct, GatePassed):
        reason = correct.reason if isinstance(correct, GateSkipped) else SkipReason.EARLIER_GATE_FAILED
        return GateSkipped(verdict="skipped", gate=gate, reason=reason)
    measured = [case for case in own if isinstance(case.speed, SpeedMeasured)]
    if measured:
        rest = len(own) - len(measured)
        return GatePassed(verdict="pass", gate=gate, note=f"{rest} configurations gave no number" if rest else "")
    absent = [case.speed.reason for case in own if isinstance(case.speed, SpeedAbsent)]
    return GateSkipped(verdict="skipped", gate=gate, reason=absent[0] if absent else SkipReason.NO_TIMED_CASE)
