"""Compare a run with the judgement of the same candidates in fresh processes."""

from __future__ import annotations

from akarena.records import AttemptRecord, TrialRecord
from akarena.records.evaluation import FailReason
from akarena.records.trial import JudgedTrial, Ladder, LadderIncorrect, LadderMeasured, TrialOutcome, UnchangedTrial
from akarena.store import RunFolder

SPEED_TOLERANCE = 0.03
"""Largest relative difference of a task's speedup between two judgements."""


def differences(first: RunFolder, second: RunFolder) -> tuple[list[str], int]:
    """Compare two runs of the same candidates.

    Returns:
        A line for each attempt and split, and the number of those that do not agree.
    """
    lines: list[str] = []
    failed = 0
    for attempt in first.attempts():
        before = _counted(first, attempt.task_id, attempt.configuration_id, attempt.number)
        after = _counted(second, attempt.task_id, attempt.configuration_id, attempt.number)
        for split in ("seen", "unseen"):
            left, right = _ladder(before, split), _ladder(after, split)
            agree, text = _compare(left, right)
            failed += not agree
            mark = "same" if agree else "DIFFERS"
            lines.append(f"{attempt.task_id}  {attempt.configuration_id}  a{attempt.number}  {split}: {text}  {mark}")
    return lines, failed


def _counted(run: RunFolder, task_id: str, configuration_id: str, number: int) -> TrialOutcome:
    attempt = run.attempt(task_id, configuration_id, number)
    counted = run.read(AttemptRecord, attempt.attempt).counted_try
    return run.read(TrialRecord, attempt.try_folder(counted).trial).root


def _ladder(outcome: TrialOutcome, split: str) -> Ladder | str:
    """Return the ladder of a split, or what there is in its place."""
    if isinstance(outcome, JudgedTrial | UnchangedTrial):
        return outcome.seen if split == "seen" else outcome.unseen
    # What could not be taken is not in the run folder, so that judged again it is missing.
    reason = FailReason.MISSING_FILE if outcome.reason is FailReason.UNREADABLE_FILE else outcome.reason
    return f"{outcome.status}: {reason.value}"


def _compare(left: Ladder | str, right: Ladder | str) -> tuple[bool, str]:
    if isinstance(left, LadderMeasured) and isinstance(right, LadderMeasured):
        change = right.geomean_speedup / left.geomean_speedup - 1
        text = f"{left.geomean_speedup:.3f}x, then {right.geomean_speedup:.3f}x ({change:+.1%})"
        return abs(change) <= SPEED_TOLERANCE, text
    names = [_name(part) for part in (left, right)]
    return names[0] == names[1], names[0] if names[0] == names[1] else f"{names[0]}, then {names[1]}"


def _name(part: Ladder | str) -> str:
    if isinstance(part, str):
        return part
    return f"{part.state} ({part.reason})" if isinstance(part, LadderIncorrect) else part.state
