"""What a run shows while it works: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from akarena.records.trial import (
    JudgedTrial,
    Ladder,
    LadderCorrect,
    LadderIncorrect,
    LadderMeasured,
    NotBuiltTrial,
    TrialOutcome,
    UnchangedTrial,
    VoidTrial,
)


class Display:
    """Tells the user on standard error, so that standard output holds results alone.

    Args:
        quiet: Say nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._console = Console(file=sys.stderr, highlight=False, quiet=quiet, soft_wrap=True)
        self._live = self._console.is_terminal and not quiet
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._live,
        )
        self._task = self._bar.add_task("starting", total=None)

    def __enter__(self) -> Display:
        """Show the bar where there is a terminal."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        self._bar.stop()

    def said(self, text: str) -> None:
        """Show one line."""
        self._console.print(text, markup=False)

    def planned(self, done: int, total: int) -> None:
        """Show how far the run is."""
        self._bar.update(self._task, completed=done, total=total)

    def trial(self, task: str, configuration: str, outcome: TrialOutcome | None) -> None:
        """Show that a trial began, or what came of it."""
        self._bar.update(self._task, description=f"{task} {configuration}")
        if outcome is not None:
            self.said(f"{task}  {configuration}  a{outcome.attempt}  {describe(outcome)}")


def describe(outcome: TrialOutcome) -> str:
    """Say in one line what came of a trial."""
    match outcome:
        case VoidTrial():
            return f"void: {outcome.reason.value}: {_first_line(outcome.evidence)}"
        case NotBuiltTrial():
            return f"not built: {outcome.reason.value}"
        case JudgedTrial() | UnchangedTrial():
            won = "  won" if outcome.score.won else ""
            name = "unchanged: " if isinstance(outcome, UnchangedTrial) else ""
            return f"{name}seen {ladder(outcome.seen)}, unseen {ladder(outcome.unseen)}{won}"


def ladder(part: Ladder) -> str:
    """Say in a few words what came of one split."""
    match part:
        case LadderMeasured():
            return f"{part.geomean_speedup:.2f}x [{part.low:.2f}, {part.high:.2f}] {part.verdict.value}"
        case LadderCorrect():
            return f"correct ({part.reason})"
        case LadderIncorrect():
            return f"incorrect ({part.reason.value})"
        case _:
            return f"not judged ({part.reason.value})"


def _first_line(text: str) -> str:
    return next((line.strip()[:300] for line in text.splitlines() if line.strip()), "")
