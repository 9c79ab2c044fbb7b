"""``manifest.json``, ``lock.json``, ``seed.json``, ``events.jsonl``: what a run was asked, and what it resolved to."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from akarena.records.base import (
    Digest,
    NonNegativeFloat,
    Part,
    PositiveFloat,
    PositiveInt,
    Record,
    Slug,
    TaskId,
    Timestamp,
)
from akarena.records.task import ComputeUnit, TargetName


class Prices(Part):
    """What a service takes for a million tokens of each kind, in US dollars, as the operator states it."""

    input: NonNegativeFloat
    output: NonNegativeFloat
    cache_read: NonNegativeFloat
    cache_write: NonNegativeFloat


class AgentConfiguration(Part):
    """One column of the comparison: an agent with its settings."""

    id: Slug
    """Unique in the run; a folder name."""
    agent: Slug
    """Registered name of the agent."""
    model: str | None = Field(default=None, max_length=200)
    effort: str | None = Field(default=None, max_length=40)
    arguments: tuple[str, ...] = ()
    """Further arguments for the agent's own program."""
    command: tuple[str, ...] = ()
    """Argument vector of a ``command`` agent."""
    replay_of: str | None = Field(default=None, max_length=5000)
    """Run folder and configuration that a ``replay`` agent takes its candidates from."""
    service: Slug | None = None
    """Model service that the gateway leads to; null for an agent with no way out."""
    service_url: str | None = Field(default=None, max_length=2000)
    """Address of the service, where it is not the vendor's."""
    service_key: str | None = Field(default=None, max_length=128)
    """Name of the environment variable with the key for `service_url`; null where none is needed."""
    prices: Prices | None = None
    """From which the cost of a trial is computed; null: no cost but what the agent reports itself."""
    token_budget: PositiveInt | None = None
    """Tokens of a trial, prompts and answers together; null: the gateway's own limit."""
    usd_budget: PositiveFloat | None = None
    """Dollars of a trial, by `prices`."""


class AgentsRecord(Record):
    """``agents.toml``: several agents or settings to compare in one run, written by hand."""

    schema_name: ClassVar[str] = "agents"

    schema_version: Literal[1]
    agents: tuple[AgentConfiguration, ...] = Field(min_length=1, max_length=100)


class SeedSource(StrEnum):
    """Where the run's seed comes from."""

    RANDOM = "random"
    CHOSEN = "chosen"
    """Given by the operator: the report says so, since many seeds can be tried."""
    REVEALED = "revealed"
    """Taken from an earlier run, to reproduce it."""


class SourceCommit(Part):
    """State of the checkout."""

    commit: str = Field(pattern=r"^([0-9a-f]{40}|unknown)$")
    dirty: bool
    """Whether files differed from the commit."""


class ManifestRecord(Record):
    """What was asked, frozen before the first trial."""

    schema_name: ClassVar[str] = "manifest"

    schema_version: Literal[1]
    run_id: Slug
    created: Timestamp
    akarena_version: str
    source: SourceCommit
    target: TargetName
    sandbox: Slug
    agents: tuple[AgentConfiguration, ...] = Field(min_length=1)
    tasks: tuple[TaskId, ...] = Field(min_length=1)
    attempts: int = Field(ge=1, le=1000)
    tries: int = Field(ge=1, le=10)
    """Most tries of an attempt; only void ones are tried again."""
    agent_wall_seconds: PositiveFloat
    check_calls: int = Field(ge=0)
    """Calls of ``check`` that an agent has."""
    suggested_iterations: PositiveInt | None = None
    """Rounds of improvement that the prompt speaks of; null: it does not."""
    contract_in_prompt: bool
    """Whether the prompt states which sizes are legal."""
    seed_sha256: Digest
    """SHA-256 of the 32 bytes of the seed: the commitment."""
    seed_source: SeedSource


class LockedTask(Part):
    """A task and the digest of all its files."""

    id: TaskId
    digest: Digest


class AssuranceLine(Part):
    """How strongly one limit is enforced."""

    limit: str
    strength: Literal["hard", "polled", "absent"]
    how: str


class Package(Part):
    """An installed Python package."""

    name: str
    version: str


class Calibration(Part):
    """Measured once per run and device, before the first trial."""

    instrument_floor: NonNegativeFloat
    """Relative difference that the same kernel seldom has from itself, between two fresh worker processes timed in
    turn: three times the root mean square."""
    resolution_us: NonNegativeFloat
    """Time per call below which nothing is resolved."""
    round_trip_us: PositiveFloat
    """An empty frame to a worker and back."""
    replay_overhead_us: NonNegativeFloat
    """What a timed replay costs besides its calls, messages for the most part. It is taken off every replay of either
    side."""
    idle_probe_us: PositiveFloat
    """The judge's own short kernel on an idle device."""
    bandwidth_bytes_per_second: PositiveFloat
    """Copy of a buffer far larger than the last-level cache, read plus written."""
    cache_bytes: PositiveInt
    """Size of the last-level cache."""
    peak_flops_per_second: dict[ComputeUnit, PositiveFloat]
    """Largest rate measured for each unit."""
    process_pairs: PositiveInt
    """Pairs of fresh worker processes that the floor was taken from."""
    same_kernel_ratios: tuple[PositiveFloat, ...]
    """Ratio of the two sides for each pair and size; all would be 1 with a perfect instrument."""


class PreflightCheck(Part):
    """One property of the isolation, as seen from inside."""

    check: str = Field(max_length=200)
    ok: bool
    detail: str = Field(max_length=2000)


class ContainerEngine(Part):
    """What started the containers, and from which images."""

    version: str = Field(max_length=100)
    runtime: str = Field(max_length=100)
    storage: str = Field(max_length=100)
    cgroups: str = Field(max_length=100)
    images: dict[Slug, str]
    """Digest of the image of each role, and of each agent's own."""


class LockRecord(Record):
    """What the run resolved to."""

    schema_name: ClassVar[str] = "lock"

    schema_version: Literal[1]
    run_id: Slug
    tasks: tuple[LockedTask, ...] = Field(min_length=1)
    judge_digest: Digest
    prompt_digest: Digest
    target: TargetName
    architecture: str
    device: str
    """Name of the device."""
    driver: str
    compiler: str
    """First line of the compiler's version."""
    operating_system: str
    python: str
    packages: tuple[Package, ...]
    programs: tuple[Package, ...]
    """Agents' own programs, by configuration, each with what it says of its version."""
    isolation: tuple[AssuranceLine, ...]
    preflight: tuple[PreflightCheck, ...]
    """What was seen from inside the sandbox before the first trial; all were ok, or there would be no run."""
    container_engine: ContainerEngine | None
    """Null where the sandbox starts no containers."""
    calibration: Calibration | None
    """Null on a target where speed is not measured."""


class SeedRecord(Record):
    """The seed, revealed when the run is sealed."""

    schema_name: ClassVar[str] = "seed"

    schema_version: Literal[1]
    run_id: Slug
    seed: Digest
    """32 bytes in hexadecimal."""
    seed_source: SeedSource


class EventKind(StrEnum):
    """What happened."""

    RUN_STARTED = "run_started"
    RUN_RESUMED = "run_resumed"
    TRY_STARTED = "try_started"
    AGENT_ENDED = "agent_ended"
    TRY_ENDED = "try_ended"
    RUN_SEALED = "run_sealed"


class EventRecord(Record):
    """One line of ``events.jsonl``."""

    schema_name: ClassVar[str] = "event"

    schema_version: Literal[1]
    time: Timestamp
    kind: EventKind
    task_id: TaskId | None = None
    configuration_id: Slug | None = None
    attempt: PositiveInt | None = None
    try_number: PositiveInt | None = None
    detail: str = Field(default="", max_length=500)
