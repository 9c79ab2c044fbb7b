"""``evaluation.json`` and ``samples.json``: what the judge found, gate by gate and configuration by configuration."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from akarena.records.base import (
    Digest,
    Identifier,
    NonNegativeFloat,
    NonNegativeInt,
    Part,
    PositiveFloat,
    PositiveInt,
    Record,
    TaskId,
)
from akarena.records.task import TargetName, Value

Evidence = Annotated[str, Field(max_length=8000)]
"""Text for a person: an error, a log tail. Never parsed, possibly hostile."""


class Split(StrEnum):
    """Whether the agent could know a configuration."""

    SEEN = "seen"
    UNSEEN = "unseen"


class Kind(StrEnum):
    """The six kinds of unseen configuration."""

    EDGE = "edge"
    SCALE_UP = "scale_up"
    SCALE_DOWN = "scale_down"
    ALIGNMENT_STRESS = "alignment_stress"
    ASYMMETRIC = "asymmetric"
    PRODUCTION_LIKE = "production_like"


class Configuration(Part):
    """One set of sizes, dtypes and scalars."""

    id: str = Field(pattern=r"^(seen|unseen)-[0-9]{1,2}$")
    """Split and position."""
    split: Split
    """Seen or unseen."""
    kind: Kind | None
    """Kind of an unseen configuration; null for a seen one."""
    values: dict[Identifier, Value]
    """Value of every axis."""


class Gate(StrEnum):
    """The gates, in order. Speed of a split depends on the correctness of that split alone."""

    SCOPE = "scope"
    BUILD = "build"
    SEEN_CORRECT = "seen_correct"
    SEEN_SPEED = "seen_speed"
    UNSEEN_CORRECT = "unseen_correct"
    UNSEEN_SPEED = "unseen_speed"


class FailReason(StrEnum):
    """Why a candidate failed a gate or a configuration. Each counts against the candidate."""

    MISSING_FILE = "missing_file"
    UNREADABLE_FILE = "unreadable_file"
    COMPILE_ERROR = "compile_error"
    COMPILE_TIMEOUT = "compile_timeout"
    COMPILE_RESOURCES = "compile_resources"
    ENTRY_NOT_FOUND = "entry_not_found"
    LOAD_FAILED = "load_failed"
    RETURNED_ERROR = "returned_error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    TOO_MANY_PROCESSES = "too_many_processes"
    DEVICE_FAULT = "device_fault"
    PROTOCOL_BROKEN = "protocol_broken"
    OUTPUT_NOT_WRITTEN = "output_not_written"
    WRONG_VALUES = "wrong_values"
    NON_FINITE_MISMATCH = "non_finite_mismatch"
    LOW_PRECISION = "low_precision"
    INPUT_CHANGED = "input_changed"
    OUT_OF_BOUNDS = "out_of_bounds"
    ANSWERED_EARLY = "answered_early"
    WRONG_WHEN_TIMED = "wrong_when_timed"
    FASTER_THAN_POSSIBLE = "faster_than_possible"
    NOTHING_LAUNCHED = "nothing_launched"
    CALLS_NOT_APART = "calls_not_apart"
    """A replay of some of the recorded calls left some of these undone, or did others."""
    DEVICE_KEPT_BUSY = "device_kept_busy"
    DEVICE_MEMORY_TAKEN = "device_memory_taken"
    """It held so much of the device's memory that the judge found none."""
    BASELINE_BROKEN = "baseline_broken"
    """The baseline failed beside it, again and again, and works without it."""


class VoidReason(StrEnum):
    """What broke was neither the candidate nor the agent: nothing is said about them, and the trial is tried again."""

    BASELINE_FAILED = "baseline_failed"
    BASELINE_DISTURBED = "baseline_disturbed"
    DEVICE_NOT_IDLE = "device_not_idle"
    DEVICE_UNHEALTHY = "device_unhealthy"
    JUDGE_CRASHED = "judge_crashed"
    JUDGE_TIMEOUT = "judge_timeout"
    SANDBOX_FAILED = "sandbox_failed"
    TOOLCHAIN_MISSING = "toolchain_missing"
    SERVICE_REFUSED = "service_refused"
    """The service did not accept the key, as the gateway saw; nothing was judged."""
    SERVICE_LIMITED = "service_limited"
    """The service had no room to the last, as the gateway saw; nothing was judged."""
    AGENT_NOT_RUN = "agent_not_run"
    """The agent could not be run to its end; nothing was judged."""


class SkipReason(StrEnum):
    """Why something was not run; it is never read as passed."""

    EARLIER_GATE_FAILED = "earlier_gate_failed"
    EARLIER_CASE_FAILED = "earlier_case_failed"
    UNVERIFIED_ON_TARGET = "unverified_on_target"
    NOT_MEASURED_ON_TARGET = "not_measured_on_target"
    NOT_ASKED_FOR = "not_asked_for"
    NO_TIMED_CASE = "no_timed_case"


class GatePassed(Part):
    """The gate holds."""

    verdict: Literal["pass"]
    gate: Gate
    note: Evidence = ""
    """What a reader should know, for example how many configurations were unverified."""


class GateFailed(Part):
    """The candidate is at fault."""

    verdict: Literal["fail"]
    gate: Gate
    reason: FailReason
    configuration: str | None = None
    """Id of the first configuration that failed."""
    evidence: Evidence


class GateVoid(Part):
    """The infrastructure is at fault."""

    verdict: Literal["void"]
    gate: Gate
    reason: VoidReason
    evidence: Evidence


class GateSkipped(Part):
    """The gate was not run."""

    verdict: Literal["skipped"]
    gate: Gate
    reason: SkipReason


GateResult = Annotated[GatePassed | GateFailed | GateVoid | GateSkipped, Field(discriminator="verdict")]


class Round(StrEnum):
    """The input values of a correctness check."""

    ORDINARY = "ordinary"
    LARGE = "large"
    SPECIAL = "special"
    ROWS = "rows"
    """Rows that differ from each other; only where the task says how."""


class OutputError(Part):
    """Error of one output in one round. 1.0 is the tolerance."""

    round: Round
    output: Identifier
    worst_ratio: NonNegativeFloat
    """Largest |error| / tolerance over all elements of the candidate's output."""
    baseline_worst_ratio: NonNegativeFloat
    """The same of the baseline."""
    rms_error: NonNegativeFloat
    """Root mean square of the candidate's error, relative to the reference's root mean square."""
    baseline_rms_error: NonNegativeFloat
    """The same of the baseline."""


class CaseCorrect(Part):
    """Right in every round."""

    verdict: Literal["correct"]
    errors: tuple[OutputError, ...] = Field(min_length=1)


class CaseIncorrect(Part):
    """Wrong, or no answer."""

    verdict: Literal["incorrect"]
    reason: FailReason
    round: Round | None
    """Round in which it failed; null where it failed outside a round, for example when timed."""
    evidence: Evidence
    errors: tuple[OutputError, ...] = ()
    """Errors of the rounds that could be compared."""


class CaseNotChecked(Part):
    """Not run or not verifiable here."""

    verdict: Literal["not_checked"]
    reason: SkipReason


Correctness = Annotated[CaseCorrect | CaseIncorrect | CaseNotChecked, Field(discriminator="verdict")]


class SpeedVerdict(StrEnum):
    """What the interval says."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE_SHOWN = "no_difference_shown"


class Method(StrEnum):
    """How both sides were run; always the same for both."""

    GRAPH = "graph"
    PLAIN = "plain"


class SpeedMeasured(Part):
    """A speedup, with its 95 percent interval."""

    state: Literal["measured"]
    verdict: SpeedVerdict
    speedup: PositiveFloat
    """Median of baseline over median of candidate, per call; a candidate below the resolution counts as resolved."""
    low: PositiveFloat
    high: PositiveFloat
    baseline_median_us: PositiveFloat
    candidate_median_us: PositiveFloat
    blocks: PositiveInt
    """Blocks a side."""
    calls_per_block: PositiveInt
    """Calls in one block of the candidate."""
    method: Method
    roofline_fraction: PositiveFloat
    """Least possible time on this device over the candidate's time; above 1 it would be faster than possible."""
    outputs_checked: PositiveInt
    """Timed outputs that were compared in full with the oracle."""
    flags: tuple[str, ...] = ()
    """For a person to look at; they decide nothing."""


class SpeedUnknownReason(StrEnum):
    """Why a configuration has no speedup although it was run."""

    NOT_RESOLVED = "not_resolved"
    UNSTABLE = "unstable"
    BASELINE_DISTURBED = "baseline_disturbed"


class SpeedUnknown(Part):
    """Run, but no number can be stated."""

    state: Literal["unknown"]
    reason: SpeedUnknownReason
    evidence: Evidence


class SpeedAbsent(Part):
    """Not run."""

    state: Literal["absent"]
    reason: SkipReason


Speed = Annotated[SpeedMeasured | SpeedUnknown | SpeedAbsent, Field(discriminator="state")]


class Case(Part):
    """One configuration, judged."""

    configuration: Configuration
    baseline: Correctness
    """The baseline against the oracle; anything but correct or not_checked is a defect of the task."""
    candidate: Correctness
    speed: Speed


class BaselineAlone(Part):
    """Whether the candidate disturbs the baseline: medians per call on one configuration."""

    configuration: str
    before_us: PositiveFloat | None
    """Before the candidate's code was loaded; null but for a few that are chosen in secret."""
    between_us: PositiveFloat | None
    """In turn with the candidate; null where that came to no series."""
    after_us: PositiveFloat
    """After the candidate was dead."""


class Quality(Part):
    """How good the instrument was during this judgement."""

    instrument_floor: NonNegativeFloat
    """Relative spread between fresh worker processes on this device; intervals are widened by it."""
    resolution_us: NonNegativeFloat
    """Time per call below which nothing is resolved."""
    baseline_alone: tuple[BaselineAlone, ...]
    """On every configuration that was timed."""
    idle_looks: NonNegativeInt
    """How often the judge looked whether the device was idle before a replay."""
    busy_looks: NonNegativeInt
    """How often it was not."""


class EvaluationRecord(Record):
    """One judgement of one candidate."""

    schema_name: ClassVar[str] = "evaluation"

    schema_version: Literal[1]
    task_id: TaskId
    task_digest: Digest
    candidate_digest: Digest
    judge_digest: Digest
    """Digest of the judge's own code and headers."""
    target: TargetName
    architecture: str
    """For example gfx942, sm_90, x86_64."""
    nonce: Digest
    """The secret that the input values were drawn from, revealed afterwards."""
    gates: tuple[GateResult, ...] = Field(min_length=6, max_length=6)
    """The six gates, in order."""
    cases: tuple[Case, ...]
    quality: Quality | None
    """Null where nothing was timed."""
    stage_seconds: dict[Identifier, NonNegativeFloat]
    """Wall time of each stage; ``candidate_compile`` is the candidate's own."""


class Series(Part):
    """Raw times of one configuration, in the order in which they were taken."""

    configuration: str
    method: Method
    baseline_sets: PositiveInt
    """Distinct buffer sets that one replay of the baseline runs over, one call each."""
    candidate_sets: PositiveInt
    baseline_replays: PositiveInt
    """Timed replays that one block of the baseline adds up, each after fresh inputs."""
    candidate_replays: PositiveInt
    baseline_us: tuple[PositiveFloat, ...]
    """Time per call of each baseline block."""
    candidate_us: tuple[PositiveFloat, ...]
    """Time per call of each candidate block, the charge included."""
    candidate_charge_us: NonNegativeFloat
    """Added to each candidate block, per call: what the steps around its replays took longer than the baseline's, and
    what it seems to gain from carrying calls out together."""
    baseline_single_us: tuple[PositiveFloat, ...] = ()
    """Whole replays of one call by itself, after the last block; they hold a replay's own cost."""
    candidate_single_us: tuple[PositiveFloat, ...] = ()
    candidate_watched: tuple[Annotated[float, Field(ge=0, le=1)], ...] = ()
    """Share of the calls that were done at each look at a running replay of the candidate; these are not timed."""
    order: str = Field(pattern=r"^[bc]*$")
    """Which side each block was, in order of time: b or c."""


class AloneSeries(Part):
    """Blocks of the baseline by itself on one configuration."""

    configuration: str
    before_us: tuple[PositiveFloat, ...]
    """Before the candidate's code was loaded; empty but for a few configurations that are chosen in secret."""
    after_us: tuple[PositiveFloat, ...]
    """After the candidate was dead."""


class SamplesRecord(Record):
    """Every raw time of one judgement."""

    schema_name: ClassVar[str] = "samples"

    schema_version: Literal[1]
    task_id: TaskId
    series: tuple[Series, ...]
    baseline_alone: tuple[AloneSeries, ...]
    idle_probe_us: tuple[NonNegativeFloat, ...]
    """A short kernel of the judge's own before each replay; far slower than calibrated: the device is not idle."""


class CheckCase(Part):
    """What an agent is told about one seen configuration."""

    configuration: Configuration
    correct: bool | None
    """Null where the target cannot verify it."""
    reason: str | None
    worst_error_ratio: NonNegativeFloat | None
    """Largest error over the tolerance."""
    baseline_us: PositiveFloat | None
    candidate_us: PositiveFloat | None


class CheckRecord(Record):
    """The answer to one call of the agent's ``check``: bounded, and about seen configurations only."""

    schema_name: ClassVar[str] = "check"

    schema_version: Literal[1]
    compiled: bool
    log: str = Field(max_length=8000)
    cases: tuple[CheckCase, ...]
    message: str = Field(max_length=500)
    calls_left: NonNegativeInt
