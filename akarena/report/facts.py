"""What one planned trial says, in the terms that the tables count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from akarena.gateway.services import BUILT_IN
from akarena.records.task import Category
from akarena.records.trial import (
    AgentEnd,
    Ladder,
    LadderCorrect,
    LadderIncorrect,
    LadderMeasured,
    LadderNotJudged,
    NotBuiltTrial,
    Score,
    VoidTrial,
)
from akarena.report.collect import CollectedTrial
from akarena.scoring import overall_speedup

Status = Literal["judged", "unchanged", "not_built", "void", "missing"]
TUNNEL_NOTES = frozenset(service.note for service in BUILT_IN.values() if not service.inspectable)
"""What a trajectory says where nobody could look into the conversation with the model."""


@dataclass(frozen=True)
class Facts:
    """One planned trial, whether it exists or not. Speeds are not rounded yet."""

    task_id: str
    configuration_id: str
    status: Status
    seen: Ladder | None
    unseen: Ladder | None
    score: Score | None
    agent_minutes: float | None
    tokens: int | None
    cost_usd: float | None
    agent_end: AgentEnd | None
    tokens_own: bool
    """Whether the tokens are only the agent's own numbers."""
    tunnelled: bool
    """Whether the trajectory says that its model was reached through a vendor's tunnel."""

    @property
    def category(self) -> Category:
        """Category of the task."""
        return Category(self.task_id.split("/")[0])

    @property
    def judged(self) -> bool:
        """Whether something is known about the candidate."""
        return self.status in ("judged", "unchanged", "not_built")

    @property
    def built(self) -> bool:
        """Whether a program came of the candidate."""
        return self.status in ("judged", "unchanged")

    @property
    def correct_seen(self) -> bool:
        """Correct on every seen configuration."""
        return isinstance(self.seen, LadderMeasured | LadderCorrect)

    @property
    def correct_unseen(self) -> bool:
        """Correct on every unseen configuration."""
        return isinstance(self.unseen, LadderMeasured | LadderCorrect)

    @property
    def correct_both(self) -> bool:
        """Correct on both splits."""
        return self.correct_seen and self.correct_unseen

    @property
    def overall(self) -> float | None:
        """Speedup over all configurations; None unless correct and measured on both splits."""
        if isinstance(self.seen, LadderMeasured) and isinstance(self.unseen, LadderMeasured):
            return overall_speedup(self.seen, self.unseen)
        return None

    @property
    def fast_seen(self) -> float | None:
        """Seen speedup as fast_p counts it: an unchanged candidate is not fast, whatever the noise says."""
        if self.status == "judged" and isinstance(self.seen, LadderMeasured):
            return self.seen.geomean_speedup
        return None

    @property
    def fast_both(self) -> float | None:
        """Overall speedup as fast_p counts it."""
        return self.overall if self.status == "judged" else None

    @property
    def kept(self) -> float:
        """Speedup of a user who keeps the baseline where the candidate is wrong, absent or without a number."""
        overall = self.fast_both
        return 1.0 if overall is None else overall


def facts(trial: CollectedTrial, *, speed_measured: bool) -> Facts:
    """Read one trial.

    Args:
        trial: A planned trial.
        speed_measured: Whether the run was calibrated. A speed that a trial states without one is not believed.
    """
    outcome, trajectory, work = trial.outcome, trial.beside.trajectory, trial.beside.work
    seen = unseen = None
    score = None
    status: Status = "missing"
    if outcome is not None:
        status = outcome.status
        if not isinstance(outcome, VoidTrial):
            if isinstance(outcome, NotBuiltTrial):
                score = Score(paper_score=0.0, bounded_reward=0.0, won=False)
            else:
                score = outcome.score
                seen, unseen = (_believed(part, speed_measured) for part in (outcome.seen, outcome.unseen))
    tokens = trajectory.tokens if trajectory else None
    return Facts(
        task_id=trial.task_id,
        configuration_id=trial.configuration_id,
        status=status,
        seen=seen,
        unseen=unseen,
        score=score,
        agent_minutes=None if outcome is None else outcome.agent_seconds / 60,
        tokens=None if tokens is None else tokens.input + tokens.output,
        cost_usd=trajectory.cost.usd if trajectory and trajectory.cost else None,
        agent_end=None if outcome is None else outcome.agent_end,
        tokens_own=work is not None and work.tokens_counted_by == "agent",
        tunnelled=trajectory is not None and not TUNNEL_NOTES.isdisjoint(trajectory.notes),
    )


def reason(part: Ladder) -> str:
    """Return the reason code, or the verdict, of a ladder."""
    if isinstance(part, LadderMeasured):
        return part.verdict.value
    if isinstance(part, LadderIncorrect | LadderNotJudged):
        return part.reason.value
    return str(part.reason)


def _believed(part: Ladder, speed_measured: bool) -> Ladder:
    if isinstance(part, LadderMeasured) and not speed_measured:
        return LadderCorrect(state="correct", reason="not_resolved")
    return part
