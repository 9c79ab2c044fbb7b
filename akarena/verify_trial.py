"""Check one try: that its records belong together, and that its outcome follows from its evaluation and raw times."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from akarena import schemas, scoring, store
from akarena.agents import outcomes
from akarena.errors import UserError
from akarena.files import read_bytes, walk
from akarena.records import (
    AuditRecord,
    EvaluationRecord,
    InspectionRecord,
    LockRecord,
    ManifestRecord,
    SamplesRecord,
    TrajectoryRecord,
    TrialRecord,
)
from akarena.records.evaluation import (
    Case,
    CaseCorrect,
    Gate,
    GateFailed,
    GatePassed,
    GateVoid,
    Quality,
    SpeedMeasured,
    Split,
    VoidReason,
)
from akarena.records.trial import JudgedTrial, NotBuiltTrial, TrialOutcome, UnchangedTrial, VoidTrial
from akarena.store import AUDIT_LOG, TryFolder

K = TypeVar("K", bound=schemas.AnyRecord)

_RELATIVE = 1e-9
"""Numbers that were computed again may differ by rounding in another mathematics library."""


class Notes(Protocol):
    """What takes the findings."""

    def note(self, path: Path, problem: str) -> None:
        """Add a finding about a file."""

    def require(self, holds: bool, path: Path, problem: str) -> None:
        """Add a finding unless a condition holds."""

    def read(self, kind: type[K], path: Path) -> K | None:
        """Read a record; what is wrong with it becomes a finding."""


def check_try(
    notes: Notes, folder: TryFolder, manifest: ManifestRecord | None, lock: LockRecord | None
) -> TrialRecord | None:
    """Check a complete try; return its trial where that could be read."""
    record = notes.read(TrialRecord, folder.trial)
    trajectory = notes.read(TrajectoryRecord, folder.trajectory) if _exists(folder.trajectory) else None
    samples = notes.read(SamplesRecord, folder.samples) if _exists(folder.samples) else None
    evaluation = notes.read(EvaluationRecord, folder.evaluation) if _exists(folder.evaluation) else None
    inspection = notes.read(InspectionRecord, folder.inspection) if _exists(folder.inspection) else None
    audit = _audit(notes, folder.logs / AUDIT_LOG)
    if evaluation is not None:
        _check_evaluation(notes, folder, evaluation, samples, lock)
    if evaluation is not None and inspection is not None:
        same = (inspection.task_id, inspection.candidate_digest) == (evaluation.task_id, evaluation.candidate_digest)
        notes.require(same, folder.inspection, "is about another candidate than evaluation.json")
    if record is None:
        return None
    trial = record.root
    _check_names(notes, folder, record, manifest, lock)
    if trajectory is not None:
        problem = f"agent_end is {trial.agent_end}, but trajectory.json has {trajectory.end}"
        notes.require(trajectory.end is trial.agent_end, folder.trial, problem)
    if audit is not None:
        _check_end(notes, folder, trial, outcomes.void_reason(trial.agent_end, audit))
    if isinstance(trial, VoidTrial):
        broken = evaluation is None or any(isinstance(gate, GateVoid) for gate in evaluation.gates)
        notes.require(broken, folder.trial, "is void, though evaluation.json has no void gate")
        return record
    missing = trajectory is None and not _exists(folder.trajectory)
    notes.require(not missing, folder.trajectory, "missing, though the trial is not void")
    if not _exists(folder.evaluation):
        notes.note(folder.evaluation, "missing, though the trial is not void")
        return record
    _check_candidate(notes, folder, trial, evaluation)
    if evaluation is not None:
        _check_outcome(notes, folder, trial, evaluation)
    return record


def _exists(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _audit(notes: Notes, path: Path) -> bytes | None:
    """Read a gateway's log and check that each line is an audit record; None where that is not so."""
    if not _exists(path):
        return b""
    whole = True
    try:
        data = read_bytes(path.parent, path)
    except UserError as error:
        notes.note(path, str(error))
        return None
    for number, line in enumerate(data.splitlines(), 1):
        try:
            schemas.parse(AuditRecord, line, f"line {number}")
        except UserError as error:
            notes.note(path, str(error))
            whole = False
    return data if whole else None


def _check_end(notes: Notes, folder: TryFolder, trial: TrialOutcome, expected: VoidReason | None) -> None:
    """Check that a trial is void for its agent's end exactly where the gateway's log says so, and was not judged."""
    found = trial.reason if isinstance(trial, VoidTrial) else None
    if expected is None:
        of_agent = found in outcomes.VOID_REASONS
        problem = f"is void for {found}, but neither its agent's end nor the gateway's log says so"
        notes.require(not of_agent, folder.trial, problem)
        return
    what = found or trial.status
    notes.require(found is expected, folder.trial, f"is {what}, but the end of its agent makes it void: {expected}")
    notes.require(_exists(folder.trajectory), folder.trajectory, "missing, though the end of the agent made it void")
    for path in (folder.evaluation, folder.samples):
        notes.require(not _exists(path), path, "is there, though the end of the agent made it void")


def _check_names(
    notes: Notes, folder: TryFolder, record: TrialRecord, manifest: ManifestRecord | None, lock: LockRecord | None
) -> None:
    trial, attempt = record.root, folder.attempt
    expected: dict[str, object] = {
        "task_id": attempt.task_id,
        "category": attempt.task_id.split("/")[0],
        "configuration_id": attempt.configuration_id,
        "attempt": attempt.number,
        "try_number": folder.number,
    }
    if manifest is not None:
        expected |= {"run_id": manifest.run_id, "target": manifest.target}
    if lock is not None:
        expected["task_digest"] = next((task.digest for task in lock.tasks if task.id == trial.task_id), None)
    for key, value in expected.items():
        found = getattr(trial, key)
        notes.require(found == value, folder.trial, f"{key} is {found}, expected {value}")


def _check_evaluation(
    notes: Notes,
    folder: TryFolder,
    evaluation: EvaluationRecord,
    samples: SamplesRecord | None,
    lock: LockRecord | None,
) -> None:
    path = folder.evaluation
    notes.require(evaluation.task_id == folder.attempt.task_id, path, f"judges another task, {evaluation.task_id}")
    if lock is not None:
        digest = next((task.digest for task in lock.tasks if task.id == evaluation.task_id), None)
        notes.require(evaluation.task_digest == digest, path, "task_digest differs from lock.json")
        notes.require(evaluation.judge_digest == lock.judge_digest, path, "judge_digest differs from lock.json")
        same = (evaluation.target, evaluation.architecture) == (lock.target, lock.architecture)
        notes.require(same, path, "target or architecture differs from lock.json")
    notes.require([gate.gate for gate in evaluation.gates] == list(Gate), path, "its gates are not the six in order")
    names = [case.configuration.id for case in evaluation.cases]
    notes.require(len(names) == len(set(names)), path, "a configuration is judged twice")
    for case in evaluation.cases:
        _check_case(notes, path, case, samples, evaluation.quality)


def _check_case(notes: Notes, path: Path, case: Case, samples: SamplesRecord | None, quality: Quality | None) -> None:
    configuration, speed = case.configuration, case.speed
    name = configuration.id
    notes.require(name.startswith(f"{configuration.split}-"), path, f"{name} is called {configuration.split}")
    seen = configuration.split is Split.SEEN
    notes.require(seen == (configuration.kind is None), path, f"{name}: a kind belongs to unseen configurations only")
    if not isinstance(speed, SpeedMeasured):
        return
    notes.require(isinstance(case.candidate, CaseCorrect), path, f"{name} has a speedup but is not correct")
    notes.require(speed.low <= speed.speedup <= speed.high, path, f"{name}: the speedup is outside its interval")
    ratio = speed.baseline_median_us / speed.candidate_median_us
    notes.require(_close(ratio, speed.speedup), path, f"{name}: the speedup is not the ratio of the medians")
    if samples is None:
        notes.note(path, f"{name} has a speedup, but there is no samples.json that holds its times")
        return
    for series in samples.series:
        if series.configuration == name and series.baseline_us and series.candidate_us:
            # A candidate below the resolution counts as just resolved.
            least_us = quality.resolution_us if quality else 0.0
            medians = statistics.median(series.baseline_us), max(statistics.median(series.candidate_us), least_us)
            if _close(medians, (speed.baseline_median_us, speed.candidate_median_us)):
                return
    notes.note(path, f"{name}: no series in samples.json has these medians")


def _check_candidate(
    notes: Notes,
    folder: TryFolder,
    trial: JudgedTrial | UnchangedTrial | NotBuiltTrial,
    evaluation: EvaluationRecord | None,
) -> None:
    root = folder.attempt.run.root
    try:
        sum_ = store.sha256(folder.evaluation, root)
        notes.require(sum_ == trial.evaluation_sha256, folder.trial, "evaluation_sha256 is not that of evaluation.json")
    except UserError as error:
        notes.note(folder.evaluation, str(error))
    if folder.candidate.is_dir() and not folder.candidate.is_symlink():
        try:
            digest, files = store.digest_tree(folder.candidate), walk(folder.candidate)[0]
        except UserError as error:
            notes.note(folder.candidate, str(error))
        else:
            notes.require(digest == trial.candidate_digest, folder.trial, "candidate_digest is not that of candidate/")
            notes.require(files == sorted(trial.candidate_files), folder.trial, "candidate_files are not those on disk")
    else:
        notes.note(folder.candidate, "missing, though the trial is not void")
    if evaluation is not None:
        same = evaluation.candidate_digest == trial.candidate_digest
        notes.require(same, folder.trial, "candidate_digest differs from evaluation.json")


def _check_outcome(
    notes: Notes,
    folder: TryFolder,
    trial: JudgedTrial | UnchangedTrial | NotBuiltTrial,
    evaluation: EvaluationRecord,
) -> None:
    """Compute the ladders and scores again."""
    path = folder.trial
    if any(isinstance(gate, GateVoid) for gate in evaluation.gates):
        notes.note(path, f"is {trial.status}, though a gate of evaluation.json is void")
        return
    start = [gate for gate in evaluation.gates if gate.gate in (Gate.SCOPE, Gate.BUILD)]
    built = all(isinstance(gate, GatePassed) for gate in start)
    if built == isinstance(trial, NotBuiltTrial):
        notes.note(
            path, f"is {trial.status}, though evaluation.json says that it was {'built' if built else 'not built'}"
        )
        return
    if isinstance(trial, NotBuiltTrial):
        reasons = [gate.reason for gate in start if isinstance(gate, GateFailed)]
        notes.require(trial.reason in reasons, path, "reason is not that of the failed gate")
        return
    seen, unseen = scoring.ladders(evaluation)
    unchanged = isinstance(trial, UnchangedTrial)
    _compare(notes, path, "seen", trial.seen, seen)
    _compare(notes, path, "unseen", trial.unseen, unseen)
    _compare(notes, path, "score", trial.score, scoring.score(seen, unseen, built=True, unchanged=unchanged))


def _compare(notes: Notes, path: Path, name: str, found: BaseModel, expected: BaseModel) -> None:
    one, other = found.model_dump(), expected.model_dump()
    for key in sorted(one.keys() | other.keys()):
        value, right = one.get(key), other.get(key)
        problem = f"{name}.{key} is {value}, but evaluation.json gives {right}"
        notes.require(_close(value, right), path, problem)


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_RELATIVE)
    return bool(one == other)
