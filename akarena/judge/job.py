"""What the judge is told to do: one JSON file, written by the runner and mounted into the judge's sandbox alone."""

from __future__ import annotations

from enum import StrEnum

from akarena.records.base import Digest, Part
from akarena.records.evaluation import Configuration
from akarena.records.run import Calibration
from akarena.records.task import TargetName, TaskRecord
from akarena.targets.base import EntryKind, Fp8


class Mode(StrEnum):
    """How much is asked for."""

    FULL = "full"
    CHECK = "check"
    CALIBRATE = "calibrate"


class SideJob(Part):
    """One of the two kernels, as its worker sees it."""

    kind: EntryKind
    path: str
    """The file to load inside the worker's sandbox."""
    entry: str


class Job(Part):
    """One judgement, or one calibration."""

    mode: Mode
    task: TaskRecord
    task_digest: Digest
    candidate_digest: Digest
    judge_digest: Digest
    target: TargetName
    architecture: str
    measures_speed: bool
    fp8: Fp8
    unverified: tuple[str, ...] = ()
    """Ids of configurations that the target cannot verify."""
    nonce: Digest
    baseline: SideJob
    candidate: SideJob
    candidate_needs_build: bool
    baseline_needs_build: bool
    configurations: tuple[Configuration, ...]
    calibration: Calibration | None
    runtime_library: str | None
    runtime_prefix: str | None
    call_seconds: float
    """Longest time of one call, or of one replay."""
    candidate_seconds: float
    """Longest total time of everything that is asked of the candidate's worker."""
    compile_seconds: float
    """Longest total time of building, loading and first calls of the candidate."""


class Process(StrEnum):
    """Names of the processes of a judgement."""

    JUDGE = "judge"
    BUILD_BASELINE = "build_baseline"
    BUILD_CANDIDATE = "build_candidate"
    BASELINE = "baseline"
    CANDIDATE = "candidate"
