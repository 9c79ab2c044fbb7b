"""The tables about one task: its trials, their gates and configurations, what their agents did, and inspections."""

from __future__ import annotations

from akarena.records.report_trial import (
    CaseLine,
    CompiledFor,
    InspectedSide,
    Side,
    SpeedCell,
    TaskSection,
    TrialLine,
    Work,
)
from akarena.records.trial import StepKind
from akarena.report.cells import NONE, Cell, Table, interval, quantity, table, times, whole, yes_no
from akarena.report.text import line, number
from akarena.report.work import first_and_last

_FIRST_CHARACTERS = 100
_MOST_LABELS = 4
_NOTHING = (Cell(NONE),) * 9


def trials(task: TaskSection, name: str, *, speed: bool) -> Table:
    """All planned trials of one task."""
    speeds = ["Overall", "Won", "Bounded reward"] if speed else []
    rows = []
    for trial in task.trials:
        cells = [
            Cell(trial.configuration_id),
            whole(trial.attempt),
            Cell(trial.status, tone="bad" if trial.status in ("void", "missing", "not_built") else ""),
            Cell(trial.note or NONE),
            _side(trial.seen),
            _side(trial.unseen),
        ]
        if speed:
            cells += [times(trial.overall), Cell(yes_no(trial.won)), quantity(trial.bounded_reward)]
        cells += [
            quantity(trial.paper_score),
            quantity(trial.tokens),
            quantity(trial.cost_usd),
            quantity(trial.agent_minutes),
        ]
        rows.append(cells)
    heads = ["Agent", "Attempt", "Status", "Note", "Seen", "Unseen"]
    last = ["Paper score", "Tokens", "Cost (USD)", "Agent minutes"]
    return table(f"{name}-trials", f"Planned trials of {task.id}", heads, [*speeds, *last], rows)


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
    return table(f"{name}-gates", "Gates", ["Gate", "Verdict", "Reason", "Configuration", "Evidence"], [], rows)


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
            quantity(case.worst_ratio),
        ]
        rows.append([*cells, *_case_speed(case)] if speed else cells)
    return table(f"{name}-cases", "Configurations", heads, numbers, rows)


def _side(side: Side | None) -> Cell:
    if side is None:
        return Cell(NONE)
    if side.speed is None:
        tone = "bad" if side.state == "incorrect" else ""
        return Cell(f"{side.state}: {side.reason}", tone=tone)
    without = f", {side.cases_without_number} without a number" if side.cases_without_number else ""
    found = interval(side.speed.speedup, side.speed.low, side.speed.high)
    arithmetic = NONE if side.arithmetic is None else f"{number(side.arithmetic)}x"
    return Cell(f"{found.text} {side.reason}\narithmetic {arithmetic}{without}", side.speed.speedup)


def _case_speed(case: CaseLine) -> list[Cell]:
    found: SpeedCell | None = case.speed
    if found is None:
        return [Cell(NONE), Cell(NONE), Cell(case.speed_note or NONE)]
    speedup = interval(found.speedup, found.low, found.high)
    note = Cell(f"{speedup.text} {case.speed_note}", found.speedup)
    return [quantity(case.baseline_us), quantity(case.candidate_us), note]


def steps(done: Work, name: str, most: int | None = None) -> Table:
    """Steps of one agent.

    Args:
        done: What it did.
        name: Name of the trial's place in the page.
        most: Most rows, the first and the last; None for all that were kept.
    """
    shown = done.steps if most is None else first_and_last(done.steps, most)
    rows = []
    for step in shown:
        check = step.kind is StepKind.CHECK
        rows.append(
            [
                Cell(str(step.number), step.number, "short"),
                Cell(f"{number(step.seconds)} s", step.seconds),
                Cell(step.kind.replace("_", " "), tone="check" if check else ""),
                Cell(step.tool or NONE),
                _text(step.text),
                _text(step.result),
            ]
        )
    left_out = done.steps_total - len(shown)
    rest = f" of {done.steps_total}; the run folder has the other {left_out}" if left_out else ""
    caption = f"Steps: {len(shown)}{rest}"
    return table(f"{name}-steps", caption, ["Step", "Time", "Kind", "Tool", "Text", "Result"], [], rows)


def tokens(done: Work, name: str) -> Table:
    """Tokens of one trial, by who counted them."""
    counted = [(f"counted by the {done.tokens_counted_by}", done.tokens), ("the agent's own", done.reported_tokens)]
    if done.tokens_counted_by == "agent":
        counted[0] = ("the agent's own, not counted by the gateway", done.tokens)
    rows = (
        [Cell(who), *map(whole, (found.input, found.output, found.cache_read, found.cache_write, found.reasoning))]
        for who, found in counted
        if found is not None
    )
    heads = ["Input", "Output", "Cache read", "Cache write", "Reasoning"]
    return table(f"{name}-tokens", "Tokens", ["Who counted"], heads, rows)


def quality(task: TaskSection, name: str) -> Table:
    """How good the instrument was, for each trial that was timed."""
    rows = []
    for trial in task.trials:
        found = trial.quality
        if found is None:
            continue
        beside = found.beside_over_alone
        rows.append(
            [
                Cell(trial.configuration_id),
                whole(trial.attempt),
                Cell(f"{number(min(beside))} to {number(max(beside))}, of {len(beside)}" if beside else NONE),
                quantity(found.instrument_floor_percent),
                whole(found.busy_looks),
                whole(found.idle_looks),
            ]
        )
    heads = ["Agent", "Attempt", "Baseline beside the candidate / alone"]
    numbers = ["Instrument floor (%)", "Device found busy", "Looks"]
    return table(f"{name}-quality", "Quality of the measurement", heads, numbers, rows)


def inspections(task: TaskSection, name: str) -> Table:
    """What both sides use on AMD GPUs, each baseline once."""
    rows: list[list[Cell]] = []
    baselines: list[InspectedSide] = []
    absent: dict[str, list[str]] = {}
    for trial in task.trials:
        label = f"{trial.configuration_id}, attempt {trial.attempt}"
        if trial.inspection is None:
            absent.setdefault(trial.inspection_note, []).append(label)
            continue
        if trial.inspection.baseline not in baselines:
            baselines.append(trial.inspection.baseline)
            which = "baseline" if len(baselines) == 1 else f"baseline, as compiled with {label}"
            rows += _inspected(which, trial.inspection.baseline)
        rows += _inspected(label, trial.inspection.candidate)
    for note, labels in absent.items():
        more = f" and {len(labels) - _MOST_LABELS} more" if len(labels) > _MOST_LABELS else ""
        rows.append([Cell("; ".join(labels[:_MOST_LABELS]) + more), Cell(f"not run: {note}"), *_NOTHING])
    heads = ["VGPRs", "AGPRs", "SGPRs", "VGPR spills", "SGPR spills", "LDS (bytes)", "Scratch (bytes)"]
    caption = "Compiled for AMD GPUs, the most that any kernel uses; nothing was run, and a hostile source can forge it"
    return table(f"{name}-inspections", caption, ["Side", "Kernels", "GPU"], [*heads, "Largest workgroup"], rows)


def _inspected(label: str, side: InspectedSide) -> list[list[Cell]]:
    if side.state != "compiled":
        said = "does not compile" if side.state == "failed" else "not run"
        return [[Cell(label), Cell(f"{said}: {side.reason}", tone="bad" if side.state == "failed" else ""), *_NOTHING]]
    alike: dict[CompiledFor, list[str]] = {}
    for gpu in side.gpus:
        alike.setdefault(gpu.model_copy(update={"architecture": ""}), []).append(gpu.architecture)
    rows = []
    for gpu, architectures in alike.items():
        further = gpu.kernels - len(gpu.named)
        names = "\n".join([*gpu.named, *([f"and {further} more"] if further else [])])
        rows.append(
            [
                Cell(label),
                Cell(names),
                Cell(", ".join(architectures)),
                *map(whole, (gpu.vgprs, gpu.agprs, gpu.sgprs)),
                *(Cell(str(spills), spills, "bad" if spills else "") for spills in (gpu.vgpr_spills, gpu.sgpr_spills)),
                *map(whole, (gpu.lds_bytes, gpu.scratch_bytes, gpu.largest_workgroup)),
            ]
        )
    if side.kernels_left_out:
        rows.append([Cell(label), Cell(f"{side.kernels_left_out} more kernels were left out"), *_NOTHING])
    return rows


def _text(text: str) -> Cell:
    """Show the beginning of a text, and all of it on demand."""
    first, _, rest = text.partition("\n")
    begin = line(first, _FIRST_CHARACTERS)
    return Cell(begin or NONE, more=text if rest or begin != first else "")
