"""Read a run folder into memory. The folder may be foreign: whatever cannot be trusted becomes a ``missing`` row."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from akarena import files, schemas
from akarena.errors import UserError
from akarena.records import AttemptRecord, LockRecord, ManifestRecord, SeedRecord, TrialRecord
from akarena.records.trial import TrialOutcome
from akarena.report.tryfiles import Bounds, TryFiles, read_try, relative
from akarena.store import AttemptFolder, RunFolder

_MOST_TRIALS = 100_000


@dataclass(frozen=True)
class CollectedTrial:
    """One planned trial. ``outcome`` is None where it is missing; ``note`` then says why."""

    task_id: str
    configuration_id: str
    attempt: int
    note: str = ""
    tries: int = 0
    outcome: TrialOutcome | None = None
    beside: TryFiles = field(default_factory=TryFiles)
    """What lies beside its record; nothing where it is missing."""


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
    bounds = Bounds.of(planned_count)
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
            problems.append(relative(root, error))
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


def _trial(folder: AttemptFolder, manifest: ManifestRecord, task_digest: str | None, bounds: Bounds) -> CollectedTrial:
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
        return CollectedTrial(*identity, note=f"not counted: {relative(root, error)}", tries=tries)
    wrong = _mismatch(folder, attempt, outcome, manifest, task_digest)
    if wrong:
        return CollectedTrial(*identity, note=f"not counted: {wrong}", tries=tries)
    return CollectedTrial(*identity, tries=tries, outcome=outcome, beside=read_try(one, outcome, bounds))


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
