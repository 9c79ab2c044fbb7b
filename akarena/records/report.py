"""``report/data.json``: every number and text of a report, rounded once. Markdown and HTML are drawn from it alone.

Rates are fractions of the planned trials. Numbers carry three significant digits, times and costs four. Text that an
agent or a compiler wrote is bounded, and its control characters are already made visible.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from akarena.records.base import (
    Digest,
    NonNegativeFloat,
    NonNegativeInt,
    Part,
    PositiveFloat,
    PositiveInt,
    Record,
    Slug,
    Timestamp,
)
from akarena.records.evaluation import Kind
from akarena.records.report_trial import TaskSection
from akarena.records.run import AssuranceLine, Calibration, Package, Prices, SeedSource
from akarena.records.task import Category, TargetName
from akarena.records.trial import AgentEnd


class Rate(Part):
    """A share of trials, with Wilson's 95 percent interval for the number of tasks."""

    count: NonNegativeInt
    of: NonNegativeInt
    """Trials in the denominator."""
    rate: float = Field(ge=0, le=1)
    low: float = Field(ge=0, le=1)
    high: float = Field(ge=0, le=1)


class Mean(Part):
    """A geometric mean of speedups with its 95 percent interval over tasks, and the arithmetic mean beside it."""

    n: PositiveInt
    """Trials in the mean."""
    geomean: PositiveFloat
    low: PositiveFloat | None
    """Null where fewer than two tasks have a number."""
    high: PositiveFloat | None
    arithmetic: PositiveFloat
    """Mean over trials of the arithmetic mean over cases, as published."""
    published_geomean: PositiveFloat
    """Geometric mean over trials of the arithmetic mean over cases, as published."""


class Fast(Part):
    """Shares of the planned trials that are more than ``p`` times faster than the baseline."""

    p: PositiveFloat
    seen: Rate
    """Correct on the seen configurations, by their geometric mean (the published sense)."""
    both: Rate
    """Correct on both splits, by the geometric mean over all configurations."""


class EndCount(Part):
    """How often the work of one agent ended in one way."""

    end: AgentEnd
    trials: PositiveInt


class AgentRow(Part):
    """One agent configuration, over all tasks or over one category."""

    configuration_id: Slug
    category: Category | None
    """Null: all tasks."""
    control: bool
    """Whether it is one of our own controls (``nop``, ``solution``) rather than an agent under test."""
    tasks: PositiveInt
    planned: PositiveInt
    judged: NonNegativeInt
    """Trials with an outcome about the candidate: judged, unchanged or not built."""
    unchanged: NonNegativeInt
    void: NonNegativeInt
    missing: NonNegativeInt
    built: Rate
    correct_seen: Rate
    correct_unseen: Rate
    correct_both: Rate
    correct_both_of_judged: Rate | None
    """The same without void and missing trials; null where none was judged."""
    won: Rate | None
    """Null where the target does not measure speed; so are the fields below up to the bounded reward."""
    speed_seen: Mean | None
    """Over trials that are correct on the seen configurations."""
    speed_unseen: Mean | None
    keep_baseline: Mean | None
    """Over all planned trials: the speedup over all configurations where correct on both splits, else 1."""
    fast: tuple[Fast, ...]
    bounded_reward: float | None = Field(ge=0, le=1)
    """Mean over all planned trials; what has no reward counts 0."""
    paper_score: NonNegativeFloat
    """Mean over all planned trials; void and missing count 0."""
    tokens: NonNegativeInt | None
    """Input plus output over the trials that report them."""
    tokens_reported: NonNegativeInt
    """Trials that report tokens."""
    cost_usd: NonNegativeFloat | None
    cost_reported: NonNegativeInt
    agent_minutes: NonNegativeFloat
    ends: tuple[EndCount, ...]
    """How the agents' work ended, over the trials that exist; void ones among them."""
    inspectable: bool
    """False where its model was reached through a vendor's tunnel, into which nobody can look."""
    tokens_own: NonNegativeInt
    """Trials whose tokens are the agent's own numbers, which nobody could check."""


class KindRow(Part):
    """Cases of one agent by kind, over its judged trials."""

    configuration_id: Slug
    kind: Kind | Literal["seen"]
    cases: NonNegativeInt
    checked: NonNegativeInt
    correct: NonNegativeInt
    timed: NonNegativeInt
    geomean: PositiveFloat | None


class PairRow(Part):
    """Two agents on the tasks of the run, by ``keep_baseline`` speedup."""

    first: Slug
    second: Slug
    tasks: NonNegativeInt
    ratio: PositiveFloat | None
    """First over second."""
    low: PositiveFloat | None
    high: PositiveFloat | None
    p_value: float | None = Field(ge=0, le=1)
    """Sign-flip test, corrected for the number of pairs by Holm."""


class Answer(StrEnum):
    """What the run says about its question."""

    BEST_AGENT = "best_agent"
    FASTER_THAN_BASELINE = "faster_than_baseline"
    INCONCLUSIVE = "inconclusive"
    SPEED_NOT_MEASURED = "speed_not_measured"


class Verdict(Part):
    """The first thing to read."""

    answer: Answer
    headline: str
    lines: tuple[str, ...]
    """Effect, sizes, and what was not run."""


class PublishedCell(Part):
    """One published number with ours beside it."""

    category: Category
    quantity: str
    published_agent: str
    published: str
    ours_agent: Slug | None
    ours: str | None
    comparable: bool
    reasons: tuple[str, ...]
    """Why it is not comparable; empty where it is."""


class Flag(Part):
    """Something for a person to look at; it decides nothing."""

    where: str
    what: str


class ReportedAgent(Part):
    """An agent configuration as the manifest gives it; its texts are made visible, so they may be longer there."""

    id: Slug
    agent: Slug
    model: str
    effort: str
    command: str
    replay_of: str
    arguments: str
    program: str
    """What its own program says of its version."""
    service: str
    service_url: str
    prices: Prices | None
    token_budget: PositiveInt | None
    usd_budget: PositiveFloat | None


class Provenance(Part):
    """What the run was, and on what."""

    run_id: Slug
    created: Timestamp
    akarena_version: str
    commit: str
    dirty: bool
    target: TargetName
    architecture: str
    device: str
    driver: str
    compiler: str
    operating_system: str
    python: str
    sandbox: Slug
    agents: tuple[ReportedAgent, ...]
    tasks: PositiveInt
    attempts: PositiveInt
    tries: PositiveInt
    agent_wall_seconds: PositiveFloat
    check_calls: NonNegativeInt
    suggested_iterations: PositiveInt | None
    contract_in_prompt: bool
    seed_source: SeedSource
    seed_sha256: Digest
    seed_state: Literal["not revealed", "revealed and matches the commitment", "does not match the commitment"]
    sealed: bool
    judge_digest: Digest
    prompt_digest: Digest
    manifest_sha256: Digest
    lock_sha256: Digest
    published_sha256: Digest
    packages: tuple[Package, ...]
    isolation: tuple[AssuranceLine, ...]
    calibration: Calibration | None


class PublishedProtocol(Part):
    """How the published numbers were made."""

    agent_wall_seconds: PositiveFloat
    agent_iterations_suggested: PositiveInt
    runs_averaged: PositiveInt
    warmup_iterations: NonNegativeInt
    timed_iterations: PositiveInt
    task_speedup: str
    score: str
    pytorch2hip_baseline: str
    unseen_configurations_per_task: PositiveInt
    unseen_mix: dict[str, PositiveInt]


class PublishedAgent(Part):
    """An agent of the source."""

    id: str
    agent: Slug
    model: str


class PublishedSeen(Part):
    """Numbers of one agent on the seen configurations of one category; null where no public copy shows them."""

    category: Category
    agent: str
    compiled_pct: float | None
    correct_pct: float | None
    mean_speedup: PositiveFloat | None
    geomean_speedup: PositiveFloat | None
    fast_2_pct: float | None


class PublishedRange(Part):
    """Lowest and highest of all agents."""

    mean_speedup: tuple[PositiveFloat, PositiveFloat]
    geomean_speedup: tuple[PositiveFloat, PositiveFloat]


class PublishedUnseen(Part):
    """Percent of tasks, one entry for each agent in the order of ``agents``."""

    both_pass: tuple[float, ...]
    candidate_only: tuple[float, ...]
    neither: tuple[float, ...]
    baseline_only: tuple[float, ...]
    conditional_correctness: tuple[float, ...]


class PublishedRecord(Record):
    """``reports/published/*.json``: numbers that others published, as facts, with where they come from."""

    schema_name: ClassVar[str] = "published"

    schema_version: Literal[1]
    source: str
    hardware: str
    architecture: str
    protocol: PublishedProtocol
    tasks: dict[Category, PositiveInt]
    same_tasks: bool
    """Whether the tasks of this repository are those of the source."""
    agents: tuple[PublishedAgent, ...]
    seen: tuple[PublishedSeen, ...]
    seen_ranges: dict[Category, PublishedRange]
    seen_ranges_note: str
    unseen: dict[Category, PublishedUnseen]
    unseen_unit: str
    provenance: str


class ReportRecord(Record):
    """A whole report."""

    schema_name: ClassVar[str] = "report"

    schema_version: Literal[1]
    renderer_version: str
    """Version of akarena that rendered it."""
    speed_measured: bool
    """Whether the target measures speed; if not, no speed appears anywhere."""
    verdict: Verdict
    agents: tuple[AgentRow, ...] = Field(min_length=1)
    by_category: tuple[AgentRow, ...]
    pairs: tuple[PairRow, ...]
    by_kind: tuple[KindRow, ...]
    published_source: str
    published: tuple[PublishedCell, ...]
    tasks: tuple[TaskSection, ...] = Field(min_length=1)
    flags: tuple[Flag, ...]
    provenance: Provenance
