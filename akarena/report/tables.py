"""The tables about a whole run. No number is computed or rounded here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from akarena.records.report import AgentRow, Mean, Rate, ReportedAgent, ReportRecord
from akarena.records.report_trial import TaskCell
from akarena.records.run import Prices
from akarena.records.trial import AgentEnd
from akarena.report.cells import NONE, Cell, Column, Table, interval, quantity, table, times, whole, yes_no
from akarena.report.text import number, percent, rounded


def configurations(report: ReportRecord) -> Table:
    """What each id of a configuration stands for; a setting that none has is left out."""
    run = report.provenance
    settings: list[tuple[str, Callable[[ReportedAgent], str]]] = [
        ("Agent", lambda one: one.agent),
        ("Model", lambda one: one.model),
        ("Effort", lambda one: one.effort),
        ("Arguments", lambda one: one.arguments),
        ("Command", lambda one: one.command),
        ("Replay of", lambda one: one.replay_of),
        ("Program", lambda one: one.program),
        ("Service", lambda one: " at ".join(filter(None, (one.service, one.service_url)))),
        ("Token budget", lambda one: number(one.token_budget) if one.token_budget else ""),
        ("Budget (USD)", lambda one: number(one.usd_budget) if one.usd_budget else ""),
        ("Prices (USD for a million tokens)", lambda one: _prices(one.prices)),
    ]
    used = [(label, read) for label, read in settings if any(map(read, run.agents))]
    rows = ([Cell(one.id), *(Cell(read(one) or NONE) for _, read in used)] for one in run.agents)
    rounds = f", {run.suggested_iterations} rounds suggested" if run.suggested_iterations else ""
    minutes = number(rounded(run.agent_wall_seconds / 60))
    caption = f"Configurations; each trial has {minutes} minutes and {run.check_calls} calls of check{rounds}"
    return table("configurations", caption, ["Id", *(label for label, _ in used)], [], rows)


def ends(report: ReportRecord) -> Table:
    """How the work of each configuration ended; an end that no trial has is left out."""
    found = {row.configuration_id: {one.end: one.trials for one in row.ends} for row in report.agents}
    known = [end for end in AgentEnd if any(end in mine for mine in found.values())]
    rows = (
        [
            Cell(row.configuration_id),
            *(whole(found[row.configuration_id].get(end, 0)) for end in known),
            whole(row.missing),
        ]
        for row in report.agents
    )
    labels = [end.replace("_", " ") for end in known]
    return table("ends", "How the agents' work ended, in planned trials", ["Agent"], [*labels, "missing"], rows)


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
        tunnel = "" if row.inspectable else "\nvendor tunnel, not inspectable"
        cells = [Cell(row.configuration_id + (" (control)" if row.control else "") + tunnel)]
        cells += [Cell(row.category or "")] if by_category else []
        cells += [whole(n) for n in (row.planned, row.judged)]
        cells += [Cell(str(n), n, "bad" if n else "") for n in (row.void, row.missing)]
        cells.append(whole(row.unchanged))
        found = (row.built, row.correct_seen, row.correct_unseen, row.correct_both, row.correct_both_of_judged)
        cells += [_rate(one) for one in found]
        if speed:
            cells += [_rate(row.won), _mean(row.speed_seen), _mean(row.speed_unseen), _mean(row.keep_baseline)]
            cells += [_rate(one) for f in row.fast for one in (f.seen, f.both)]
            cells.append(quantity(row.bounded_reward))
        cells.append(quantity(row.paper_score))
        cells.append(_tokens(row))
        cells.append(_reported(row.cost_usd, row.cost_reported, row.planned))
        cells.append(quantity(row.agent_minutes))
        body.append(tuple(cells))
    name = "by-category" if by_category else "agents"
    caption = "Agents by category" if by_category else "Agents"
    columns = [Column(head) for head in heads] + [Column(label, True) for label in labels]
    return Table(name, f"{caption}; rates are of planned trials", tuple(columns), tuple(body))


def pairs(report: ReportRecord) -> Table:
    """Paired comparison of agents."""
    return table(
        "pairs",
        "Paired comparison by task, baseline kept on failure; p is corrected for the number of pairs (Holm)",
        ["First", "Second"],
        ["Tasks", "First over second", "p"],
        (
            [
                Cell(row.first),
                Cell(row.second),
                whole(row.tasks),
                interval(row.ratio, row.low, row.high),
                quantity(row.p_value),
            ]
            for row in report.pairs
        ),
    )


def kinds(report: ReportRecord) -> Table:
    """Seen against unseen, by kind of configuration."""
    speed = ["Timed", "Geometric mean speedup"] if report.speed_measured else []
    rows = []
    for row in report.by_kind:
        cells = [Cell(row.configuration_id), Cell(row.kind), *map(whole, (row.cases, row.checked, row.correct))]
        rows.append([*cells, whole(row.timed), times(row.geomean)] if speed else cells)
    caption = "Configurations of judged trials, by kind"
    return table("kinds", caption, ["Agent", "Kind"], ["Cases", "Checked", "Correct", *speed], rows)


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
    return table("published", f"Published numbers ({report.published_source}) beside ours", heads, [], rows)


def heat(report: ReportRecord) -> Table:
    """Task by agent, with a word or a number in every cell."""
    names = [row.configuration_id for row in report.agents]
    rows = []
    for task in report.tasks:
        by_agent = {cell.configuration_id: cell for cell in task.agents}
        rows.append([Cell(task.id), *(_heat(by_agent.get(name), report.speed_measured) for name in names)])
    what = "speedup over all configurations" if report.speed_measured else "correct on both splits"
    return table(
        "heat", f"Task by agent: trials correct on both splits of those planned, {what}", ["Task"], names, rows
    )


def flags(report: ReportRecord) -> Table:
    """What a person should look at."""
    rows = ([Cell(flag.where), Cell(flag.what)] for flag in report.flags)
    return table("flags", "Flags; they decide nothing", ["Where", "What"], [], rows)


def provenance(report: ReportRecord) -> list[Table]:
    """What the run was asked, on what it ran, and how strongly it was isolated."""
    found = report.provenance
    skip = {"packages", "isolation", "calibration", "agents"}
    facts = [[Cell(key.replace("_", " ")), Cell(_plain(value))] for key, value in found if key not in skip]
    tables = [table("facts", "Run", ["What", "Value"], [], facts)]
    digests = ([Cell(task.id), Cell(task.digest or NONE)] for task in report.tasks)
    tables.append(table("digests", "Tasks", ["Task", "Digest"], [], digests))
    lines = ([Cell(one.limit), Cell(one.strength), Cell(one.how)] for one in found.isolation)
    tables.append(table("isolation", "Isolation", ["Limit", "Strength", "How"], [], lines))
    if found.calibration:
        peaks = found.calibration.peak_flops_per_second
        ratios = found.calibration.same_kernel_ratios
        measured = [(key, value) for key, value in found.calibration if isinstance(value, int | float)]
        measured += [(f"same kernel against itself, {number}", ratio) for number, ratio in enumerate(ratios, 1)]
        measured += [(f"peak flops per second {unit}", value) for unit, value in sorted(peaks.items())]
        rows = ([Cell(key.replace("_", " ")), quantity(value)] for key, value in measured)
        tables.append(table("calibration", "Calibration of the instrument", ["What"], ["Value"], rows))
    packages = ([Cell(package.name), Cell(package.version)] for package in found.packages)
    tables.append(table("packages", "Python packages", ["Package", "Version"], [], packages))
    return tables


def _rate(one: Rate | None) -> Cell:
    if one is None:
        return Cell(NONE)
    ends = f"{percent(one.low)} to {percent(one.high)}"
    return Cell(f"{percent(one.rate)}, {one.count}/{one.of}\n({ends})", one.rate)


def _mean(mean: Mean | None) -> Cell:
    if mean is None:
        return Cell(NONE)
    found = interval(mean.geomean, mean.low, mean.high)
    return Cell(f"{found.text}\nn = {mean.n}, arithmetic {number(mean.arithmetic)}x", mean.geomean)


def _reported(value: float | int | None, reported: int, planned: int) -> Cell:
    if value is None:
        return Cell("not reported")
    return Cell(number(value) + ("" if reported == planned else f" ({reported} of {planned} trials)"), value)


def _tokens(row: AgentRow) -> Cell:
    found = _reported(row.tokens, row.tokens_reported, row.planned)
    if not row.tokens_own:
        return found
    part = "" if row.tokens_own == row.tokens_reported else f" in {row.tokens_own}"
    return Cell(f"{found.text}\nthe agent's own count{part}", found.sort)


def _prices(prices: Prices | None) -> str:
    if prices is None:
        return ""
    return ", ".join(f"{kind.replace('_', ' ')} {number(usd)}" for kind, usd in prices)


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


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return yes_no(value)
    if isinstance(value, int | float):
        return number(value)
    return NONE if value is None or value == "" else str(value)
