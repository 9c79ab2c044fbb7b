"""``replay``: the candidates of an earlier run, judged again."""

from __future__ import annotations

import shutil
from pathlib import Path

from akarena import store
from akarena.agents.base import Assignment, Outcome
from akarena.errors import UserError, unknown_name
from akarena.records import AttemptRecord, ManifestRecord
from akarena.records.run import AgentConfiguration
from akarena.records.trial import AgentEnd, Step, StepKind


class ReplayAgent:
    """Hands in what an agent of an earlier run left."""

    name = "replay"
    summary = "hands in the candidates of an earlier run (--replay RUN:CONFIGURATION)"
    program = None
    takes = frozenset({"replay_of"})
    service = None

    def problems(self, configuration: AgentConfiguration) -> list[str]:
        """Say whether the earlier run is there."""
        if configuration.replay_of is None:
            return ["--agent replay needs --replay RUN:CONFIGURATION"]
        root, configuration_id = _source(configuration)
        if not (root / "manifest.json").is_file():
            return [f"--replay {root}: has no manifest.json, expected a run folder"]
        run = store.RunFolder(root)
        known = [agent.id for agent in run.read(ManifestRecord, run.manifest).agents]
        if configuration_id not in known:
            return [str(unknown_name("--replay: configuration", configuration_id, known))]
        return []

    def work(self, assignment: Assignment) -> Outcome:
        """Copy the candidate of the same task and attempt, or of the first attempt where there are fewer."""
        root, configuration_id = _source(assignment.configuration)
        run = store.RunFolder(root)
        for number in (assignment.attempt, 1):
            attempt = run.attempt(assignment.task.id, configuration_id, number)
            try:
                counted = run.read(AttemptRecord, attempt.attempt).counted_try
            except UserError:
                continue
            candidate = attempt.try_folder(counted).candidate
            for name in assignment.task.record.editable:
                source = candidate / name
                if source.is_file() and not source.is_symlink():
                    shutil.copyfile(source, assignment.workspace / name, follow_symlinks=False)
                else:
                    (assignment.workspace / name).unlink(missing_ok=True)
            step = Step(
                kind=StepKind.MESSAGE, seconds=0.0, text=f"candidate of {configuration_id} a{number} t{counted}"
            )
            return Outcome(AgentEnd.FINISHED, steps=(step,))
        return Outcome(AgentEnd.INFRASTRUCTURE, detail=f"{root.name} has no attempt of {configuration_id} on this task")


def _source(configuration: AgentConfiguration) -> tuple[Path, str]:
    folder, _, configuration_id = (configuration.replay_of or "").rpartition(":")
    return Path(folder), configuration_id
