"""What a fixture is, and the reasons for which several of them may be refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from akarena.records.evaluation import FailReason
from akarena.records.task import TargetName

HERE = Path(__file__).resolve().parents[1]
CPU = frozenset({TargetName.CPU})
CUDA = frozenset({TargetName.CUDA})
BOTH = CPU | CUDA
EARLY = frozenset({FailReason.ANSWERED_EARLY, FailReason.WRONG_WHEN_TIMED, FailReason.CALLS_NOT_APART})
BUSY = frozenset({FailReason.DEVICE_KEPT_BUSY})
UNWRITTEN = frozenset({FailReason.OUTPUT_NOT_WRITTEN})
LATE = frozenset(
    {
        FailReason.OUTPUT_NOT_WRITTEN,
        # Where the late work lands among the buffers of the next configuration:
        FailReason.OUT_OF_BOUNDS,
        FailReason.INPUT_CHANGED,
        FailReason.WRONG_VALUES,
        FailReason.NON_FINITE_MISMATCH,
        FailReason.CRASH,
    }
)


class Expect(StrEnum):
    """What a judgement must come to."""

    REFUSED = "refused"
    """Both splits fail, for one of the listed reasons."""
    SEEN_ONLY = "seen_only"
    """Correct on the seen configurations; the unseen ones fail for one of the listed reasons."""
    NO_GAIN = "no_gain"
    """Nowhere ``faster``, beyond a known limit; what is refused is refused for one of the listed reasons."""
    NO_DIFFERENCE = "no_difference"
    """Correct, measured everywhere, within 3 percent of the baseline."""
    PASSES = "passes"
    """Correct; measured where speed was asked for."""


@dataclass(frozen=True)
class Fixture:
    """One candidate.

    Attributes:
        name: Name of the fixture, and of its file unless ``source`` says otherwise.
        expect: What must come of it.
        tries: What it does, in a few words, for the table.
        held_by: What refuses it or takes its gain away, for the table; of an honest one, that it must pass.
        rows: The known cheats that it is an example of, by their ids in README.md; empty for one of our own.
        reasons: Acceptable reasons of a refusal.
        targets: Where it means something.
        timed: Whether speed has to be measured for it; the others are judged without.
        defines: Macros, or module constants in Python, set in front of its text.
        source: Name of the file where several fixtures share one.
        task: The task that it is a candidate for.
        seen: Which seen configurations of the task it is judged on; empty for the usual ones.
        unseen: Which unseen one; None for the usual one.
        judgements: How many times it is judged; each time must come to the same.
        known_limit: Where it may escape: how much it gained at most, as measured, and where that is documented.
        most_gain: With that, the largest speedup that is no news.
    """

    name: str
    expect: Expect
    tries: str
    held_by: str
    rows: tuple[str, ...] = ()
    reasons: frozenset[FailReason] = frozenset()
    targets: frozenset[TargetName] = BOTH
    timed: bool = False
    defines: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    task: str = "hip2hip/softmax"
    seen: tuple[int, ...] = ()
    unseen: int | None = None
    judgements: int = 1
    known_limit: str = ""
    most_gain: float = 1.0

    @property
    def path(self) -> Path:
        """The file of the candidate."""
        folder = "honest" if self.expect is Expect.PASSES else "evil"
        suffix = ".py" if self.task.startswith("triton2triton/") else ".hip"
        return HERE / folder / f"{self.source or self.name}{suffix}"


def refused(
    name: str,
    tries: str,
    held_by: str,
    rows: tuple[str, ...],
    reasons: frozenset[FailReason],
    *,
    variant: tuple[str, str, int] | None = None,
    targets: frozenset[TargetName] = BOTH,
    task: str = "hip2hip/softmax",
    seen: tuple[int, ...] = (),
    unseen: int | None = None,
    judgements: int = 1,
) -> Fixture:
    """Make a hostile fixture; ``variant`` is its file, and the macro and number that choose what it does there."""
    file, macro, number = variant or ("", "", 0)
    return Fixture(
        name,
        Expect.REFUSED,
        tries=tries,
        held_by=held_by,
        rows=rows,
        reasons=reasons,
        targets=targets,
        defines={macro: str(number)} if macro else {},
        source=file,
        task=task,
        seen=seen,
        unseen=unseen,
        judgements=judgements,
    )


def variants(
    file: str,
    macro: str,
    held_by: str,
    rows: tuple[str, ...],
    reasons: frozenset[FailReason],
    named: Sequence[tuple[str, str]],
    *,
    targets: frozenset[TargetName] = BOTH,
) -> tuple[Fixture, ...]:
    """Make a fixture of each number of a file's macro, from 0 on; ``named`` has their names, and what each tries."""
    return tuple(
        refused(name, tries, held_by, rows, reasons, variant=(file, macro, number), targets=targets)
        for number, (name, tries) in enumerate(named)
    )
