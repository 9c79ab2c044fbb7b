"""Counting: how many mutants a gate killed of those that it ought to kill."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.mutation.equivalent import Equivalent
from tests.mutation.results import Entry
from tests.mutation.verdicts import KILLED, End


@dataclass(frozen=True)
class Tally:
    """Mutants by what became of them.

    Attributes:
        judged: All of them.
        stillborn: Those that do not compile; they are no mutants.
        identical: Those that are the same machine code.
        argued: Survivors with a written argument.
        unreached: Survivors in a line that no configuration of the judgement runs.
        killed_seen: Those that a seen configuration refused.
        killed_unseen: Those that only an unseen one refused.
        survivors: The others that passed.
        void: Those without a verdict.
    """

    judged: int
    stillborn: int
    identical: int
    argued: int
    unreached: int
    killed_seen: int
    killed_unseen: int
    survivors: tuple[Entry, ...]
    void: int

    @property
    def killed(self) -> int:
        """How many were killed."""
        return self.killed_seen + self.killed_unseen

    @property
    def counted(self) -> int:
        """How many ought to be killed here: each that differs and is run. One without a verdict is not killed."""
        return self.killed + len(self.survivors) + self.void

    @property
    def rate(self) -> float | None:
        """Share killed of those that count; None where there are none."""
        return self.killed / self.counted if self.counted else None


def tally(entries: Iterable[Entry], arguments: Sequence[Equivalent]) -> Tally:
    """Count mutants of one task or several; the arguments are those of the same tasks."""
    found = list(entries)
    passed = [one for one in found if one.end is End.SURVIVED]
    argued = {one.id for one in passed if any(argument.is_about(one) for argument in arguments)}
    number = {end: sum(one.end is end for one in found) for end in End}
    return Tally(
        judged=len(found),
        stillborn=number[End.STILLBORN],
        identical=number[End.IDENTICAL],
        argued=len(argued),
        unreached=number[End.UNREACHED],
        killed_seen=number[End.KILLED_SEEN],
        killed_unseen=number[End.KILLED_UNSEEN],
        survivors=tuple(one for one in passed if one.id not in argued),
        void=number[End.VOID],
    )


def add(tallies: Sequence[Tally]) -> Tally:
    """Add up."""
    return Tally(
        judged=sum(one.judged for one in tallies),
        stillborn=sum(one.stillborn for one in tallies),
        identical=sum(one.identical for one in tallies),
        argued=sum(one.argued for one in tallies),
        unreached=sum(one.unreached for one in tallies),
        killed_seen=sum(one.killed_seen for one in tallies),
        killed_unseen=sum(one.killed_unseen for one in tallies),
        survivors=tuple(entry for one in tallies for entry in one.survivors),
        void=sum(one.void for one in tallies),
    )


def by_reason(entries: Iterable[Entry]) -> dict[str, int]:
    """Count the kills by the judge's reason, most frequent first."""
    found: dict[str, int] = {}
    for entry in entries:
        if entry.end in KILLED:
            found[entry.reason] = found.get(entry.reason, 0) + 1
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
