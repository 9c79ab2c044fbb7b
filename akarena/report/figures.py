"""Plots as SVG text: the same bytes for the same data, readable in light and dark, and without network or display."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from akarena.records.report import ReportRecord
from akarena.records.report_trial import SpeedCell, TrialLine
from akarena.report.text import number, rounded

# Okabe and Ito's colours that stand out on white and on black; shape and dash tell agents apart without them.
_COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("-", "--", "-.", ":")
_INK = "#010203"
_ROWS_PER_FIGURE = 40
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "akarena",
    "font.size": 10,
    "font.family": ["sans-serif"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.framealpha": 0,
    "text.parse_math": False,
}


@dataclass(frozen=True)
class Plot:
    """One plot."""

    id: str
    title: str
    description: str
    svg: str


def plots(report: ReportRecord) -> list[Plot]:
    """Draw every plot that the report has data for; none where speed was not measured."""
    if not report.speed_measured:
        return []
    trials = [trial for task in report.tasks for trial in task.trials]
    agents = [row.configuration_id for row in report.agents]
    found = []
    if any(_fast(trial) for trial in trials):
        found.append(_curve(agents, trials))
    both = [trial for trial in trials if _cell(trial, "seen") and _cell(trial, "unseen")]
    if both:
        found.append(_scatter(agents, both))
    measured = [trial for trial in trials if _cell(trial, "seen") or _cell(trial, "unseen")]
    chunks = [measured[i : i + _ROWS_PER_FIGURE] for i in range(0, len(measured), _ROWS_PER_FIGURE)]
    found += [_intervals(chunk, index, len(chunks)) for index, chunk in enumerate(chunks, 1)]
    return found


def _curve(agents: Sequence[str], trials: Sequence[TrialLine]) -> Plot:
    title = "fast_p: share of planned trials that are correct and more than p times faster"
    description = (
        "One step curve for each agent, left by the seen configurations alone, right by all configurations where "
        "correct on both splits. Failed, void and missing trials stay in the denominator. The rates at 1, 1.5 and 2 "
        "are in the table of agents."
    )
    speeds = [
        [_fast(trial)[0] for trial in trials],
        [_fast(trial)[1] for trial in trials],
    ]
    present = [speed for side in speeds for speed in side if speed is not None]
    low, high = min([0.5, *(s / 1.2 for s in present)]), max([2.5, *(s * 1.2 for s in present)])

    def draw(figure: Figure) -> None:
        for index, (axes, label) in enumerate(
            zip(figure.subplots(1, 2, sharey=True), ("seen", "seen and unseen"), strict=True)
        ):
            for position, agent in enumerate(agents):
                mine = [trial for trial in trials if trial.configuration_id == agent]
                values = sorted(speed for trial in mine if (speed := _fast(trial)[index]) is not None)
                # Strictly more than p: the curve falls just after each speedup.
                x = [low, *values, high]
                y = [len(values) / len(mine), *((len(values) - 1 - i) / len(mine) for i in range(len(values)))]
                dash, colour = _pick(_DASHES, position), _pick(_COLOURS, position)
                axes.step(x, [*y, y[-1]], where="post", label=_short(agent), linestyle=dash, color=colour)
            axes.axvline(1, color=_INK, linewidth=0.8)
            axes.set(xlim=(low, high), ylim=(0, 1.03), xlabel=f"p ({label})")
            _log_axis(axes, "x", low, high)
        figure.axes[0].set_ylabel("share of planned trials")
        figure.axes[0].legend()

    return _plot("fast-p", title, description, (9, 3.6), draw)


def _scatter(agents: Sequence[str], trials: Sequence[TrialLine]) -> Plot:
    title = "Speedup on unseen against seen configurations"
    description = (
        "One point for each trial that is correct and measured on both splits; on the diagonal the speedup holds, "
        "below it it shrinks on inputs that the agent never saw. The numbers are in the table of each task."
    )
    values = [speed for trial in trials for side in ("seen", "unseen") if (speed := _cell_speed(trial, side))]
    low, high = min([0.8, *(v / 1.2 for v in values)]), max([2.5, *(v * 1.2 for v in values)])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot([low, high], [low, high], color=_INK, linewidth=0.8)
        for position, agent in enumerate(agents):
            mine = [trial for trial in trials if trial.configuration_id == agent]
            points = [(_cell_speed(trial, "seen"), _cell_speed(trial, "unseen")) for trial in mine]
            if points:
                x, y = zip(*points, strict=True)
                marker, colour = _pick(_MARKERS, position), _pick(_COLOURS, position)
                axes.plot(x, y, linestyle="none", marker=marker, fillstyle="none", label=_short(agent), color=colour)
        axes.set(xlim=(low, high), ylim=(low, high), xlabel="speedup, seen", ylabel="speedup, unseen")
        axes.set_aspect("equal")
        for name in ("x", "y"):
            _log_axis(axes, name, low, high)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1))

    return _plot("seen-unseen", title, description, (6.4, 4.6), draw)


def _intervals(trials: Sequence[TrialLine], part: int, parts: int) -> Plot:
    suffix = f" ({part} of {parts})" if parts > 1 else ""
    title = f"Speedup of each trial with its 95 % interval{suffix}"
    description = (
        "Seen (circle) and unseen (square) geometric mean of each trial that was measured. An interval that touches "
        "the line at 1 shows no difference. The numbers are in the table of each task."
    )

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        ends = [1.0]
        for side, marker, shift, colour in (("seen", "o", -0.15, _COLOURS[1]), ("unseen", "s", 0.15, _COLOURS[0])):
            cells = [(row, cell) for row, trial in enumerate(trials) if (cell := _cell(trial, side))]
            if not cells:
                continue
            axes.errorbar(
                [cell.speedup for _, cell in cells],
                [row + shift for row, _ in cells],
                xerr=[
                    [max(0.0, cell.speedup - cell.low) for _, cell in cells],
                    [max(0.0, cell.high - cell.speedup) for _, cell in cells],
                ],
                fmt=marker, color=colour, markersize=4, linewidth=1.2, label=side,
            )  # fmt: skip
            ends += [end for _, cell in cells for end in (cell.low, cell.high)]
        axes.axvline(1, color=_INK, linewidth=0.8)
        labels = [f"{_short(trial.task_id)} / {_short(trial.configuration_id)} / a{trial.attempt}" for trial in trials]
        axes.set_yticks(range(len(trials)), labels)
        axes.set_ylim(len(trials) - 0.5, -0.5)
        low, high = min(ends) / 1.1, max(ends) * 1.1
        axes.set(xlim=(low, high), xlabel="speedup")
        _log_axis(axes, "x", low, high)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)

    return _plot(f"intervals-{part}", title, description, (9, 1.3 + 0.3 * len(trials)), draw)


def _plot(name: str, title: str, description: str, size: tuple[float, float], draw: Callable[[Figure], None]) -> Plot:
    # ``default`` first: a matplotlibrc on the machine must not change the bytes.
    with style.context(["default", _STYLE]):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return Plot(name, title, description, _inline(buffer.getvalue(), name, title, description))


def _inline(svg: str, name: str, title: str, description: str) -> str:
    """Make a document into an element of a page: own ids, the page's ink, and a title and description."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'href="#', f'href="#{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body).replace(_INK, "currentColor")
    head, rest = body.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    width = re.search(r'viewBox="0 0 ([\d.]+)', head)
    limit = f' style="max-width:{float(width[1]) * 4 / 3:.0f}px"' if width else ""
    labels = f'{head} role="img" aria-labelledby="{name}-title {name}-desc"{limit}>'
    return (
        f'{labels}\n<title id="{name}-title">{escape(title)}</title>\n'
        f'<desc id="{name}-desc">{escape(description)}</desc>{rest.rstrip()}\n'
    )


def _short(name: str) -> str:
    return name if len(name) <= 32 else f"{name[:15]}...{name[-14:]}"


def _pick(choices: Sequence[str], position: int) -> str:
    return choices[position % len(choices)]


def _log_axis(axes: Axes, name: str, low: float, high: float) -> None:
    """Give a logarithmic axis few ticks, written as plain numbers."""
    steps = (1, 2, 5) if high / low < 200 else (1,)
    ticks = [m * 10.0**e for e in range(-6, 9) for m in steps if low <= m * 10.0**e <= high]
    if high / low < 4:
        every = (1, 1) if high / low <= 2 else (2, 5)
        ticks = [t / 10 for t in range(1, 100) if low <= t / 10 <= high and t % every[t > 20] == 0]
    if name == "x":
        axes.set_xscale("log")
        axes.set_xticks(ticks or [1.0])
    else:
        axes.set_yscale("log")
        axes.set_yticks(ticks or [1.0])
    axis = axes.xaxis if name == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(rounded(value))))
    axis.set_minor_formatter(NullFormatter())


def _cell(trial: TrialLine, side: str) -> SpeedCell | None:
    part = trial.seen if side == "seen" else trial.unseen
    if part is None or part.speed is None:
        return None
    speed = part.speed
    return SpeedCell(speedup=_drawn(speed.speedup), low=_drawn(speed.low), high=_drawn(speed.high))


def _cell_speed(trial: TrialLine, side: str) -> float | None:
    cell = _cell(trial, side)
    return cell.speedup if cell else None


def _fast(trial: TrialLine) -> tuple[float | None, float | None]:
    """Seen and overall speedup as fast_p counts them."""
    if trial.status != "judged":
        return None, None
    return _cell_speed(trial, "seen"), None if trial.overall is None else _drawn(trial.overall)


def _drawn(speed: float) -> float:
    """Keep a speed on the paper: a foreign run may state one that no axis can hold. The tables show it as it is."""
    return min(max(speed, 1e-4), 1e4)
