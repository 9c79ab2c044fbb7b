"""Every table of the report, made once and drawn as HTML and as Markdown. No number is computed or rounded here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from akarena.records.report import (
    AgentRow,
    CaseLine,
    Mean,
    Rate,
    ReportRecord,
    Side,
    SpeedCell,
    TaskCell,
    TaskSection,
    TrialLine,
)
from akarena.report.text import number, percent

NONE = "\u2013"


@dataclass(frozen=True)
class Cell:
    """One cell, of one line or several.

    ``sort`` orders a column of numbers; ``tone`` is a class whose colour repeats what the text says.
    """

    text: str
    sort: float | None = None
    tone: str = ""


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


def agents(rows: Sequence[AgentRow], *, speed: bool, by_category: bool) -> Table:
    """One row for each agent, or for each agent and category."""
    heads = ["Agent", *(["Category"] if by_category else [])]
    counts = ["Planned", "Judged", "Void", "Missing", "Unchanged"]
    rates = ["Built", "Correct, seen", "Correct, unseen", "Correct, both", "Correct, both (of judged)"]
    speeds = ["Won", "Speedup, seen", "Speedup, unseen", "Speedup, baseline kept on failure"]
    fast = [f"fast_{number(f.p)}, {side}" for f in (rows[0].fast if rows else ()) for side in ("seen", "both")]
    last = ["Paper score", "Tokens", "Cost (USD)", "Agent minutes"]
    labels = [*counts, *rates, *(speeds if speed else []), *fast, *(["Bounded reward"] if speed else []), *last]
    body = []
    for row in rows:
        cells = [Cell(row.configuration_id + (" (control)" if row.control else ""))]
        cells += [Cell(row.category or "")] if by_category else []
        cells += [_count(n) for n in (row.planned, row.judged)]
        cells += [Cell(str(n), n, "bad" if n else "") for n in (row.void, row.missing)]
        cells.append(_count(row.unchanged))
        found = (row.built, row.correct_seen, row.correct_unseen, row.correct_both, row.correct_both_of_judged)
        cells += [_rate(one) for one in found]
        if speed:
            cells += [_rate(row.won), _mean(row.speed_seen), _mean(row.speed_unseen), _mean(row.keep_baseline)]
            cells += [_rate(one) for f in row.fast for one in (f.seen, f.both)]
            cells.append(_number(row.bounded_reward))
        cells.append(_number(row.paper_score))
        cells.append(_reported(row.tokens, row.tokens_reported, row.planned))
        cells.append(_reported(row.cost_usd, row.cost_reported, row.planned))
        cells.append(_number(row.agent_minutes))
        body.append(tuple(cells))
    name = "by-category" if by_category else "agents"
    caption = "Agents by category" if by_category else "Agents"
    columns = [Column(head) for head in heads] + [Column(label, True) for label in labels]
    return Table(name, f"{caption}; rates are of planned trials", tuple(columns), tuple(body))


def pairs(report: ReportRecord) -> Table:
    """Paired comparison of agents."""
    return _table(
        "pairs",
        "Paired comparison by task, baseline kept on failure; p is corrected for the number of pairs (Holm)",
        ["First", "Second"],
        ["Tasks", "First over second", "p"],
        (
            [
                Cell(row.first),
                Cell(row.second),
                _count(row.tasks),
                _interval(row.ratio, row.low, row.high),
                _number(row.p_value),
            ]
            for row in report.pairs
        ),
    )


def kinds(report: ReportRecord) -> Table:
    """Seen against unseen, by kind of configuration."""
    speed = ["Timed", "Geometric mean speedup"] if report.speed_measured else []
    rows = []
    for row in report.by_kind:
        cells = [Cell(row.configuration_id), Cell(row.kind), *map(_count, (row.cases, row.checked, row.correct))]
        rows.append([*cells, _count(row.timed), _times(row.geomean)] if speed else cells)
    caption = "Configurations of judged trials, by kind"
    return _table("kinds", caption, ["Agent", "Kind"], ["Cases", "Checked", "Correct", *speed], rows)


def published(report: ReportRecord) -> Table:
    """Published numbers beside ours."""
    heads = ["Category", "Quantity", "Published agent", "Published", "Our agent", "Ours", "Comparable"]
    rows = (
        [
            Cell(cell.category),
            Cell(cell.quantity),
            Cell(cell.published_agent),
            Cell(cell.published),
            Cell(cell.ours_agent or NONE),
            Cell(cell.ours or NONE),
            Cell("comparable" if cell.comparable else f"not comparable because {'; '.join(cell.reasons)}"),
        ]
        for cell in report.published
    )
    return _table("published", f"Published numbers ({report.published_source}) beside ours", heads, [], rows)


def heat(report: ReportRecord) -> Table:
    """Task by agent, with a word or a number in every cell."""
    names = [row.configuration_id for row in report.agents]
    rows = []
    for task in report.tasks:
        by_agent = {cell.configuration_id: cell for cell in task.agents}
        rows.append([Cell(task.id), *(_heat(by_agent.get(name), report.speed_measured) for name in names)])
    what = "speedup over all configurations" if report.speed_measured else "correct on both splits"
    return _table(
        "heat", f"Task by agent: trials correct on both splits of those planned, {what}", ["Task"], names, rows
    )


def trials(task: TaskSection, name: str, *, speed: bool) -> Table:
    """All planned trials of one task."""
    speeds = ["Overall", "Won", "Bounded reward"] if speed else []
    rows = []
    for trial in task.trials:
        cells = [
            Cell(trial.configuration_id),
            _count(trial.attempt),
            Cell(trial.status, tone="bad" if trial.status in ("void", "missing", "not_built") else ""),
            Cell(trial.note or NONE),
            _side(trial.seen),
            _side(trial.unseen),
        ]
        if speed:
            cells += [_times(trial.overall), Cell(_yes(trial.won)), _number(trial.bounded_reward)]
        cells += [
            _number(trial.paper_score),
            _number(trial.tokens),
            _number(trial.cost_usd),
            _number(trial.agent_minutes),
        ]
        rows.append(cells)
    heads = ["Agent", "Attempt", "Status", "Note", "Seen", "Unseen"]
    last = ["Paper score", "Tokens", "Cost (USD)", "Agent minutes"]
    return _table(f"{name}-trials", f"Planned trials of {task.id}", heads, [*speeds, *last], rows)


def gates(trial: TrialLine, name: str) -> Table:
    """The gate ladder of one trial."""
    rows = (
        [
            Cell(gate.gate),
            Cell(gate.verdict, tone={"pass": "good", "skipped": ""}.get(gate.verdict, "bad")),
            Cell(gate.reason or NONE),
            Cell(gate.configuration or NONE),
            Cell(gate.evidence or NONE),
        ]
        for gate in trial.gates
    )
    return _table(f"{name}-gates", "Gates", ["Gate", "Verdict", "Reason", "Configuration", "Evidence"], [], rows)


def cases(trial: TrialLine, name: str, *, speed: bool) -> Table:
    """The configurations of one trial."""
    heads = ["Configuration", "Kind", "Values", "Candidate"]
    numbers = ["Error / tolerance", *(["Baseline (µs)", "Candidate (µs)", "Speedup"] if speed else [])]
    rows = []
    for case in trial.cases:
        cells = [
            Cell(case.configuration),
            Cell(case.kind or case.split),
            Cell(case.values),
            Cell(case.candidate, tone="good" if case.candidate == "correct" else "bad"),
            _number(case.worst_ratio),
        ]
        rows.append([*cells, *_case_speed(case)] if speed else cells)
    return _table(f"{name}-cases", "Configurations", heads, numbers, rows)


def flags(report: ReportRecord) -> Table:
    """What a person should look at."""
    rows = ([Cell(flag.where), Cell(flag.what)] for flag in report.flags)
    return _table("flags", "Flags; they decide nothing", ["Where", "What"], [], rows)


def provenance(report: ReportRecord) -> list[Table]:
    """What the run was asked, on what it ran, and how strongly it was isolated."""
    found = report.provenance
    skip = {"packages", "isolation", "calibration", "agents"}
    facts = [[Cell(key.replace("_", " ")), Cell(_plain(value))] for key, value in found if key not in skip]
    tables = [_table("facts", "Run", ["What", "Value"], [], facts)]
    tables.append(
        _table(
            "configurations",
            "Agent configurations",
            ["Id", "Agent", "Model", "Effort", "Command", "Replay of"],
            [],
            (
                [Cell(value or NONE) for value in (a.id, a.agent, a.model, a.effort, a.command, a.replay_of)]
                for a in found.agents
            ),
        )
    )
    digests = ([Cell(task.id), Cell(task.digest or NONE)] for task in report.tasks)
    tables.append(_table("digests", "Tasks", ["Task", "Digest"], [], digests))
    lines = ([Cell(one.limit), Cell(one.strength), Cell(one.how)] for one in found.isolation)
    tables.append(_table("isolation", "Isolation", ["Limit", "Strength", "How"], [], lines))
    if found.calibration:
        peaks = found.calibration.peak_flops_per_second
        ratios = found.calibration.same_kernel_ratios
        measured = [(key, value) for key, value in found.calibration if isinstance(value, int | float)]
        measured += [(f"same kernel against itself, {number}", ratio) for number, ratio in enumerate(ratios, 1)]
        measured += [(f"peak flops per second {unit}", value) for unit, value in sorted(peaks.items())]
        rows = ([Cell(key.replace("_", " ")), _number(value)] for key, value in measured)
        tables.append(_table("calibration", "Calibration of the instrument", ["What"], ["Value"], rows))
    packages = ([Cell(package.name), Cell(package.version)] for package in found.packages)
    tables.append(_table("packages", "Python packages", ["Package", "Version"], [], packages))
    return tables


def _table(
    name: str, caption: str, texts: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> Table:
    columns = tuple([Column(label) for label in texts] + [Column(label, True) for label in numbers])
    return Table(name, caption, columns, tuple(tuple(row) for row in rows))


def _count(value: int) -> Cell:
    return Cell(str(value), value)


def _number(value: float | int | None) -> Cell:
    return Cell(number(value), value)


def _times(value: float | None) -> Cell:
    return Cell(NONE if value is None else f"{number(value)}x", value)


def _interval(value: float | None, low: float | None, high: float | None) -> Cell:
    if value is None:
        return Cell(NONE)
    ends = "no interval" if low is None or high is None else f"{number(low)} to {number(high)}"
    return Cell(f"{number(value)}x\n({ends})", value)


def _rate(one: Rate | None) -> Cell:
    if one is None:
        return Cell(NONE)
    ends = f"{percent(one.low)} to {percent(one.high)}"
    return Cell(f"{percent(one.rate)}, {one.count}/{one.of}\n({ends})", one.rate)


def _mean(mean: Mean | None) -> Cell:
    if mean is None:
        return Cell(NONE)
    found = _interval(mean.geomean, mean.low, mean.high)
    return Cell(f"{found.text}\nn = {mean.n}, arithmetic {number(mean.arithmetic)}x", mean.geomean)


def _reported(value: float | int | None, reported: int, planned: int) -> Cell:
    if value is None:
        return Cell("not reported")
    return Cell(number(value) + ("" if reported == planned else f" ({reported} of {planned} trials)"), value)


def _side(side: Side | None) -> Cell:
    if side is None:
        return Cell(NONE)
    if side.speed is None:
        tone = "bad" if side.state == "incorrect" else ""
        return Cell(f"{side.state}: {side.reason}", tone=tone)
    without = f", {side.cases_without_number} without a number" if side.cases_without_number else ""
    found = _interval(side.speed.speedup, side.speed.low, side.speed.high)
    arithmetic = NONE if side.arithmetic is None else f"{number(side.arithmetic)}x"
    return Cell(f"{found.text} {side.reason}\narithmetic {arithmetic}{without}", side.speed.speedup)


def _heat(cell: TaskCell | None, speed: bool) -> Cell:
    if cell is None:
        return Cell(NONE)
    done = f"{cell.correct_both}/{cell.planned}"
    counts = ((cell.void, "VOID"), (cell.missing, "MISSING"))
    words = [word if count == cell.planned else f"{count} {word}" for count, word in counts if count]
    if cell.correct_both == 0:
        rest = cell.planned - cell.void - cell.missing
        words = ["FAIL"] * bool(rest) + words
        return Cell(f"{done} {', '.join(words)}", 0.0, "h-fail" if rest else "h-void")
    tail = f" ({', '.join(words)})" if words else ""
    if cell.speedup is None:
        return Cell(f"{done} {'no speed' if speed else 'PASS'}{tail}", 1.0 if speed else cell.correct_both, "h-pass")
    steps = ((2.0, "h-fast2"), (1.02, "h-fast"), (0.98, "h-even"))
    tone = next((name for least, name in steps if cell.speedup >= least), "h-slow")
    return Cell(f"{done} {number(cell.speedup)}x{tail}", cell.speedup, tone)


def _case_speed(case: CaseLine) -> list[Cell]:
    found: SpeedCell | None = case.speed
    if found is None:
        return [Cell(NONE), Cell(NONE), Cell(case.speed_note or NONE)]
    speedup = _interval(found.speedup, found.low, found.high)
    note = Cell(f"{speedup.text} {case.speed_note}", found.speedup)
    return [_number(case.baseline_us), _number(case.candidate_us), note]


def _yes(value: bool | None) -> str:
    return NONE if value is None else "yes" if value else "no"


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return _yes(value)
    if isinstance(value, int | float):
        return number(value)
    return NONE if value is None or value == "" else str(value)
