"""What a mutant is: a correct kernel with one edit, and the class of mistake that the edit stands for."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Operator(StrEnum):
    """Classes of mistakes. Those from ``ONE_ELEMENT`` on are wrappers, which need no knowledge of the kernel."""

    BOUND = "bound"
    """A comparison takes or leaves its end: ``<`` becomes ``<=``."""
    BOUND_LESS = "bound_less"
    """A bound is one less."""
    COMPARISON_TURNED = "comparison_turned"
    """``<`` becomes ``>``."""
    CEIL_TO_FLOOR = "ceil_to_floor"
    """A division that rounds up rounds down."""
    AXIS_SWAPPED = "axis_swapped"
    """One axis, index or size stands where the other belongs."""
    TERM_DROPPED = "term_dropped"
    """A summand, factor or divisor is missing."""
    CONSTANT = "constant"
    """A constant is ten times as large, 0 or 1."""
    FIRST_INDEX = "first_index"
    """An index begins at 1, or the wrong thread is chosen."""
    ARITHMETIC = "arithmetic"
    """Plus and minus, or times and divided by, are taken for each other."""
    MIN_MAX = "min_max"
    """Minimum and maximum are taken for each other."""
    MASK_DROPPED = "mask_dropped"
    """What guards the end of the data is missing, or puts the wrong value there."""
    BARRIER_DROPPED = "barrier_dropped"
    """A barrier is missing."""
    LOW_PRECISION = "low_precision"
    """A sum or a result is rounded to 10 or 7 bits of mantissa, as fp16 and bf16 have."""
    INITIAL_VALUE = "initial_value"
    """An accumulator begins with the wrong value."""
    STATEMENT_DELETED = "statement_deleted"
    """A statement is missing."""
    ENDS_EARLY = "ends_early"
    """A loop ends after its first iteration, or the last block does nothing."""
    ROUNDING = "rounding"
    """Rounded in the wrong direction."""

    ONE_ELEMENT = "one_element"
    """One element of an output is four tolerances off."""
    SCALED = "scaled"
    """Each element of an output is off by four tolerances in the same proportion."""
    TAIL_STALE = "tail_stale"
    """The end of an output is left as it was."""
    SIGN = "sign"
    """Each element of an output has the other sign."""
    NEIGHBOURS_SWAPPED = "neighbours_swapped"
    """Two neighbouring elements of an output have changed places."""
    NOT_A_NUMBER = "not_a_number"
    """One element of an output is NaN."""
    SIZE_LESS = "size_less"
    """Called with one size less by one."""
    INPUTS_SWAPPED = "inputs_swapped"
    """Called with two inputs of one shape exchanged."""
    SCALAR_OFF = "scalar_off"
    """Called with a scalar that is one percent too large."""


@dataclass(frozen=True)
class Edit:
    """A piece of text in place of another one."""

    operator: Operator
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Mutant:
    """A file that is a correct one with one edit.

    Attributes:
        source: Which correct file: ``solution``, ``baseline``, or ``wrapped`` for the solution with a wrapper.
        operator: The class of mistake.
        line: Line of the edit, from 1; 0 of a wrapper.
        line_text: That line as it was.
        change: What was changed, for a person.
        text: The whole file.
        start: Where the edit is.
    """

    source: str
    operator: Operator
    line: int
    line_text: str
    change: str
    text: str
    start: int

    @property
    def id(self) -> str:
        """A name within the task that stays as long as its files do."""
        key = f"{self.line_text}\0{self.change}\0{self.start}"
        return f"{self.source}.{self.operator}.{self.line}.{hashlib.sha256(key.encode()).hexdigest()[:6]}"


def apply(edits: Iterable[Edit], source: str, text: str) -> Iterator[Mutant]:
    """Make a mutant of each edit, none twice; edits that change nothing are left out."""
    made = {text}
    for edit in edits:
        mutated = text[: edit.start] + edit.text + text[edit.end :]
        if mutated in made:
            continue
        made.add(mutated)
        yield Mutant(
            source=source,
            operator=edit.operator,
            line=text.count("\n", 0, edit.start) + 1,
            line_text=_line_at(text, edit.start),
            change=_shown(text, edit),
            text=mutated,
            start=edit.start,
        )


def exchanges(sizes: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what may be taken for what: each size for each other one, and each of a pair for the other."""
    found = [(one, other) for one in sizes for other in sizes if one != other]
    return found + [(one, other) for pair in pairs for one, other in (pair, pair[::-1])]


def choose(mutants: Sequence[Mutant], limit: int) -> list[Mutant]:
    """Choose at most ``limit`` mutants, always the same ones, of each operator as equally many as there are."""
    by_operator: dict[Operator, list[Mutant]] = {}
    for mutant in mutants:
        by_operator.setdefault(mutant.operator, []).append(mutant)
    for operator, own in by_operator.items():
        random.Random(f"mutants {operator}").shuffle(own)
    # In turns, so that a smaller limit chooses a part of what a larger one chooses.
    turns: list[Mutant] = []
    while any(by_operator.values()):
        turns += [own.pop() for own in by_operator.values() if own]
    return turns[:limit]


def _line_at(text: str, position: int) -> str:
    end = text.find("\n", position)
    return text[text.rfind("\n", 0, position) + 1 : end if end >= 0 else len(text)].strip()


def _shown(text: str, edit: Edit) -> str:
    """Show an edit with enough around it to be found in its line."""
    before = text[text.rfind("\n", 0, edit.start) + 1 : edit.start].lstrip()[-16:]
    line_end = text.find("\n", edit.end)
    after = text[edit.end : line_end if line_end >= 0 else len(text)][:16]
    old = f"{before}{text[edit.start : edit.end]}{after}"
    new = f"{before}{edit.text}{after}"
    return " ".join(old.split()) + " -> " + " ".join(new.split())
