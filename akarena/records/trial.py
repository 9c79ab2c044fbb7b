"""``trial.json``, ``attempt.json`` and ``trajectory.json``: one agent on one task."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, RootModel

from akarena.records.base import (
    Digest,
    NonNegativeFloat,
    NonNegativeInt,
    Part,
    PositiveFloat,
    PositiveInt,
    Record,
    RelativePath,
    Slug,
    TaskId,
    Timestamp,
)
from akarena.records.evaluation import FailReason, SkipReason, SpeedVerdict, VoidReason
from akarena.records.task import Category, TargetName


class AgentEnd(StrEnum):
    """How the agent's work ended."""

    FINISHED = "finished"
    TIMED_OUT = "timed_out"
    STALLED = "stalled"
    OUT_OF_BUDGET = "out_of_budget"
    CRASHED = "crashed"
    REFUSED = "refused"
    RATE_LIMITED = "rate_limited"
    OUT_OF_MEMORY = "out_of_memory"
    INFRASTRUCTURE = "infrastructure"


class LadderMeasured(Part):
    """Correct on every configuration of the split, and timed."""

    state: Literal["measured"]
    verdict: SpeedVerdict
    geomean_speedup: PositiveFloat
    """Geometric mean over the split's configurations."""
    low: PositiveFloat
    """Lower end of its 95 percent interval."""
    high: PositiveFloat
    arithmetic_speedup: PositiveFloat
    """Arithmetic mean, as in the paper."""
    cases: PositiveInt
    """Configurations in the means."""
    cases_without_number: NonNegativeInt
    """Configurations that are correct but gave no number."""


class LadderCorrect(Part):
    """Correct, but without a speed, and why."""

    state: Literal["correct"]
    reason: SkipReason | Literal["unstable", "not_resolved", "baseline_disturbed"]


class LadderIncorrect(Part):
    """Wrong on at least one configuration of the split."""

    state: Literal["incorrect"]
    reason: FailReason
    cases_failed: PositiveInt


class LadderNotJudged(Part):
    """Not run, and why."""

    state: Literal["not_judged"]
    reason: SkipReason


Ladder = Annotated[LadderMeasured | LadderCorrect | LadderIncorrect | LadderNotJudged, Field(discriminator="state")]


class Score(Part):
    """The scores of one trial."""

    paper_score: NonNegativeFloat
    """0 not built; 20 built; 120 correct on the seen configurations; 120 + 100 x arithmetic speedup where timed."""
    bounded_reward: float | None = Field(ge=0, lt=1)
    """max(0, 1 - 1.05 / speedup), with the geometric mean over all configurations; 0 unless correct on both splits;
    null where speed was not measured."""
    won: bool | None
    """Correct and faster on both splits; null where speed was not measured."""


class _Trial(Part):
    """What every trial says, whatever came of it."""

    schema_version: Literal[1]
    run_id: Slug
    task_id: TaskId
    task_digest: Digest
    category: Category
    configuration_id: Slug
    """The agent configuration."""
    attempt: PositiveInt
    try_number: PositiveInt
    target: TargetName
    started: Timestamp
    agent_end: AgentEnd
    agent_seconds: NonNegativeFloat
    judge_seconds: NonNegativeFloat


class _WithCandidate(_Trial):
    candidate_digest: Digest
    candidate_files: tuple[RelativePath, ...]
    evaluation_sha256: Digest
    """SHA-256 of ``evaluation.json`` in the same folder."""


class JudgedTrial(_WithCandidate):
    """The candidate was built and judged."""

    status: Literal["judged"]
    seen: Ladder
    unseen: Ladder
    score: Score


class UnchangedTrial(_WithCandidate):
    """The agent left the files as they were; judged all the same, and never counted as a win."""

    status: Literal["unchanged"]
    seen: Ladder
    unseen: Ladder
    score: Score


class NotBuiltScore(Part):
    """The scores of a candidate that did not become a program."""

    paper_score: Literal[0] = 0
    bounded_reward: Literal[0] = 0
    won: Literal[False] = False


class NotBuiltTrial(_WithCandidate):
    """No program came of the candidate."""

    status: Literal["not_built"]
    reason: FailReason
    score: NotBuiltScore = NotBuiltScore()


class VoidTrial(_Trial):
    """The infrastructure or the agent's service broke; nothing is said about the agent."""

    status: Literal["void"]
    reason: VoidReason
    evidence: str = Field(max_length=8000)


TrialOutcome = Annotated[JudgedTrial | UnchangedTrial | NotBuiltTrial | VoidTrial, Field(discriminator="status")]


class TrialRecord(RootModel[TrialOutcome]):
    """One try of one attempt; written last, so that its presence means that the try is complete."""

    schema_name: ClassVar[str] = "trial"


class TrySummary(Part):
    """One try of an attempt."""

    try_number: PositiveInt
    status: Literal["judged", "unchanged", "not_built", "void"]


class AttemptRecord(Record):
    """Which try of an attempt counts: the first that is not void, else the last."""

    schema_name: ClassVar[str] = "attempt"

    schema_version: Literal[1]
    task_id: TaskId
    configuration_id: Slug
    attempt: PositiveInt
    counted_try: PositiveInt
    tries: tuple[TrySummary, ...] = Field(min_length=1)


class StepKind(StrEnum):
    """What an agent did in one step."""

    MESSAGE = "message"
    REASONING = "reasoning"
    TOOL_CALL = "tool_call"
    CHECK = "check"
    OTHER = "other"
    """An event of the agent that is not known; its text is the event."""


class Step(Part):
    """One step of an agent."""

    kind: StepKind
    seconds: NonNegativeFloat
    """Time since the start of the agent's work."""
    text: str = Field(max_length=20000)
    """What it said; for a call of a tool, its arguments."""
    tool: str | None = Field(default=None, max_length=200)
    result: str | None = Field(default=None, max_length=20000)


class Tokens(Part):
    """Token counts over the whole trial."""

    input: NonNegativeInt
    output: NonNegativeInt
    cache_read: NonNegativeInt
    cache_write: NonNegativeInt
    reasoning: NonNegativeInt


class CostSource(StrEnum):
    """Where a cost comes from."""

    REPORTED = "reported"
    PRICED = "priced"


class Cost(Part):
    """What the trial cost."""

    usd: NonNegativeFloat
    source: CostSource


class TrajectoryRecord(Record):
    """The agent's work, in one shape for all agents. The raw stream lies beside it in ``logs/``."""

    schema_name: ClassVar[str] = "trajectory"

    schema_version: Literal[1]
    agent: Slug
    end: AgentEnd
    exit_code: int | None
    detail: str = Field(max_length=2000)
    """Why it ended so."""
    seconds: NonNegativeFloat
    complete: bool
    """Whether the stream of events was seen to its end."""
    check_calls: NonNegativeInt
    tokens: Tokens | None
    """As the gateway counted them, or as the agent reports them where the gateway could not look inside; null where
    neither is known."""
    reported_tokens: Tokens | None = None
    """As the agent reports them; null where it does not."""
    cost: Cost | None
    """Null where neither a report nor a price is known."""
    notes: tuple[Annotated[str, Field(max_length=500)], ...] = ()
    """What a reader has to know of the stream, such as counts that differ, one line each."""
    steps: tuple[Step, ...]
