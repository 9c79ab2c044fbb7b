"""The part of ``report/data.json`` that is about one task: its trials, what their agents did, and what they left."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from akarena.records.base import (
    Digest,
    NonNegativeFloat,
    NonNegativeInt,
    Part,
    PositiveFloat,
    PositiveInt,
    Slug,
    TaskId,
)
from akarena.records.evaluation import Kind, Split
from akarena.records.trial import AgentEnd, CostSource, StepKind, Tokens

STRETCHES = 100
"""Parts of an agent's time that its steps are counted in."""


class GateLine(Part):
    """One gate of one trial."""

    gate: str
    verdict: str
    reason: str
    """Reason code; empty for a pass."""
    configuration: str
    evidence: str


class SpeedCell(Part):
    """A speedup with its interval."""

    speedup: PositiveFloat
    low: PositiveFloat
    high: PositiveFloat


class CaseLine(Part):
    """One configuration of one trial."""

    configuration: str
    split: Split
    kind: Kind | None
    values: str
    candidate: str
    """``correct``, or the reason."""
    worst_ratio: NonNegativeFloat | None
    """Largest error over the tolerance."""
    baseline_us: PositiveFloat | None
    candidate_us: PositiveFloat | None
    speed: SpeedCell | None
    speed_note: str
    """Verdict, or why there is no number."""


class QualityLine(Part):
    """How good the instrument was during one judgement."""

    instrument_floor_percent: NonNegativeFloat
    idle_looks: NonNegativeInt
    busy_looks: NonNegativeInt
    """How many of them found the device busy before a replay."""
    beside_over_alone: tuple[PositiveFloat, ...]
    """Time of the baseline in turn with the candidate over its time alone, on configurations chosen in secret."""


class LogTail(Part):
    """The end of one log."""

    name: str
    text: str


class Side(Part):
    """One split of one trial."""

    state: Literal["measured", "correct", "incorrect", "not_judged"]
    reason: str
    """Verdict of the speed, or the reason code."""
    speed: SpeedCell | None
    arithmetic: PositiveFloat | None
    cases: NonNegativeInt
    cases_without_number: NonNegativeInt


class RequestCount(Part):
    """How many requests of one kind an agent made to its model's service, from the gateway's log."""

    verdict: str
    reason: str
    """Empty unless refused."""
    requests: PositiveInt


class StepLine(Part):
    """One step of an agent, cut."""

    number: PositiveInt
    """Its place among all steps; where numbers are missing, steps were left out."""
    seconds: NonNegativeFloat
    """Time since the start of the agent's work."""
    kind: StepKind
    tool: str
    """Empty unless a tool was called."""
    text: str
    result: str
    """Empty where there is none."""


class Stretch(Part):
    """Steps in one of the equal parts of an agent's time; parts without a step are left out."""

    at: int = Field(ge=0, le=STRETCHES - 1)
    calls: NonNegativeInt
    """Calls of tools."""
    checks: NonNegativeInt
    """Calls of ``check``, as the runner saw them."""
    other: NonNegativeInt
    """Messages, reasoning, and events that are not known."""


class Work(Part):
    """What an agent did in one trial, from ``trajectory.json``."""

    end: AgentEnd
    detail: str
    """Why it ended so; may be empty."""
    exit_code: int | None
    complete: bool
    """Whether the stream of events was seen to its end."""
    seconds: NonNegativeFloat
    tokens: Tokens | None
    tokens_counted_by: Literal["gateway", "agent", "nobody"]
    """``agent``: its own numbers, which nobody could check."""
    reported_tokens: Tokens | None
    """The agent's own numbers, where they differ from those of the gateway."""
    cost_source: CostSource | None
    notes: tuple[str, ...]
    """What a reader of the trajectory has to know, one line each."""
    steps_total: NonNegativeInt
    steps: tuple[StepLine, ...]
    """Some of them: the first, the last, and those that are calls of ``check`` before others."""
    stretches: tuple[Stretch, ...]
    """All of them, counted."""


class CompiledFor(Part):
    """What the kernels of one side use on one AMD GPU; every number is the largest of any kernel."""

    architecture: str
    kernels: PositiveInt
    named: tuple[str, ...]
    """Some of the kernels: those that spill, and those with most registers."""
    vgprs: NonNegativeInt
    agprs: NonNegativeInt
    sgprs: NonNegativeInt
    vgpr_spills: NonNegativeInt
    sgpr_spills: NonNegativeInt
    lds_bytes: NonNegativeInt
    scratch_bytes: NonNegativeInt
    largest_workgroup: NonNegativeInt


class InspectedSide(Part):
    """One side of an inspection."""

    state: Literal["compiled", "failed", "unavailable"]
    reason: str
    """Empty where it was compiled."""
    gpus: tuple[CompiledFor, ...]
    kernels_left_out: NonNegativeInt
    """Kernels that the inspection itself had no room for."""


class Inspected(Part):
    """What a candidate and its baseline use when they are compiled for AMD GPUs that are not there."""

    baseline: InspectedSide
    candidate: InspectedSide


class TrialLine(Part):
    """One planned trial, whether it exists or not."""

    task_id: TaskId
    configuration_id: Slug
    attempt: PositiveInt
    status: Literal["judged", "unchanged", "not_built", "void", "missing"]
    note: str
    """Reason of a status that is not ``judged``."""
    tries: NonNegativeInt
    seen: Side | None
    unseen: Side | None
    overall: PositiveFloat | None
    """Speedup over all configurations; only where correct on both splits."""
    won: bool | None
    paper_score: NonNegativeFloat | None
    bounded_reward: float | None = Field(ge=0, le=1)
    agent_end: str
    agent_minutes: NonNegativeFloat | None
    judge_minutes: NonNegativeFloat | None
    check_calls: NonNegativeInt | None
    tokens: NonNegativeInt | None
    cost_usd: NonNegativeFloat | None
    candidate_digest: Digest | None
    gates: tuple[GateLine, ...]
    cases: tuple[CaseLine, ...]
    diff: str
    logs: tuple[LogTail, ...]
    requests: tuple[RequestCount, ...]
    """Empty without a gateway."""
    work: Work | None
    """Null where there is no trajectory."""
    quality: QualityLine | None
    """Null where nothing was timed."""
    inspection: Inspected | None
    inspection_note: str
    """Why there is no inspection; empty where there is one."""


class TaskCell(Part):
    """One agent on one task, over all attempts."""

    configuration_id: Slug
    planned: PositiveInt
    correct_both: NonNegativeInt
    void: NonNegativeInt
    missing: NonNegativeInt
    speedup: PositiveFloat | None
    """Geometric mean over the trials that are correct and measured on both splits."""


class TaskSection(Part):
    """One task of the run."""

    id: TaskId
    digest: Digest | None
    """Null where the lock does not name the task."""
    agents: tuple[TaskCell, ...]
    trials: tuple[TrialLine, ...]
