"""What became of the mutants the last time that a target judged them, kept for the page in the docs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from akarena.records.task import TargetName
from akarena.targets import Target
from tests.mutation.bench import Bench, Honest
from tests.mutation.mutant import Mutant, Operator
from tests.mutation.verdicts import End, Found, Margins

FOLDER = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Entry:
    """One mutant and what became of it."""

    id: str
    source: str
    operator: Operator
    line: int
    line_text: str
    change: str
    end: End
    reason: str
    configuration: str


@dataclass
class TaskResults:
    """One task's.

    Attributes:
        task_digest: The task that was judged.
        available: How many mutants each source has, of which some were chosen.
        margins: Of each source that is not mutated.
        mutants: By id.
    """

    task_digest: str
    available: dict[str, int]
    margins: dict[str, Margins] = field(default_factory=dict)
    mutants: dict[str, Entry] = field(default_factory=dict)


@dataclass
class Results:
    """One target's, all by one judge."""

    device: str
    judge_digest: str
    tasks: dict[str, TaskResults]


class Keeper:
    """Adds what is found about one task to what is kept.

    Results stay where the same judge made them from the same task, and where the mutant still exists.

    Args:
        target: Where it is found.
        bench: The task's bench.
    """

    def __init__(self, target: Target, bench: Bench) -> None:
        self._target = target.name
        before = load(target.name)
        if before is None or before.judge_digest != bench.judge_digest:
            before = Results(target.facts().device, bench.judge_digest, {})
        available = {source: len(mutants) for source, mutants in bench.mutants.items()}
        own = TaskResults(bench.task.digest, available)
        kept = before.tasks.get(bench.task.id)
        if kept is not None and kept.task_digest == own.task_digest:
            ids = {mutant.id for mutants in bench.mutants.values() for mutant in mutants}
            own.margins = kept.margins
            own.mutants = {id_: entry for id_, entry in kept.mutants.items() if id_ in ids}
        before.tasks[bench.task.id] = own
        self._results, self._own = before, own

    def known(self) -> set[str]:
        """Return the ids of mutants about which something is known."""
        return {entry.id for entry in self._own.mutants.values() if entry.end is not End.VOID}

    def passed(self) -> set[str]:
        """Return the sources that passed as they are."""
        return set(self._own.margins)

    def honest(self, honest: Honest) -> None:
        """Add a source as it is."""
        self._own.margins[honest.source] = honest.margins

    def found(self, mutant: Mutant, found: Found) -> None:
        """Add a mutant."""
        self._own.mutants[mutant.id] = Entry(
            id=mutant.id,
            source=mutant.source,
            operator=mutant.operator,
            line=mutant.line,
            line_text=mutant.line_text,
            change=mutant.change,
            end=found.end,
            reason=found.reason,
            configuration=found.configuration,
        )

    def save(self) -> None:
        """Write the file of the target."""
        FOLDER.mkdir(exist_ok=True)
        content = {
            "device": self._results.device,
            "judge_digest": self._results.judge_digest,
            "tasks": {id_: _plain(self._results.tasks[id_]) for id_ in sorted(self._results.tasks)},
        }
        (FOLDER / f"{self._target.value}.json").write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def load(target: TargetName) -> Results | None:
    """Return what was kept for a target."""
    path = FOLDER / f"{target.value}.json"
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    tasks = {id_: _task(one) for id_, one in content["tasks"].items()}
    return Results(content["device"], content["judge_digest"], tasks)


def _plain(task: TaskResults) -> dict[str, object]:
    plain = asdict(task)
    plain["mutants"] = [asdict(task.mutants[id_]) for id_ in sorted(task.mutants)]
    return plain


def _task(plain: dict[str, object]) -> TaskResults:
    mutants, margins = plain["mutants"], plain["margins"]
    assert isinstance(mutants, list)
    assert isinstance(margins, dict)
    assert isinstance(plain["available"], dict)
    entries = [Entry(**{**one, "operator": Operator(one["operator"]), "end": End(one["end"])}) for one in mutants]
    return TaskResults(
        task_digest=str(plain["task_digest"]),
        available=plain["available"],
        margins={source: Margins(**one) for source, one in margins.items()},
        mutants={entry.id: entry for entry in entries},
    )
