"""Read a run folder into memory. The folder may be foreign: whatever cannot be trusted becomes a ``missing`` row."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from akarena import files, schemas
from akarena.errors import UserError
from akarena.records import (
    AttemptRecord,
    AuditRecord,
    EvaluationRecord,
    LockRecord,
    ManifestRecord,
    SeedRecord,
    TrajectoryRecord,
    TrialRecord,
)
from akarena.records.trial import TrialOutcome, VoidTrial
from akarena.report.text import block, line
from akarena.store import AUDIT_LOG, AttemptFolder, RunFolder, TryFolder

_MOST_LOGS = 6
_MOST_TRIALS = 100_000
_ALL_DIFF_LINES = 60_000
_ALL_LOG_LINES = 12_000
"""Lines over the whole report; a large run shows less of each trial, and the run folder has everything."""


@dataclass(frozen=True)
class _Bounds:
    """Most lines of one diff and of one log."""

    diff: int
    log: int


@dataclass(frozen=True)
class CollectedTrial:
    """One planned trial. ``outcome`` is None where it is missing; ``note`` then says why."""

    task_id: str
    configuration_id: str
    attempt: int
    note: str = ""
    tries: int = 0
    outcome: TrialOutcome | None = None
    evaluation: EvaluationRecord | None = None
    trajectory: TrajectoryRecord | None = None
    diff: str = ""
    """Bounded and visible."""
    logs: tuple[tuple[str, str], ...] = ()
    """Name and end of each, bounded and visible."""
    problems: tuple[str, ...] = ()
    """What is wrong with files beside the trial."""
    requests: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Requests to a model's service, by verdict and reason, from the gateway's log."""


@dataclass(frozen=True)
class Collected:
    """A run, read."""

    manifest: ManifestRecord
    lock: LockRecord
    manifest_sha256: str
    lock_sha256: str
    seed: SeedRecord | None
    sealed: bool
    trials: tuple[CollectedTrial, ...]
    """Every planned trial, by task, agent configuration and attempt, in the order of the manifest."""
    problems: tuple[str, ...]


def collect(root: Path) -> Collected:
    """Read a run.

    Raises:
        UserError: ``manifest.json`` or ``lock.json`` is missing or invalid, or they belong to different runs.
    """
    run = RunFolder(root)
    manifest_bytes, lock_bytes = (files.read_bytes(root, path) for path in (run.manifest, run.lock))
    manifest = schemas.parse(ManifestRecord, manifest_bytes, "manifest.json")
    lock = schemas.parse(LockRecord, lock_bytes, "lock.json")
    if manifest.run_id != lock.run_id:
        raise UserError(f"lock.json: run_id is {lock.run_id!r}, expected that of manifest.json, {manifest.run_id!r}")
    problems: list[str] = []
    trials = []
    ids = [agent.id for agent in manifest.agents]
    if len(set(ids)) < len(ids) or len(set(manifest.tasks)) < len(manifest.tasks):
        raise UserError("manifest.json: agents or tasks repeat, expected each id once")
    digests = {task.id: task.digest for task in lock.tasks}
    planned_count = len(manifest.tasks) * len(manifest.agents) * manifest.attempts
    if planned_count > _MOST_TRIALS:
        raise UserError(f"manifest.json: plans {planned_count} trials, expected at most {_MOST_TRIALS}")
    bounds = _Bounds(
        diff=min(300, max(40, _ALL_DIFF_LINES // planned_count)), log=min(40, max(8, _ALL_LOG_LINES // planned_count))
    )
    for task_id in manifest.tasks:
        for agent in manifest.agents:
            for number in range(1, manifest.attempts + 1):
                folder = run.attempt(task_id, agent.id, number)
                trials.append(_trial(folder, manifest, digests.get(task_id), bounds))
    planned = {(trial.task_id, trial.configuration_id, trial.attempt) for trial in trials}
    unplanned = [a for a in run.attempts() if (a.task_id, a.configuration_id, a.number) not in planned]
    if unplanned:
        first = unplanned[0]
        example = f"{first.task_id}/{first.configuration_id}/a{first.number}"
        problems.append(f"{len(unplanned)} attempts on disk are not in the manifest and are not counted, as {example}")
    seed = None
    if os.path.lexists(run.seed):
        try:
            seed = schemas.parse(SeedRecord, files.read_bytes(root, run.seed), "seed.json")
        except UserError as error:
            problems.append(_relative(root, error))
    return Collected(
        manifest=manifest,
        lock=lock,
        manifest_sha256=hashlib.sha256(manifest_bytes).hexdigest(),
        lock_sha256=hashlib.sha256(lock_bytes).hexdigest(),
        seed=seed,
        sealed=run.sums.is_file() and not run.sums.is_symlink(),
        trials=tuple(trials),
        problems=tuple(problems),
    )


def _trial(folder: AttemptFolder, manifest: ManifestRecord, task_digest: str | None, bounds: _Bounds) -> CollectedTrial:
    root = folder.run.root
    identity = (folder.task_id, folder.configuration_id, folder.number)
    tries = len(folder.tries())
    if not os.path.lexists(folder.attempt):
        note = "no result on disk" if not tries else "no try is finished: attempt.json is missing"
        return CollectedTrial(*identity, note=note, tries=tries)
    try:
        attempt = schemas.parse(AttemptRecord, files.read_bytes(root, folder.attempt), "attempt.json")
        one = folder.try_folder(attempt.counted_try)
        outcome = schemas.parse(TrialRecord, files.read_bytes(root, one.trial), "trial.json").root
    except UserError as error:
        return CollectedTrial(*identity, note=f"not counted: {_relative(root, error)}", tries=tries)
    wrong = _mismatch(folder, attempt, outcome, manifest, task_digest)
    if wrong:
        return CollectedTrial(*identity, note=f"not counted: {wrong}", tries=tries)
    return _with_files(identity, tries, one, outcome, bounds)


def _mismatch(
    folder: AttemptFolder,
    attempt: AttemptRecord,
    outcome: TrialOutcome,
    manifest: ManifestRecord,
    task_digest: str | None,
) -> str:
    """Say where a trial is not the one that its place and the lock promise; empty where it is."""
    place = (folder.task_id, folder.configuration_id, folder.number)
    if (attempt.task_id, attempt.configuration_id, attempt.attempt) != place:
        return "attempt.json names another attempt than its folder"
    if (outcome.task_id, outcome.configuration_id, outcome.attempt) != place:
        return "trial.json names another trial than its folder"
    if outcome.try_number != attempt.counted_try or outcome.run_id != manifest.run_id:
        return "trial.json belongs to another try or run"
    if outcome.target is not manifest.target:
        return f"trial.json is of target {outcome.target}, the run is of {manifest.target}"
    if outcome.task_digest != task_digest:
        return "trial.json has another task digest than lock.json, so it cannot be pooled"
    return ""


def _with_files(
    identity: tuple[str, str, int], tries: int, one: TryFolder, outcome: TrialOutcome, bounds: _Bounds
) -> CollectedTrial:
    root = one.attempt.run.root
    problems: list[str] = []
    evaluation = trajectory = None
    # A try that broke early has no evaluation, or one that its trial does not vouch for.
    if not isinstance(outcome, VoidTrial) or os.path.lexists(one.evaluation):
        try:
            data = files.read_bytes(root, one.evaluation)
            if not isinstance(outcome, VoidTrial) and hashlib.sha256(data).hexdigest() != outcome.evaluation_sha256:
                raise UserError("evaluation.json: its sum is not the one in trial.json")
            evaluation = schemas.parse(EvaluationRecord, data, "evaluation.json")
        except UserError as error:
            problems.append(_relative(root, error))
    if os.path.lexists(one.trajectory):
        try:
            trajectory = schemas.parse(TrajectoryRecord, files.read_bytes(root, one.trajectory), "trajectory.json")
        except UserError as error:
            problems.append(_relative(root, error))
    diff = ""
    if os.path.lexists(one.patch):
        diff = block(_text(root, one.patch, problems), lines=bounds.diff)
    names = list(_log_names(one))
    logs = tuple(
        (line(path.name, 80), block(_text(root, path, problems), lines=bounds.log, head=False))
        for path in names[:_MOST_LOGS]
    )
    if len(names) > _MOST_LOGS:
        problems.append(f"{len(names) - _MOST_LOGS} more logs are in the run folder")
    return CollectedTrial(
        *identity,
        tries=tries,
        outcome=outcome,
        evaluation=evaluation,
        trajectory=trajectory,
        diff=diff,
        logs=logs,
        requests=_requests(one, problems),
        problems=tuple(problems),
    )


def _requests(one: TryFolder, problems: list[str]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    path = one.logs / AUDIT_LOG
    if path not in _log_names(one):
        return found
    try:
        for number, text in enumerate(files.read_bytes(one.attempt.run.root, path).splitlines(), 1):
            record = schemas.parse(AuditRecord, text, f"{AUDIT_LOG}, line {number}")
            found[record.verdict.value, record.reason.value if record.reason else ""] += 1
    except UserError as error:
        problems.append(_relative(one.attempt.run.root, error))
    return found


def _log_names(one: TryFolder) -> Iterator[Path]:
    # The way down was proven free of links when trial.json was read; this last step is proven here.
    if one.logs not in files.folders(one.root):
        return
    with os.scandir(one.logs) as entries:
        for name in sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False)):
            yield one.logs / name


def _text(root: Path, path: Path, problems: list[str]) -> str:
    """Read a text file for display; invalid UTF-8 is replaced, and what is too large or no file is told."""
    try:
        return files.read_bytes(root, path).decode("utf-8", errors="replace")
    except UserError as error:
        problems.append(_relative(root, error))
        return ""


def _relative(root: Path, error: UserError) -> str:
    """Return an error's message without the place of the run folder, which would differ between machines."""
    return str(error).replace(f"{root}{os.sep}", "")
