"""The tables over trials: agents, categories, kinds, pairs, and the verdict. Rates are over planned trials."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from akarena import statistics
from akarena.gateway.services import BUILT_IN
from akarena.records.evaluation import Case, CaseCorrect, CaseNotChecked, SpeedMeasured
from akarena.records.report import AgentRow, Answer, EndCount, Fast, KindRow, Mean, PairRow, Rate, Verdict
from akarena.records.report_trial import TaskCell
from akarena.records.run import AgentConfiguration
from akarena.records.task import Category
from akarena.records.trial import AgentEnd, LadderMeasured
from akarena.report.collect import CollectedTrial
from akarena.report.facts import Facts
from akarena.report.text import number, rounded

CONTROLS = frozenset({"nop", "solution"})
"""Agents of our own that check the instrument; they are shown, and take no part in the verdict."""
FAST_THRESHOLDS = (1.0, 1.5, 2.0)
SIGNIFICANT = 0.05


def agent_row(
    trials: Sequence[Facts], agent: AgentConfiguration, category: Category | None, *, speed_measured: bool
) -> AgentRow:
    """Sum up one agent.

    Args:
        trials: Its planned trials, at least one.
        agent: The agent configuration.
        category: What the trials are restricted to, for the label.
        speed_measured: Whether the target measures speed.
    """
    judged = [trial for trial in trials if trial.judged]
    tokens = [trial.tokens for trial in trials if trial.tokens is not None]
    costs = [trial.cost_usd for trial in trials if trial.cost_usd is not None]
    scores = [trial.score for trial in trials if trial.score is not None]
    return AgentRow(
        configuration_id=agent.id,
        category=category,
        control=agent.agent in CONTROLS,
        tasks=len({trial.task_id for trial in trials}),
        planned=len(trials),
        judged=len(judged),
        unchanged=sum(trial.status == "unchanged" for trial in trials),
        void=sum(trial.status == "void" for trial in trials),
        missing=sum(trial.status == "missing" for trial in trials),
        built=rate(trials, lambda t: t.built),
        correct_seen=rate(trials, lambda t: t.correct_seen),
        correct_unseen=rate(trials, lambda t: t.correct_unseen),
        correct_both=rate(trials, lambda t: t.correct_both),
        correct_both_of_judged=rate(judged, lambda t: t.correct_both) if judged else None,
        won=rate(trials, lambda t: t.score is not None and t.score.won is True) if speed_measured else None,
        speed_seen=_mean((t.task_id, *_means(t.seen)) for t in trials if isinstance(t.seen, LadderMeasured)),
        speed_unseen=_mean((t.task_id, *_means(t.unseen)) for t in trials if isinstance(t.unseen, LadderMeasured)),
        keep_baseline=_mean((t.task_id, t.kept, t.kept) for t in trials) if speed_measured else None,
        fast=tuple(_fast(trials, p) for p in FAST_THRESHOLDS) if speed_measured else (),
        bounded_reward=rounded(sum(score.bounded_reward or 0.0 for score in scores) / len(trials))
        if speed_measured
        else None,
        paper_score=rounded(sum(score.paper_score for score in scores) / len(trials), 4),
        tokens=sum(tokens) if tokens else None,
        tokens_reported=len(tokens),
        cost_usd=rounded(sum(costs), 4) if costs else None,
        cost_reported=len(costs),
        agent_minutes=rounded(sum(trial.agent_minutes or 0.0 for trial in trials), 4),
        ends=tuple(
            EndCount(end=end, trials=count)
            for end in AgentEnd
            if (count := sum(trial.agent_end is end for trial in trials))
        ),
        inspectable=not (_leads_through_a_tunnel(agent) or any(trial.tunnelled for trial in trials)),
        tokens_own=sum(trial.tokens_own for trial in trials),
    )


def _leads_through_a_tunnel(agent: AgentConfiguration) -> bool:
    service = BUILT_IN.get(agent.service or "")
    return service is not None and not service.inspectable


def rate(trials: Sequence[Facts], holds: Callable[[Facts], bool]) -> Rate:
    """Share of trials, with an interval for the number of tasks: attempts at one task are not independent."""
    count, tasks = sum(map(holds, trials)), len({trial.task_id for trial in trials})
    interval = statistics.wilson(count / len(trials) * tasks, tasks)
    return Rate(
        count=count,
        of=len(trials),
        rate=rounded(count / len(trials)),
        low=rounded(interval.low),
        high=rounded(interval.high),
    )


def kind_rows(agent: AgentConfiguration, trials: Iterable[CollectedTrial], *, speed_measured: bool) -> list[KindRow]:
    """Sum up one agent's cases: the seen ones, then the unseen ones by kind."""
    found: dict[str, list[Case]] = defaultdict(list)
    for trial in trials:
        for case in trial.beside.evaluation.cases if trial.beside.evaluation else ():
            found[case.configuration.kind or "seen"].append(case)
    rows = []
    for kind in sorted(found, key=lambda name: (name != "seen", name)):
        cases = found[kind]
        correct = [case for case in cases if isinstance(case.candidate, CaseCorrect)]
        speeds = [case.speed.speedup for case in correct if isinstance(case.speed, SpeedMeasured) and speed_measured]
        rows.append(
            KindRow.model_validate(
                {
                    "configuration_id": agent.id,
                    "kind": cases[0].configuration.kind or "seen",
                    "cases": len(cases),
                    "checked": sum(not isinstance(case.candidate, CaseNotChecked) for case in cases),
                    "correct": len(correct),
                    "timed": len(speeds),
                    "geomean": rounded(statistics.geometric_mean(speeds)) if speeds else None,
                }
            )
        )
    return rows


def task_cell(agent: AgentConfiguration, trials: Sequence[Facts]) -> TaskCell:
    """Sum up one agent's attempts at one task."""
    speeds = [trial.overall for trial in trials if trial.overall is not None]
    return TaskCell(
        configuration_id=agent.id,
        planned=len(trials),
        correct_both=sum(trial.correct_both for trial in trials),
        void=sum(trial.status == "void" for trial in trials),
        missing=sum(trial.status == "missing" for trial in trials),
        speedup=rounded(statistics.geometric_mean(speeds)) if speeds else None,
    )


def pair_rows(kept: dict[str, dict[str, list[float]]]) -> list[PairRow]:
    """Compare every pair of agents.

    Args:
        kept: For each agent configuration and task, the ``keep_baseline`` speedups of its attempts.
    """
    pairs = list(itertools.combinations(kept, 2))
    results = [statistics.paired_comparison(kept[first], kept[second]) for first, second in pairs]
    known = [index for index, result in enumerate(results) if result.p_value is not None]
    corrected = dict(zip(known, statistics.holm([results[i].p_value or 0.0 for i in known]), strict=True))
    rows = []
    for index, ((first, second), result) in enumerate(zip(pairs, results, strict=True)):
        ratio = result.ratio
        rows.append(
            PairRow(
                first=first,
                second=second,
                tasks=result.tasks,
                ratio=rounded(ratio.point) if ratio else None,
                low=rounded(ratio.low) if ratio else None,
                high=rounded(ratio.high) if ratio else None,
                p_value=rounded(corrected[index]) if index in corrected else None,
            )
        )
    return rows


def verdict(rows: Sequence[AgentRow], pairs: Sequence[PairRow], floor: float | None) -> Verdict:
    """Answer the question of the run, from the rounded tables.

    An agent is best where it beats every other one in the paired comparison. A single agent is compared with the
    baseline by its ``keep_baseline`` mean, which has to be faster by the rule of a single measurement. Everything
    else is inconclusive.

    Args:
        rows: Every agent over all tasks.
        pairs: Their comparisons.
        floor: Instrument floor of the run; None where the target does not measure speed.
    """
    tested = [row for row in rows if not row.control] or list(rows)
    lines = [_sizes(rows)]
    lines += [f"{row.configuration_id}: {_correct(row)}{_speed(row)}" for row in tested]
    incomplete = [row for row in rows if row.void or row.missing]
    lines += [
        f"{row.configuration_id} is incomplete: {row.void} void, {row.missing} missing of {row.planned} planned trials"
        for row in incomplete
    ]
    if all(row.control for row in rows):
        lines.append("Only controls were run (nop, solution): they test the instrument, not an agent.")
    if floor is None:
        return Verdict(
            answer=Answer.SPEED_NOT_MEASURED,
            headline="Speed not measured on this target: only correctness can be read from this run.",
            lines=tuple(lines),
        )
    answer, headline = _answer(tested, pairs, 1 + max(statistics.LEAST_EFFECT, floor))
    return Verdict(answer=answer, headline=headline, lines=tuple(lines))


def _answer(tested: Sequence[AgentRow], pairs: Sequence[PairRow], least: float) -> tuple[Answer, str]:
    if len(tested) == 1:
        (only,) = tested
        kept = only.keep_baseline
        if kept and kept.low is not None and kept.high is not None and kept.low > least:
            return Answer.FASTER_THAN_BASELINE, (
                f"{only.configuration_id} makes kernels faster: {number(kept.geomean)}x over all planned trials "
                f"(95 % interval {number(kept.low)} to {number(kept.high)}), wrong and missing ones counted as 1x."
            )
        return Answer.INCONCLUSIVE, (
            f"Inconclusive: no speedup over the baseline is shown for {only.configuration_id} (its interval would have "
            f"to lie above {number(rounded(least))}x)."
        )
    for row in tested:
        others = [other.configuration_id for other in tested if other is not row]
        if all(_beats(row.configuration_id, other, pairs) for other in others):
            return Answer.BEST_AGENT, (
                f"{row.configuration_id} is best: it beats {', '.join(others)} in the paired comparison by task."
            )
    return Answer.INCONCLUSIVE, "Inconclusive: no agent beats every other one in the paired comparison by task."


def _beats(first: str, second: str, pairs: Sequence[PairRow]) -> bool:
    for pair in pairs:
        if pair.p_value is None or pair.low is None or pair.high is None or pair.p_value >= SIGNIFICANT:
            continue
        if (pair.first, pair.second) == (first, second) and pair.low > 1:
            return True
        if (pair.second, pair.first) == (first, second) and pair.high < 1:
            return True
    return False


def _sizes(rows: Sequence[AgentRow]) -> str:
    tasks, planned, judged = rows[0].tasks, sum(r.planned for r in rows), sum(r.judged for r in rows)
    return f"{len(rows)} agent configurations on {tasks} tasks: {planned} trials planned, {judged} judged."


def _correct(row: AgentRow) -> str:
    seen, unseen = row.correct_seen.count, row.correct_unseen.count
    return f"correct on seen {seen} and on unseen {unseen} of {row.planned} planned trials"


def _speed(row: AgentRow) -> str:
    kept = row.keep_baseline
    if kept is None:
        return ""
    interval = "" if kept.low is None else f", 95 % interval {number(kept.low)} to {number(kept.high)}"
    return f"; {number(kept.geomean)}x with the baseline kept on failure (n = {kept.n}{interval})"


def _means(part: LadderMeasured) -> tuple[float, float]:
    return part.geomean_speedup, part.arithmetic_speedup


def _mean(speeds: Iterable[tuple[str, float, float]]) -> Mean | None:
    """Average over trials, each given as task, geometric and arithmetic mean over its cases."""
    found = list(speeds)
    if not found:
        return None
    by_task: dict[str, list[float]] = defaultdict(list)
    for task_id, geometric, _ in found:
        by_task[task_id].append(geometric)
    interval = statistics.clustered_geometric_mean(by_task)
    arithmetic = [value for _, _, value in found]
    return Mean(
        n=len(found),
        geomean=rounded(statistics.geometric_mean([geometric for _, geometric, _ in found])),
        low=rounded(interval.low) if interval else None,
        high=rounded(interval.high) if interval else None,
        arithmetic=rounded(sum(arithmetic) / len(arithmetic)),
        published_geomean=rounded(statistics.geometric_mean(arithmetic)),
    )


def _fast(trials: Sequence[Facts], p: float) -> Fast:
    return Fast(
        p=p,
        seen=rate(trials, lambda t: t.fast_seen is not None and t.fast_seen > p),
        both=rate(trials, lambda t: t.fast_both is not None and t.fast_both > p),
    )
