"""What an agent did in one trial, made fit to be read: few steps, short texts, and all of its time in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TypeVar

from akarena.records.report_trial import STRETCHES, StepLine, Stretch, Work
from akarena.records.trial import Step, StepKind, TrajectoryRecord
from akarena.report.text import block, line, number, rounded

_TEXT_LINES = 4
_RESULT_LINES = 8
_WIDTH = 160
_MOST_NOTES = 10

T = TypeVar("T")


def work(trajectory: TrajectoryRecord, *, most_steps: int, gateway_counted: bool) -> Work:
    """Cut a trajectory to what a report has room for.

    Args:
        trajectory: Of any length; its texts are hostile.
        most_steps: Most steps that are shown. Half of them are kept for calls of ``check``.
        gateway_counted: Whether the gateway's log holds numbers of tokens, so that they need not be believed.
    """
    own, tokens = trajectory.reported_tokens, trajectory.tokens
    counted_by = "nobody" if tokens is None else "gateway" if gateway_counted else "agent"
    return Work.model_validate(
        {
            "end": trajectory.end,
            "detail": line(trajectory.detail),
            "exit_code": trajectory.exit_code,
            "complete": trajectory.complete,
            "seconds": rounded(trajectory.seconds, 4),
            "tokens": tokens,
            "tokens_counted_by": counted_by,
            "reported_tokens": None if own == tokens else own,
            "cost_source": trajectory.cost.source if trajectory.cost else None,
            "notes": _notes(trajectory.notes),
            "steps_total": len(trajectory.steps),
            "steps": tuple(
                _step(index + 1, trajectory.steps[index]) for index in _chosen(trajectory.steps, most_steps)
            ),
            "stretches": _stretches(trajectory),
        }
    )


def first_and_last(found: Sequence[T], most: int) -> list[T]:
    """Return all of a list, or its first and its last part where it is too long."""
    if len(found) <= most:
        return list(found)
    first = (most + 1) // 2
    return [*found[:first], *found[len(found) - (most - first) :]]


def bar(found: Work) -> str:
    """Draw when an agent called tools and ``check`` over its time, as an element of a page; empty without a step.

    Three rows, each named, with one mark for each part of the time in which there was something; the height of a mark
    tells how much.
    """
    if not found.stretches:
        return ""
    rows = [
        ("tool calls", "t-calls", [(one.at, one.calls) for one in found.stretches if one.calls]),
        ("check", "t-checks", [(one.at, one.checks) for one in found.stretches if one.checks]),
        ("other", "t-other", [(one.at, one.other) for one in found.stretches if one.other]),
    ]
    said = ", ".join(f"{sum(count for _, count in marks)} {name}" for name, _, marks in rows)
    time = _time(found.seconds)
    parts = [f'<svg class="bar" viewBox="0 0 680 82" role="img" aria-label="{escape(f"Over {time}: {said}")}">']
    for row, (name, style, marks) in enumerate(rows):
        floor = 20 + 20 * row
        parts.append(f'<text x="0" y="{floor}">{name}</text>')
        most = max((count for _, count in marks), default=1)
        shapes = "".join(
            f"M{80 + 6 * at} {floor}v-{height}h5v{height}z"
            for at, height in ((at, 4 + round(12 * count / most)) for at, count in marks)
        )
        parts.append(f'<path class="t-line" d="M80 {floor + 1}h600"/>')
        if shapes:
            parts.append(f'<path class="{style}" d="{shapes}"/>')
    parts.append(f'<text x="80" y="78">0</text><text x="680" y="78" text-anchor="end">{escape(time)}</text></svg>')
    return "".join(parts)


def _notes(notes: Sequence[str]) -> tuple[str, ...]:
    further = len(notes) - _MOST_NOTES
    return (
        *(line(note) for note in notes[:_MOST_NOTES]),
        *([f"{further} more notes are in trajectory.json"] if further > 0 else []),
    )


def _time(seconds: float) -> str:
    return f"{number(seconds)} s" if seconds < 120 else f"{number(rounded(seconds / 60))} min"


def _chosen(steps: Sequence[Step], most: int) -> list[int]:
    checks = [index for index, step in enumerate(steps) if step.kind is StepKind.CHECK]
    others = [index for index, step in enumerate(steps) if step.kind is not StepKind.CHECK]
    kept = first_and_last(checks, max(most // 2, most - len(others)))
    return sorted([*kept, *first_and_last(others, most - len(kept))])


def _step(place: int, step: Step) -> StepLine:
    return StepLine(
        number=place,
        seconds=rounded(step.seconds, 4),
        kind=step.kind,
        tool=line(step.tool or "", 60),
        text=block(step.text.strip("\n"), lines=_TEXT_LINES, width=_WIDTH),
        result=block((step.result or "").strip("\n"), lines=_RESULT_LINES, width=_WIDTH),
    )


def _stretches(trajectory: TrajectoryRecord) -> tuple[Stretch, ...]:
    counts: dict[int, list[int]] = {}
    for step in trajectory.steps:
        # A foreign trajectory may state any times, none of them within its own.
        share = min(1.0, step.seconds / trajectory.seconds) if trajectory.seconds else 0.0
        found = counts.setdefault(min(STRETCHES - 1, int(share * STRETCHES)), [0, 0, 0])
        found[0 if step.kind is StepKind.TOOL_CALL else 1 if step.kind is StepKind.CHECK else 2] += 1
    return tuple(
        Stretch(at=at, calls=calls, checks=checks, other=other) for at, (calls, checks, other) in sorted(counts.items())
    )
