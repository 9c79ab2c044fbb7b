"""Cells, columns and tables, drawn as HTML and as Markdown from the same text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from akarena.report.text import number

NONE = "\u2013"


@dataclass(frozen=True)
class Cell:
    """One cell, of one line or several.

    ``sort`` orders a column of numbers; ``tone`` is a class whose colour repeats what the text says. ``more`` is the
    whole of a text that ``text`` begins: HTML shows it on demand, Markdown does not.
    """

    text: str
    sort: float | None = None
    tone: str = ""
    more: str = ""


@dataclass(frozen=True)
class Column:
    """Head of a column."""

    label: str
    numeric: bool = False


@dataclass(frozen=True)
class Table:
    """A table; its first column names the row."""

    id: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def table(
    name: str, caption: str, texts: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> Table:
    """Make a table of columns of text, then of columns of numbers."""
    columns = tuple([Column(label) for label in texts] + [Column(label, True) for label in numbers])
    return Table(name, caption, columns, tuple(tuple(row) for row in rows))


def whole(value: int) -> Cell:
    """Show a count."""
    return Cell(str(value), value)


def quantity(value: float | int | None) -> Cell:
    """Show an already rounded number; null is a dash."""
    return Cell(number(value), value)


def times(value: float | None) -> Cell:
    """Show a speedup."""
    return Cell(NONE if value is None else f"{number(value)}x", value)


def interval(value: float | None, low: float | None, high: float | None) -> Cell:
    """Show a speedup over its interval."""
    if value is None:
        return Cell(NONE)
    ends = "no interval" if low is None or high is None else f"{number(low)} to {number(high)}"
    return Cell(f"{number(value)}x\n({ends})", value)


def yes_no(value: bool | None) -> str:
    """Say yes or no; null is a dash."""
    return NONE if value is None else "yes" if value else "no"
