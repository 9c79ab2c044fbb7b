"""A run folder: where every file lies, how records are written and read, and the sums that seal it.

::

    <run-id>/
      manifest.json  lock.json  events.jsonl  seed.json  SHA256SUMS  report/
      trials/<category>/<task>/<agent configuration>/a<attempt>/
        attempt.json
        t<try>/  trial.json  trajectory.json  candidate/  patch.diff  evaluation.json  samples.json
                 inspection.json  logs/

A run folder from elsewhere is hostile input: everything below its root is opened component by component without
following links, only regular files are read, and no record may be larger than 64 MiB.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from akarena import schemas
from akarena.errors import InfrastructureError, UserError, unknown_name
from akarena.files import MAX_RECORD_BYTES, digest_tree, folders, read_bytes, sha256, walk, write_bytes
from akarena.records import EventRecord
from akarena.records.base import Slug, TaskId
from akarena.records.task import Category

__all__ = [
    "AUDIT_LOG",
    "MAX_RECORD_BYTES",
    "AttemptFolder",
    "RunFolder",
    "TryFolder",
    "append_event",
    "check_sums",
    "digest_tree",
    "find_run",
    "read_bytes",
    "read_events",
    "sha256",
    "sum_problems",
    "write_bytes",
    "write_record",
    "write_sums",
]

R = TypeVar("R", bound=BaseModel)

AUDIT_LOG = "gateway.jsonl"
"""Name of the gateway's log among the logs of a try."""
_CHUNK = 2**20
_ATTEMPT = re.compile(r"a([1-9][0-9]{0,5})")
_TRY = re.compile(r"t([1-9][0-9]{0,5})")
_SUM_LINE = re.compile(r"([0-9a-f]{64}) [ *]([^\\\n]+)")
_task_ids: TypeAdapter[str] = TypeAdapter(TaskId)
_slugs: TypeAdapter[str] = TypeAdapter(Slug)


@dataclass(frozen=True)
class RunFolder:
    """One run on disk. Making the object touches nothing."""

    root: Path

    @property
    def manifest(self) -> Path:
        """What was asked."""
        return self.root / "manifest.json"

    @property
    def lock(self) -> Path:
        """What it resolved to."""
        return self.root / "lock.json"

    @property
    def seed(self) -> Path:
        """The revealed seed; there once the run is sealed."""
        return self.root / "seed.json"

    @property
    def events(self) -> Path:
        """Progress, one record a line."""
        return self.root / "events.jsonl"

    @property
    def sums(self) -> Path:
        """SHA-256 of every file but the report's; its presence means that the run is sealed."""
        return self.root / "SHA256SUMS"

    @property
    def report(self) -> Path:
        """Rendered from the rest at will."""
        return self.root / "report"

    def attempt(self, task_id: str, configuration_id: str, attempt: int) -> AttemptFolder:
        """Return the folder of one attempt, whether it exists or not.

        Raises:
            UserError: A name is not of the form that a folder may have.
        """
        for adapter, name in ((_task_ids, task_id), (_slugs, configuration_id)):
            try:
                adapter.validate_python(name, strict=True)
            except ValidationError:
                raise UserError(f"{self.root}: {name!r} is no task id or configuration id") from None
        if attempt < 1:
            raise UserError(f"{self.root}: attempt {attempt} does not exist, expected 1 or more")
        return AttemptFolder(self, task_id, configuration_id, attempt)

    def attempts(self) -> Iterator[AttemptFolder]:
        """Yield every attempt folder on disk, sorted by task, configuration and number; other names are passed over."""
        # Each level is listed by ``folders``, which leaves links out, so that none is followed on the way down.
        for category in (c for trials in folders(self.root) if trials.name == "trials" for c in folders(trials)):
            if category.name not in set(Category):
                continue
            for task in folders(category):
                task_id = f"{category.name}/{task.name}"
                for configuration in folders(task):
                    found = (_ATTEMPT.fullmatch(folder.name) for folder in folders(configuration))
                    for number in sorted(int(match[1]) for match in found if match):
                        try:
                            yield self.attempt(task_id, configuration.name, number)
                        except UserError:
                            break

    def read(self, kind: type[R], path: Path) -> R:
        """Read one record of this run, without trusting the folder.

        Raises:
            UserError: The file is missing, a link, no regular file, too large, or not such a record.
        """
        return schemas.parse(kind, read_bytes(self.root, path), str(path))


@dataclass(frozen=True)
class AttemptFolder:
    """One attempt of one agent configuration on one task."""

    run: RunFolder
    task_id: str
    configuration_id: str
    number: int

    @property
    def root(self) -> Path:
        """The folder itself."""
        return self.run.root / "trials" / self.task_id / self.configuration_id / f"a{self.number}"

    @property
    def attempt(self) -> Path:
        """The record that names the try that counts."""
        return self.root / "attempt.json"

    def tries(self) -> list[TryFolder]:
        """Return every try on disk, in order."""
        found = (_TRY.fullmatch(folder.name) for folder in folders(self.root))
        return [TryFolder(self, number) for number in sorted(int(match[1]) for match in found if match)]

    def try_folder(self, number: int) -> TryFolder:
        """Return the folder of one try, whether it exists or not."""
        return TryFolder(self, number)

    def new_try(self) -> TryFolder:
        """Create the folder of the next try. Earlier ones stay as they are, complete or not."""
        tries = self.tries()
        new = TryFolder(self, tries[-1].number + 1 if tries else 1)
        new.logs.mkdir(parents=True)
        return new


@dataclass(frozen=True)
class TryFolder:
    """One try of an attempt."""

    attempt: AttemptFolder
    number: int

    @property
    def root(self) -> Path:
        """The folder itself."""
        return self.attempt.root / f"t{self.number}"

    @property
    def trial(self) -> Path:
        """The outcome; written last."""
        return self.root / "trial.json"

    @property
    def trajectory(self) -> Path:
        """What the agent did."""
        return self.root / "trajectory.json"

    @property
    def candidate(self) -> Path:
        """Folder of the files that were taken from the agent."""
        return self.root / "candidate"

    @property
    def patch(self) -> Path:
        """The candidate as a difference from what the agent started with."""
        return self.root / "patch.diff"

    @property
    def evaluation(self) -> Path:
        """What the judge found."""
        return self.root / "evaluation.json"

    @property
    def samples(self) -> Path:
        """Raw times."""
        return self.root / "samples.json"

    @property
    def inspection(self) -> Path:
        """What the candidate uses on AMD GPUs that are not there; not in every try, and never scored."""
        return self.root / "inspection.json"

    @property
    def logs(self) -> Path:
        """Folder of raw streams."""
        return self.root / "logs"

    @property
    def complete(self) -> bool:
        """Whether ``trial.json`` exists, which is written last."""
        return self.trial.is_file() and not self.trial.is_symlink()


def write_record(path: Path, record: schemas.AnyRecord, *, replace: bool = False) -> None:
    """Write a record so that a crash leaves either the whole file or none.

    Raises:
        InfrastructureError: The file exists and ``replace`` is false, or the record does not meet its schema.
    """
    write_bytes(path, schemas.to_json(record), replace=replace)


def append_event(path: Path, record: EventRecord) -> None:
    """Append one line to ``events.jsonl`` and force it to disk; a torn line left by a crash is cut off first."""
    data = schemas.to_json(record)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o644), "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _CHUNK))
        tail = file.read(_CHUNK) or b""
        if tail and not tail.endswith(b"\n"):
            file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)
        file.write(data)
        os.fsync(file.fileno())


def read_events(path: Path) -> list[EventRecord]:
    """Read ``events.jsonl``; a last line without its newline was torn by a crash and is left out."""
    lines = read_bytes(path.parent, path).split(b"\n")
    return [schemas.parse(EventRecord, line, f"{path} line {number}") for number, line in enumerate(lines[:-1], 1)]


def find_run(runs_dir: Path, name: str) -> RunFolder:
    """Find a run by its name in ``runs_dir``, by a unique prefix of the name, or by a path.

    Raises:
        UserError: No run or more than one run is meant.
    """
    known = {folder.name: folder for folder in folders(runs_dir) if (folder / "manifest.json").is_file()}
    if name in known:
        return RunFolder(known[name])
    if (Path(name) / "manifest.json").is_file():
        return RunFolder(Path(name))
    matches = sorted(run for run in known if name and run.startswith(name))
    if len(matches) == 1:
        return RunFolder(known[matches[0]])
    if matches:
        raise UserError(f"run {name!r} is ambiguous: {', '.join(matches)}")
    raise unknown_name("run", name, known)


def write_sums(run: RunFolder) -> None:
    """Seal a run: write ``SHA256SUMS`` over all its files but the report's. Nothing may be written after it."""
    files, strange = _covered(run)
    if strange:
        raise InfrastructureError(f"{run.root}: cannot be sealed: {'; '.join(strange)}")
    lines = [f"{sha256(run.root / name, run.root)}  {name}\n" for name in files]
    write_bytes(run.sums, "".join(lines).encode())


def check_sums(run: RunFolder) -> list[str]:
    """Hold a run folder against its ``SHA256SUMS``: a line for each file that was added, is missing or has changed."""
    return [f"{name}: {problem}" for name, problem in sum_problems(run)]


def sum_problems(run: RunFolder) -> list[tuple[str, str]]:
    """Do what ``check_sums`` does, with the file and its problem apart."""
    try:
        text = read_bytes(run.root, run.sums).decode("utf-8")
    except (UserError, UnicodeDecodeError):
        return [("SHA256SUMS", "missing or unreadable: the run is not sealed")]
    problems = []
    listed: dict[str, str] = {}
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        match = _SUM_LINE.fullmatch(line)
        if match is None or match[2] in listed:
            problems.append(("SHA256SUMS", f"line {number} is no sum, or repeats a name"))
        else:
            listed[match[2]] = match[1]
    files, strange = _covered(run)
    problems += [(name, "is not a regular file with a plain name") for name in strange]
    problems += [(name, "missing, though it has a sum") for name in sorted(listed.keys() - set(files))]
    for name in files:
        if name not in listed:
            problems.append((name, "added: it has no sum"))
        elif _sum(run, name) != listed[name]:
            problems.append((name, "changed: its sum differs"))
    return problems


def _sum(run: RunFolder, name: str) -> str | None:
    try:
        return sha256(run.root / name, run.root)
    except UserError:
        return None


def _covered(run: RunFolder) -> tuple[list[str], list[str]]:
    """Return the names that the sums cover, and those that they cannot; working files (``.name``) at the root aside."""
    files, strange = walk(run.root)

    def kept(name: str) -> bool:
        return not name.startswith((".", "report/")) and name not in ("SHA256SUMS", "report")

    return [name for name in files if kept(name)], [name for name in strange if kept(name)]
