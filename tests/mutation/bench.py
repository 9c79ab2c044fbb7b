"""Judges mutants by the real gate, all configurations of one seed, without timing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from akarena import paths, sandbox, targets, tasks
from akarena.judgement import Court, Verdict
from akarena.records.evaluation import Configuration
from akarena.records.task import TargetName
from akarena.tasks import Task
from tests.judging import judge_text
from tests.mutation import catalogue, identical, probe, verdicts
from tests.mutation.mutant import Mutant
from tests.mutation.verdicts import End, Found, Margins

SEED = b"mutants of correct kernels, 32 b"


class HonestRefusedError(Exception):
    """A source that is not mutated does not pass, so nothing that is said about its mutants counts."""


@dataclass(frozen=True)
class Honest:
    """A source as it is, judged."""

    source: str
    margins: Margins


class Bench:
    """Judges on one target.

    Args:
        target: Its name.
        task: Id of the task.
    """

    def __init__(self, target: TargetName, task: str) -> None:
        self._target = targets.get(target.value)
        self.task: Task = tasks.load(paths.root() / "tasks" / task)
        self._court = Court(sandbox.get("bubblewrap"), self._target)
        self.judge_digest = self._court.digest
        self.cases: list[Configuration] = self._court.configurations(self.task.record, SEED)
        self.mutants: dict[str, list[Mutant]] = catalogue.all_mutants(self.task, self.cases)
        self.texts = catalogue.sources(self.task)

    def verdict(self, text: str) -> Verdict:
        """Judge one file."""
        return judge_text(self._court, self.task, text, self.cases)

    def honest(self, known: Set[str] = frozenset()) -> Iterator[Honest]:
        """Judge the sources as they are, but those that are known to pass.

        Raises:
            HonestRefusedError: One does not pass.
        """
        for source, text in self.texts.items():
            if source in known:
                continue
            verdict = self.verdict(text)
            found = verdicts.assess(verdict)
            if found.end is not End.SURVIVED:
                raise HonestRefusedError(f"{self.task.id} {source}: {found.end.value} {found.reason} {found.evidence}")
            yield Honest(source, verdicts.margins(verdict))

    def judge(self, mutant: Mutant) -> Found:
        """Judge one mutant; of one that passes, find out whether it differs at all and whether its line is run."""
        found = verdicts.assess(self.verdict(mutant.text))
        original = self.texts.get(mutant.source)
        if found.end is not End.SURVIVED or original is None:
            return found
        file = self.task.record.editable[0]
        if identical.can_tell(self._target.name, file) and identical.same_code(original, mutant.text):
            return replace(found, end=End.IDENTICAL)
        trap = probe.with_trap(original, mutant.start, hip=file.endswith(".hip"))
        if trap is not None and verdicts.assess(self.verdict(trap)).end is End.SURVIVED:
            return replace(found, end=End.UNREACHED)
        return found

    def judge_all(
        self, mutants: Sequence[Mutant], at_once: int, until: float = float("inf")
    ) -> Iterator[tuple[Mutant, Found]]:
        """Judge mutants, several at the same time, starting none after a time of the monotonic clock."""

        def one(mutant: Mutant) -> tuple[Mutant, Found] | None:
            return (mutant, self.judge(mutant)) if time.monotonic() < until else None

        with ThreadPoolExecutor(at_once) as pool:
            results: Iterable[tuple[Mutant, Found] | None] = pool.map(one, mutants)
            yield from (result for result in results if result is not None)
