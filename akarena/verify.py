"""Check a run folder without a GPU: records, sums, completeness, and every number that follows from another record.

The sums prove that the folder is as it was sealed, not who sealed it; that the numbers are true is shown by judging the
candidates again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from akarena import schemas, store, strictjson
from akarena.errors import UserError
from akarena.files import walk
from akarena.records import AttemptRecord, EventRecord, LockRecord, ManifestRecord, SeedRecord
from akarena.records.trial import TrySummary
from akarena.store import AttemptFolder, RunFolder
from akarena.verify_trial import check_try

K = TypeVar("K", bound=schemas.AnyRecord)

MAX_TRIALS = 100_000
"""Largest plan that is gone through; a foreign manifest must not be able to fill the memory."""


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that is wrong with a run folder."""

    file: str
    """Relative to the run folder."""
    problem: str
    """One line."""

    def __str__(self) -> str:
        return f"{self.file}: {self.problem}"


def verify(run_root: Path) -> list[Finding]:
    """Check a run folder.

    Returns:
        What was found, sorted by file; empty where everything holds.

    Raises:
        UserError: The folder is no run folder: it has no ``manifest.json``.
    """
    run = RunFolder(run_root)
    if not run.manifest.is_file():
        raise UserError(f"{run_root}: is no run folder, expected manifest.json in it")
    checker = Checker(run)
    for name, problem in store.sum_problems(run):
        checker.note(run.root / name, problem)
    manifest = checker.read(ManifestRecord, run.manifest)
    lock = checker.read(LockRecord, run.lock)
    _check_events(checker)
    if manifest is not None:
        _check_manifest(checker, manifest)
        _check_seed(checker, manifest)
        _check_lock(checker, manifest, lock)
        _check_plan(checker, manifest)
    for attempt in run.attempts():
        _check_attempt(checker, attempt, manifest, lock)
    _check_report(checker)
    return sorted(set(checker.findings))


class Checker:
    """A run folder under check, and what was found so far."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self.findings: list[Finding] = []

    def note(self, path: Path, problem: str) -> None:
        """Add a finding about a file."""
        name = path.relative_to(self.run.root).as_posix()
        # Names and messages of a foreign folder go to a terminal.
        self.findings.append(Finding(*(text if text.isprintable() else repr(text) for text in (name, problem))))

    def require(self, holds: bool, path: Path, problem: str) -> None:
        """Add a finding unless a condition holds."""
        if not holds:
            self.note(path, problem)

    def read(self, kind: type[K], path: Path) -> K | None:
        """Read a record with both engines; what is wrong with it becomes a finding, and the answer None."""
        try:
            data = store.read_bytes(self.run.root, path)
        except UserError as error:
            self.note(path, str(error).removeprefix(f"{path}: "))
            return None
        return self.parse(kind, path, data)

    def parse(self, kind: type[K], path: Path, data: bytes, line: str = "") -> K | None:
        """Do what ``read`` does with the bytes at hand."""
        problems = schemas.validate(kind.schema_name, data)
        try:
            record = schemas.parse(kind, data, "")
        except UserError as error:
            self.note(path, line + ("; ".join(problems) or str(error).removeprefix(": ")))
            return None
        self.require(not problems, path, line + "; ".join(problems))
        return None if problems else record


def _check_manifest(checker: Checker, manifest: ManifestRecord) -> None:
    path = checker.run.manifest
    for what, names in (("agent", [agent.id for agent in manifest.agents]), ("task", list(manifest.tasks))):
        for name, count in Counter(names).items():
            checker.require(count == 1, path, f"{what} {name} is listed {count} times")


def _check_seed(checker: Checker, manifest: ManifestRecord) -> None:
    path = checker.run.seed
    seed = checker.read(SeedRecord, path)
    if seed is None:
        return
    committed = hashlib.sha256(bytes.fromhex(seed.seed)).hexdigest() == manifest.seed_sha256
    checker.require(committed, path, "is not the seed that manifest.json committed to: the SHA-256 differs")
    checker.require(seed.seed_source is manifest.seed_source, path, "seed_source differs from manifest.json")
    checker.require(seed.run_id == manifest.run_id, path, "run_id differs from manifest.json")


def _check_lock(checker: Checker, manifest: ManifestRecord, lock: LockRecord | None) -> None:
    if lock is None:
        return
    path = checker.run.lock
    checker.require(lock.run_id == manifest.run_id, path, "run_id differs from manifest.json")
    checker.require(lock.target is manifest.target, path, "target differs from manifest.json")
    same = sorted(task.id for task in lock.tasks) == sorted(manifest.tasks)
    checker.require(same, path, "its tasks are not those of manifest.json")


def _check_events(checker: Checker) -> None:
    path = checker.run.events
    try:
        lines = store.read_bytes(checker.run.root, path).split(b"\n")
    except UserError as error:
        checker.note(path, str(error).removeprefix(f"{path}: "))
        return
    checker.require(lines[-1] == b"", path, "its last line is torn")
    for number, line in enumerate(lines[:-1], 1):
        checker.parse(EventRecord, path, line, f"line {number}: ")


def _check_plan(checker: Checker, manifest: ManifestRecord) -> None:
    run = checker.run
    size = len(manifest.tasks) * len(manifest.agents) * manifest.attempts
    if size > MAX_TRIALS:
        checker.note(run.manifest, f"plans {size} attempts, expected at most {MAX_TRIALS}")
        return
    planned = {
        (task, agent.id, number)
        for task in manifest.tasks
        for agent in manifest.agents
        for number in range(1, manifest.attempts + 1)
    }
    present = {(folder.task_id, folder.configuration_id, folder.number) for folder in run.attempts()}
    for kind, names in (("missing", planned - present), ("surplus, manifest.json has no such", present - planned)):
        for task, configuration, number in names:
            folder = run.attempt(task, configuration, number)
            checker.note(folder.root, f"{kind}: task {task}, configuration {configuration}, attempt {number}")


def _check_attempt(
    checker: Checker, folder: AttemptFolder, manifest: ManifestRecord | None, lock: LockRecord | None
) -> None:
    who = f"task {folder.task_id}, configuration {folder.configuration_id}, attempt {folder.number}"
    tries = [one for one in folder.tries() if one.complete]
    checker.require(bool(tries), folder.root, f"no trial is complete: {who}")
    trials = {one.number: check_try(checker, one, manifest, lock) for one in tries}
    for one in folder.tries():
        judged = one.evaluation.is_file() and not one.complete
        checker.require(not judged, one.root, "was judged, but its trial.json is missing")

    path = folder.attempt
    record = checker.read(AttemptRecord, path)
    if record is None:
        return
    names = (record.task_id, record.configuration_id, record.attempt)
    checker.require(
        names == (folder.task_id, folder.configuration_id, folder.number), path, f"names another attempt than {who}"
    )
    listed = [summary.try_number for summary in record.tries]
    checker.require(listed == sorted(set(listed)), path, "its tries are not in order, or repeated")
    for number in sorted(set(listed) ^ set(trials)):
        kept = "on disk but not listed" if number in trials else "listed but has no trial.json"
        checker.note(path, f"try {number} is {kept}")
    for summary in record.tries:
        trial = trials.get(summary.try_number)
        if trial is not None:
            same = summary.status == trial.root.status
            checker.require(same, path, f"try {summary.try_number} is {trial.root.status} in its trial.json")
    counted = _counted(record.tries)
    checker.require(
        record.counted_try == counted,
        path,
        f"counted_try is {record.counted_try}, expected {counted}: the first that is not void, else the last",
    )
    after = [summary.try_number for summary in record.tries if summary.try_number > counted]
    checker.require(not after, path, f"try {counted} was not void, and yet there was another")
    if manifest is not None:
        checker.require(
            len(listed) <= manifest.tries, path, f"has more tries than manifest.json allows ({manifest.tries})"
        )


def _counted(tries: Sequence[TrySummary]) -> int:
    """Apply the rule of which try counts."""
    valid = [summary.try_number for summary in tries if summary.status != "void"]
    return valid[0] if valid else tries[-1].try_number


def _check_report(checker: Checker) -> None:
    """Render the report again and hold it against the one in the folder, where there is one."""
    folder = checker.run.report
    if folder.is_symlink() or not folder.is_dir():
        checker.require(not folder.is_symlink(), folder, "is a symbolic link")
        return
    if checker.findings:
        # A renderer reads records that hold; with broken ones its complaint would only repeat the findings.
        return
    from akarena import report  # Drawing pulls in much, and most folders under check have no report.

    rendered = report.render_run(checker.run.root)
    files, strange = walk(folder)
    for name in strange:
        checker.note(folder / name, "is not a regular file with a plain name")
    for name in sorted(set(files) - set(rendered)):
        checker.note(folder / name, "is no part of the report of these records")
    for name in sorted(set(rendered) - set(files)):
        checker.note(folder / name, "missing, though the report has it")
    found = {name: store.read_bytes(folder, folder / name) for name in files if name in rendered}
    differing = sorted(name for name, data in found.items() if data != rendered[name])
    version = _renderer(found.get("data.json"))
    other = version is not None and version != _renderer(rendered.get("data.json"))
    for name in differing:
        checker.note(
            folder / name,
            "rendered by another version" if other else _difference(found[name], rendered[name]),
        )


def _renderer(data: bytes | None) -> object:
    """Return the renderer's version that ``data.json`` records."""
    if data is None:
        return None
    try:
        document = strictjson.loads(data, "data.json")
    except UserError:
        return None
    return document.get("renderer_version") if isinstance(document, dict) else None


def _difference(found: bytes, expected: bytes) -> str:
    for number, (one, other) in enumerate(zip(found.split(b"\n"), expected.split(b"\n"), strict=False), 1):
        if one != other:
            return f"differs from the report of these records, first in line {number}"
    return "differs from the report of these records in its length"
