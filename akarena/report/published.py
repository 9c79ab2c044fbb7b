"""Published numbers beside ours, each with whether the two may be compared, and why not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from akarena.records.report import AgentRow, PublishedAgent, PublishedCell, PublishedRecord, PublishedSeen
from akarena.records.run import AgentConfiguration, LockRecord, ManifestRecord
from akarena.records.task import Category, TargetName
from akarena.report.text import line, number, percent, rounded

_ALL = "lowest to highest of all agents"


def published_cells(
    published: PublishedRecord, manifest: ManifestRecord, lock: LockRecord, by_category: Sequence[AgentRow]
) -> list[PublishedCell]:
    """Set every published number of the run's categories beside ours.

    Args:
        published: What was published.
        manifest: What was run.
        lock: On what.
        by_category: Our numbers, already rounded.
    """
    common = _common_reasons(published, manifest, lock)
    cells = []
    for category in Category:
        rows = {row.configuration_id: row for row in by_category if row.category is category}
        if not rows:
            continue
        reasons = [*common, *_suite_reasons(published, category, next(iter(rows.values())).tasks)]
        for agent, quantity, theirs in _quantities(published, category):
            mine = _same_agent(agent, manifest.agents)
            row = rows.get(mine.id) if mine else None
            ours = _ours(row, quantity) if row else None
            cells.append(_cell(category, quantity, agent.id, theirs, mine.id if mine else None, ours, reasons))
        cells += _range_cells(published, category, list(rows.values()), reasons)
    return cells


def _cell(
    category: Category,
    quantity: str,
    agent: str,
    theirs: str,
    ours_agent: str | None,
    ours: str | None,
    reasons: Sequence[str],
) -> PublishedCell:
    why = list(reasons)
    if agent != _ALL and ours_agent is None:
        why.insert(0, "this agent and model were not run")
    elif ours is None:
        why.insert(0, "this run has no such number")
    return PublishedCell(
        category=category,
        quantity=quantity,
        published_agent=agent,
        published=theirs,
        ours_agent=ours_agent,
        ours=ours,
        comparable=not why,
        reasons=tuple(why),
    )


def _common_reasons(published: PublishedRecord, manifest: ManifestRecord, lock: LockRecord) -> list[str]:
    reasons = []
    if lock.target is not TargetName.ROCM or lock.architecture.split(":")[0] != published.architecture:
        reasons.append(f"other hardware: {line(lock.device, 60)} ({lock.target}), not {published.hardware}")
    elif "MI300X" not in lock.device:
        reasons.append(f"other device: {line(lock.device, 60)}, not {published.hardware}")
    if not published.same_tasks:
        reasons.append("other tasks: those of this repository were written anew")
    protocol = published.protocol
    if manifest.agent_wall_seconds != protocol.agent_wall_seconds:
        ours, theirs = number(rounded(manifest.agent_wall_seconds, 4)), number(protocol.agent_wall_seconds)
        reasons.append(f"agents had {ours} s, not {theirs} s")
    if manifest.attempts != protocol.runs_averaged:
        reasons.append(f"attempts: {manifest.attempts}, not {protocol.runs_averaged}")
    if manifest.contract_in_prompt:
        reasons.append("the prompt states which sizes are legal")
    return reasons


def _suite_reasons(published: PublishedRecord, category: Category, tasks: int) -> list[str]:
    expected = published.tasks[category]
    return [] if tasks == expected else [f"{tasks} tasks in this category, not {expected}"]


def _quantities(published: PublishedRecord, category: Category) -> Iterator[tuple[PublishedAgent, str, str]]:
    agents = {agent.id: agent for agent in published.agents}
    for entry in published.seen:
        if entry.category is category:
            for quantity, theirs in _seen_numbers(entry):
                yield agents[entry.agent], quantity, theirs
    unseen = published.unseen[category]
    for index, agent in enumerate(published.agents):
        yield agent, "unseen: baseline and candidate pass", f"{number(unseen.both_pass[index])} %"
        yield agent, "unseen: only the baseline passes", f"{number(unseen.baseline_only[index])} %"


def _seen_numbers(entry: PublishedSeen) -> Iterator[tuple[str, str]]:
    numbers = {
        "built": (entry.compiled_pct, " %"),
        "correct, seen": (entry.correct_pct, " %"),
        "mean speedup, seen": (entry.mean_speedup, "x"),
        "geometric mean speedup, seen": (entry.geomean_speedup, "x"),
        "fast_2, seen": (entry.fast_2_pct, " %"),
    }
    for quantity, (value, unit) in numbers.items():
        if value is not None:
            yield quantity, f"{number(value)}{unit}"


def _ours(row: AgentRow, quantity: str) -> str | None:
    speed = row.speed_seen
    match quantity:
        case "built":
            return percent(row.built.rate)
        case "correct, seen":
            return percent(row.correct_seen.rate)
        case "mean speedup, seen":
            return f"{number(speed.arithmetic)}x" if speed else None
        case "geometric mean speedup, seen":
            return f"{number(speed.published_geomean)}x" if speed else None
        case "fast_2, seen":
            return next((percent(fast.seen.rate) for fast in row.fast if fast.p == 2), None)
        case "unseen: baseline and candidate pass":
            return percent(row.correct_unseen.rate)
        case _:
            # Here the baseline passes everything by construction; void and missing trials are in neither number.
            return percent(rounded((row.judged - row.correct_unseen.count) / row.planned))


def _range_cells(
    published: PublishedRecord, category: Category, rows: Sequence[AgentRow], reasons: Sequence[str]
) -> Iterator[PublishedCell]:
    span = published.seen_ranges[category]
    speeds = [row.speed_seen for row in rows if row.speed_seen and not row.control]
    for quantity, theirs, values in (
        ("mean speedup, seen", span.mean_speedup, [speed.arithmetic for speed in speeds]),
        ("geometric mean speedup, seen", span.geomean_speedup, [speed.published_geomean for speed in speeds]),
    ):
        text = f"{number(theirs[0])}x to {number(theirs[1])}x"
        ours = f"{number(min(values))}x to {number(max(values))}x" if values else None
        why = reasons if len(speeds) == len(published.agents) else [*reasons, "other agents"]
        yield _cell(category, quantity, _ALL, text, None, ours, why)


def _same_agent(theirs: PublishedAgent, ours: Sequence[AgentConfiguration]) -> AgentConfiguration | None:
    names = {_plain(theirs.model), _plain(theirs.id.split("/", 1)[1])}
    for agent in ours:
        mine = {_plain(agent.model or ""), _plain(f"{agent.model or ''}{agent.effort or ''}")}
        if agent.agent == theirs.agent and names & mine:
            return agent
    return None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
