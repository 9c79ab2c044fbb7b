"""Read the files of one try, without trust: whatever is wrong with them is told, and their texts are bounded."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from akarena import files, schemas
from akarena.errors import UserError
from akarena.records import AuditRecord, EvaluationRecord, InspectionRecord, TrajectoryRecord
from akarena.records.report_trial import Inspected, Work
from akarena.records.trial import JudgedTrial, NotBuiltTrial, TrialOutcome, VoidTrial
from akarena.report.findings import findings
from akarena.report.inspected import inspected
from akarena.report.text import block, line
from akarena.report.work import work
from akarena.store import AUDIT_LOG, TryFolder

_MOST_LOGS = 6
_ALL_DIFF_LINES = 60_000
_ALL_LOG_LINES = 12_000
_ALL_STEPS = 6_000
"""Over the whole report; a large run shows less of each trial, and the run folder has everything."""


R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True)
class Bounds:
    """Most lines of one diff and of one log, and most steps of one agent."""

    diff: int
    log: int
    steps: int

    @classmethod
    def of(cls, trials: int) -> Bounds:
        """Share out what a report of so many trials has room for."""
        return cls(
            diff=min(300, max(40, _ALL_DIFF_LINES // trials)),
            log=min(40, max(8, _ALL_LOG_LINES // trials)),
            steps=min(60, max(6, _ALL_STEPS // trials)),
        )


@dataclass(frozen=True)
class TryFiles:
    """What lies beside ``trial.json``."""

    evaluation: EvaluationRecord | None = None
    trajectory: TrajectoryRecord | None = None
    """Without its steps, which can be very many."""
    work: Work | None = None
    inspection: Inspected | None = None
    diff: str = ""
    """Bounded and visible."""
    logs: tuple[tuple[str, str], ...] = ()
    """Name and end of each, bounded and visible."""
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Requests to a model's service, by verdict and reason, from the gateway's log."""
    findings: tuple[str, ...] = ()
    """What in the candidate's text a person should look at."""
    problems: tuple[str, ...] = ()
    """What is wrong with any of them."""


@dataclass
class _Requests:
    """What the gateway's log says."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    tokens: bool = False
    """Whether it holds numbers of tokens."""


def read_try(one: TryFolder, outcome: TrialOutcome, bounds: Bounds) -> TryFiles:
    """Read every file of a try that a report shows."""
    root = one.attempt.run.root
    problems: list[str] = []
    requests = _requests(one, problems)
    trajectory = _record(TrajectoryRecord, one.trajectory, root, problems)
    done = None
    if trajectory is not None:
        done = work(trajectory, most_steps=bounds.steps, gateway_counted=requests.tokens)
        trajectory = trajectory.model_copy(update={"steps": ()})
    names = list(_log_names(one))
    logs = tuple(
        (line(path.name, 80), block(_text(root, path, problems), lines=bounds.log, head=False))
        for path in names[:_MOST_LOGS]
    )
    if len(names) > _MOST_LOGS:
        problems.append(f"{len(names) - _MOST_LOGS} more logs are in the run folder")
    return TryFiles(
        evaluation=_evaluation(one, outcome, problems),
        trajectory=trajectory,
        work=done,
        inspection=_inspection(one, outcome, problems),
        diff=block(_text(root, one.patch, problems), lines=bounds.diff) if os.path.lexists(one.patch) else "",
        logs=logs,
        requests=requests.counts,
        findings=_findings(one, outcome, problems),
        problems=tuple(problems),
    )


def relative(root: Path, error: UserError) -> str:
    """Return an error's message without the place of the run folder, which would differ between machines."""
    return str(error).replace(f"{root}{os.sep}", "")


def _record(kind: type[R], path: Path, root: Path, problems: list[str]) -> R | None:
    """Read a record that need not be there."""
    if not os.path.lexists(path):
        return None
    try:
        return schemas.parse(kind, files.read_bytes(root, path), path.name)
    except UserError as error:
        problems.append(relative(root, error))
        return None


def _evaluation(one: TryFolder, outcome: TrialOutcome, problems: list[str]) -> EvaluationRecord | None:
    root = one.attempt.run.root
    # A try that broke early has no evaluation, or one that its trial does not vouch for.
    if isinstance(outcome, VoidTrial):
        return _record(EvaluationRecord, one.evaluation, root, problems)
    try:
        data = files.read_bytes(root, one.evaluation)
        if hashlib.sha256(data).hexdigest() != outcome.evaluation_sha256:
            raise UserError("evaluation.json: its sum is not the one in trial.json")
        return schemas.parse(EvaluationRecord, data, "evaluation.json")
    except UserError as error:
        problems.append(relative(root, error))
        return None


def _inspection(one: TryFolder, outcome: TrialOutcome, problems: list[str]) -> Inspected | None:
    record = _record(InspectionRecord, one.inspection, one.attempt.run.root, problems)
    if record is None:
        return None
    other = not isinstance(outcome, VoidTrial) and record.candidate_digest != outcome.candidate_digest
    if other or record.task_id != outcome.task_id:
        problems.append("inspection.json is about another candidate, and is not shown")
        return None
    return inspected(record)


def _requests(one: TryFolder, problems: list[str]) -> _Requests:
    found = _Requests()
    path = one.logs / AUDIT_LOG
    if path not in _log_names(one):
        return found
    try:
        for number, text in enumerate(files.read_bytes(one.attempt.run.root, path).splitlines(), 1):
            record = schemas.parse(AuditRecord, text, f"{AUDIT_LOG}, line {number}")
            found.counts[record.verdict.value, record.reason.value if record.reason else ""] += 1
            found.tokens |= record.tokens is not None
    except UserError as error:
        problems.append(relative(one.attempt.run.root, error))
    return found


def _findings(one: TryFolder, outcome: TrialOutcome, problems: list[str]) -> tuple[str, ...]:
    """Search the files that were judged; those of an unchanged trial are the task's own."""
    if not isinstance(outcome, JudgedTrial | NotBuiltTrial) or one.candidate not in files.folders(one.root):
        return ()
    found: list[str] = []
    for name in files.walk(one.candidate)[0]:
        text = _text(one.attempt.run.root, one.candidate / name, problems)
        found += findings(line(name, 80), text)
    return tuple(found)


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
        problems.append(relative(root, error))
        return ""
