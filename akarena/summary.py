"""The end of a run on the terminal: the verdict, one table of agents, and where the reports lie."""

from __future__ import annotations

import json

from tabulate import tabulate

from akarena import schemas
from akarena.errors import ExitCode
from akarena.records.report import AgentRow, Mean, Rate, ReportRecord
from akarena.report import write_report
from akarena.store import RunFolder

_HEADERS = ("agent", "planned", "built", "seen ok", "unseen ok", "won", "seen", "unseen", "void", "missing")


def print_summary(run: RunFolder, as_json: bool) -> int:
    """Render the report of a run, print its table of agents and its paths; returns the exit code."""
    paths = write_report(run.root)
    data = (run.report / "data.json").read_bytes()
    if as_json:
        answer = {"run": str(run.root), "report": [str(path) for path in paths], "data": json.loads(data)}
        print(json.dumps(answer))
        return ExitCode.OK
    report = schemas.parse(ReportRecord, data, "data.json")
    print(f"\n{report.verdict.headline}\n")
    print(tabulate([_row(row) for row in report.agents], headers=_HEADERS, disable_numparse=True))
    if not report.speed_measured:
        print(f"\nSpeed is not measured on target {report.provenance.target.value}; correctness is.")
    print()
    for path in paths:
        if path.suffix in (".md", ".html"):
            print(path)
    return ExitCode.OK


def _row(row: AgentRow) -> tuple[str, ...]:
    return (
        row.configuration_id,
        str(row.planned),
        _rate(row.built),
        _rate(row.correct_seen),
        _rate(row.correct_unseen),
        _rate(row.won) if row.won else "-",
        _mean(row.speed_seen),
        _mean(row.speed_unseen),
        str(row.void),
        str(row.missing),
    )


def _rate(rate: Rate) -> str:
    return f"{rate.count}/{rate.of}"


def _mean(mean: Mean | None) -> str:
    if mean is None:
        return "-"
    interval = f" [{mean.low:.3g}, {mean.high:.3g}]" if mean.low is not None and mean.high is not None else ""
    return f"{mean.geomean:.3g}x{interval}"
