"""From a run folder to the one record that Markdown and HTML are drawn from."""

from __future__ import annotations

import hashlib
import shlex
from collections import defaultdict
from pathlib import Path
from typing import Any

from akarena import __version__, paths, schemas
from akarena.errors import UserError
from akarena.records.report import Flag, Provenance, PublishedRecord, ReportRecord
from akarena.records.report_trial import TaskSection
from akarena.records.run import SeedSource
from akarena.records.task import Category
from akarena.report.collect import Collected, collect
from akarena.report.detail import trial_flags, trial_line
from akarena.report.facts import facts
from akarena.report.published import published_cells
from akarena.report.summary import agent_row, kind_rows, pair_rows, task_cell, verdict
from akarena.report.text import line, rounded, visible

PUBLISHED = Path("reports") / "published" / "agentkernelarena.json"


def build(root: Path) -> ReportRecord:
    """Make the report of one run folder.

    Raises:
        UserError: The manifest, the lock or the published file is missing or invalid, or numbers overflow.
    """
    run = collect(root)
    try:
        return _build(run)
    except (ValueError, ArithmeticError) as error:
        # Each record is valid by itself, but a foreign one can hold numbers that overflow when they are added up.
        raise UserError(f"{run.manifest.run_id}: its numbers cannot be summed up: {line(str(error))}") from error


def _build(run: Collected) -> ReportRecord:
    published_bytes = _read_published()
    published = schemas.parse(PublishedRecord, published_bytes, PUBLISHED.as_posix())
    speed = run.lock.calibration is not None
    known = [facts(trial, speed_measured=speed) for trial in run.trials]

    rows, by_category, by_kind = [], [], []
    kept: dict[str, dict[str, list[float]]] = {}
    cells = defaultdict(list)
    for agent in run.manifest.agents:
        mine = [fact for fact in known if fact.configuration_id == agent.id]
        rows.append(agent_row(mine, agent, None, speed_measured=speed))
        for category in Category:
            part = [fact for fact in mine if fact.category is category]
            if part:
                by_category.append(agent_row(part, agent, category, speed_measured=speed))
        collected = [trial for trial in run.trials if trial.configuration_id == agent.id]
        by_kind += kind_rows(agent, collected, speed_measured=speed)
        for task_id in dict.fromkeys(fact.task_id for fact in mine):
            cells[task_id].append(task_cell(agent, [fact for fact in mine if fact.task_id == task_id]))
        if speed:
            kept[agent.id] = defaultdict(list)
            for fact in mine:
                kept[agent.id][fact.task_id].append(fact.kept)
    tested = {row.configuration_id for row in rows if not row.control}
    pairs = pair_rows({name: tasks for name, tasks in kept.items() if name in tested or not tested})

    sections = defaultdict(list)
    flags = _run_flags(run)
    for trial, fact in zip(run.trials, known, strict=True):
        sections[trial.task_id].append(trial_line(trial, fact, speed_measured=speed))
        flags += trial_flags(trial, fact, speed_measured=speed)
    digests = {task.id: task.digest for task in run.lock.tasks}
    record = ReportRecord(
        schema_version=1,
        renderer_version=__version__,
        speed_measured=speed,
        verdict=verdict(rows, pairs, run.lock.calibration.instrument_floor if run.lock.calibration else None),
        agents=tuple(rows),
        by_category=tuple(by_category),
        pairs=tuple(pairs),
        by_kind=tuple(by_kind),
        published_source=published.source,
        published=tuple(published_cells(published, run.manifest, run.lock, by_category)),
        tasks=tuple(
            TaskSection(id=task_id, digest=digests.get(task_id), agents=tuple(cells[task_id]), trials=tuple(trials))
            for task_id, trials in sections.items()
        ),
        flags=tuple(flags),
        provenance=_provenance(run, hashlib.sha256(published_bytes).hexdigest()),
    )
    # Whatever text was missed above is made visible here, so that nothing hostile gets past this point.
    return ReportRecord.model_validate(_cleaned(record.model_dump()))


def _read_published() -> bytes:
    path = paths.root() / PUBLISHED
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{PUBLISHED.as_posix()}: cannot be read ({error.strerror}), expected a file") from None


def _run_flags(run: Collected) -> list[Flag]:
    found = list(run.problems)
    if run.manifest.seed_source is SeedSource.CHOSEN:
        found.append("the seed was chosen by the operator, who may have tried several")
    if run.manifest.source.dirty:
        found.append("the checkout differed from its commit")
    if not run.sealed:
        found.append("the run is not sealed: its files can still change")
    if _seed_state(run) == "does not match the commitment":
        found.append("the revealed seed does not match the commitment in manifest.json")
    found += [
        f"isolation: {item.limit} is not enforced ({item.how})"
        for item in run.lock.isolation
        if item.strength == "absent"
    ]
    if {task.id for task in run.lock.tasks} != set(run.manifest.tasks):
        found.append("lock.json names other tasks than manifest.json")
    return [Flag(where="run", what=line(what)) for what in found]


def _seed_state(run: Collected) -> str:
    if run.seed is None:
        return "not revealed"
    matches = hashlib.sha256(bytes.fromhex(run.seed.seed)).hexdigest() == run.manifest.seed_sha256
    return "revealed and matches the commitment" if matches else "does not match the commitment"


def _provenance(run: Collected, published_sha256: str) -> Provenance:
    manifest, lock = run.manifest, run.lock
    programs = {program.name: program.version for program in lock.programs}
    calibration = lock.calibration
    if calibration is not None:
        calibration = calibration.model_validate(_rounded(calibration.model_dump()))
    return Provenance.model_validate(
        {
            "run_id": manifest.run_id,
            "created": manifest.created,
            "akarena_version": line(manifest.akarena_version),
            "commit": manifest.source.commit,
            "dirty": manifest.source.dirty,
            "target": manifest.target,
            "architecture": line(lock.architecture),
            "device": line(lock.device),
            "driver": line(lock.driver),
            "compiler": line(lock.compiler),
            "operating_system": line(lock.operating_system),
            "python": line(lock.python),
            "sandbox": manifest.sandbox,
            "agents": tuple(
                {
                    "id": agent.id,
                    "agent": agent.agent,
                    "model": line(agent.model or ""),
                    "effort": line(agent.effort or ""),
                    "command": line(shlex.join(agent.command)),
                    "replay_of": line(agent.replay_of or ""),
                    "arguments": line(shlex.join(agent.arguments)),
                    "program": line(programs.get(agent.id, ""), 80),
                    "service": agent.service or "",
                    "service_url": line(agent.service_url or "", 100),
                    "prices": agent.prices and {kind: rounded(usd, 4) for kind, usd in agent.prices},
                    "token_budget": agent.token_budget,
                    "usd_budget": agent.usd_budget and rounded(agent.usd_budget, 4),
                }
                for agent in manifest.agents
            ),
            "tasks": len(manifest.tasks),
            "attempts": manifest.attempts,
            "tries": manifest.tries,
            "agent_wall_seconds": rounded(manifest.agent_wall_seconds, 4),
            "check_calls": manifest.check_calls,
            "suggested_iterations": manifest.suggested_iterations,
            "contract_in_prompt": manifest.contract_in_prompt,
            "seed_source": manifest.seed_source,
            "seed_sha256": manifest.seed_sha256,
            "seed_state": _seed_state(run),
            "sealed": run.sealed,
            "judge_digest": lock.judge_digest,
            "prompt_digest": lock.prompt_digest,
            "manifest_sha256": run.manifest_sha256,
            "lock_sha256": run.lock_sha256,
            "published_sha256": published_sha256,
            "packages": lock.packages,
            "isolation": lock.isolation,
            "calibration": calibration,
        }
    )


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_rounded(item) for item in value)
    return rounded(value) if isinstance(value, float) else value


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_cleaned(item) for item in value)
    if isinstance(value, int) and value >= 2**63:
        raise OverflowError("a sum does not fit into 64 bits")
    # A member of an enumeration is our own word, and strict validation wants it as it is.
    return visible(value) if type(value) is str else value
