"""What a judgement says about a mutant; that nothing but a candidate's fault counts as a kill is decided here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from akarena.judgement import Verdict
from akarena.records.evaluation import (
    CaseCorrect,
    FailReason,
    Gate,
    GateFailed,
    GatePassed,
    GateVoid,
)


class End(StrEnum):
    """What became of a mutant."""

    KILLED_SEEN = "killed_seen"
    """A seen configuration refused it."""
    KILLED_UNSEEN = "killed_unseen"
    """Only an unseen configuration refused it."""
    STILLBORN = "stillborn"
    """It does not compile, so it is no kernel."""
    IDENTICAL = "identical"
    """The compiler makes the same machine code of it."""
    UNREACHED = "unreached"
    """Its line is never run: a trap in its place passes too."""
    SURVIVED = "survived"
    """It passed."""
    VOID = "void"
    """There is no verdict, which is an error of the instrument."""


KILLED = frozenset({End.KILLED_SEEN, End.KILLED_UNSEEN})
_STILLBORN = frozenset(
    {
        FailReason.MISSING_FILE,
        FailReason.UNREADABLE_FILE,
        FailReason.COMPILE_ERROR,
        FailReason.COMPILE_TIMEOUT,
        FailReason.COMPILE_RESOURCES,
        FailReason.ENTRY_NOT_FOUND,
    }
)
"""Reasons before anything is loaded."""
_COMPILE_ERRORS = ("CompilationError", "InterpreterError", "SyntaxError", "NameError", "TypeError")
"""What Triton raises for a kernel that it cannot compile, and its interpreter in that place; on the first call."""


@dataclass(frozen=True)
class Found:
    """What became of one mutant.

    Attributes:
        end: That.
        reason: Why it was refused, or why there is no verdict; empty where it passed.
        configuration: The first configuration that refused it.
        evidence: What the judge says, for a person.
    """

    end: End
    reason: str = ""
    configuration: str = ""
    evidence: str = ""


@dataclass(frozen=True)
class Margins:
    """Largest error over tolerance in any round of any configuration; 1 is the tolerance."""

    candidate: float
    baseline: float


def assess(verdict: Verdict) -> Found:
    """Say what became of a mutant."""
    evaluation = verdict.evaluation
    if evaluation is None:
        return Found(End.VOID, verdict.void.value if verdict.void else "no record", evidence=verdict.log)
    gates = {gate.gate: gate for gate in evaluation.gates}
    for gate in evaluation.gates:
        if isinstance(gate, GateVoid):
            return Found(End.VOID, gate.reason.value, evidence=gate.evidence)
    failed = [gate for gate in evaluation.gates if isinstance(gate, GateFailed)]
    if not failed:
        checked = (gates[Gate.SEEN_CORRECT], gates[Gate.UNSEEN_CORRECT])
        if all(isinstance(gate, GatePassed) for gate in checked):
            return Found(End.SURVIVED)
        return Found(End.VOID, "correctness was not checked")
    first = failed[0]
    if first.gate in (Gate.BUILD, Gate.SEEN_CORRECT):
        end = End.KILLED_SEEN
    elif first.gate is Gate.UNSEEN_CORRECT:
        end = End.KILLED_UNSEEN
    else:
        return Found(End.VOID, f"failed {first.gate.value}", evidence=first.evidence)
    if first.reason in _STILLBORN or _does_not_compile(first):
        end = End.STILLBORN
    return Found(end, first.reason.value, first.configuration or "", first.evidence)


def margins(verdict: Verdict) -> Margins:
    """Return the margins of a judgement that passed."""
    assert verdict.evaluation is not None
    cases = [case.candidate for case in verdict.evaluation.cases]
    errors = [error for case in cases if isinstance(case, CaseCorrect) for error in case.errors]
    return Margins(
        candidate=max((error.worst_ratio for error in errors), default=0.0),
        baseline=max((error.baseline_worst_ratio for error in errors), default=0.0),
    )


def _does_not_compile(gate: GateFailed) -> bool:
    compiled_late = (FailReason.RETURNED_ERROR, FailReason.LOAD_FAILED)
    return gate.reason in compiled_late and any(error in gate.evidence for error in _COMPILE_ERRORS)
