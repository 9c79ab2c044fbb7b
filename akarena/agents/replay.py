"""``replay``: the candidates of an earlier run, judged again."""

from __future__ import annotations

import shutil
from pathlib import Path

from akarena import store
from akarena.agents import outcomes
from akarena.agents.base import Assignment, Outcome
from akarena.errors import UserError, unknown_name
from akarena.records import AttemptRecord, ManifestRecord, TrialRecord
from akarena.records.run import AgentConfiguration
from akarena.records.trial import AgentEnd, Step, StepKind, VoidTrial
from akarena.store import AUDIT_LOG, RunFolder, TryFolder


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
        """Copy the candidate of the same task and attempt, or of the first attempt where there are fewer.

        A try that was void because of how its agent ended has no candidate to judge: it ends the same way again.
        """
        root, configuration_id = _source(assignment.configuration)
        run = store.RunFolder(root)
        for number in (assignment.attempt, 1):
            attempt = run.attempt(assignment.task.id, configuration_id, number)
            try:
                counted = run.read(AttemptRecord, attempt.attempt).counted_try
                folder = attempt.try_folder(counted)
                trial = run.read(TrialRecord, folder.trial).root
            except UserError:
                continue
            if isinstance(trial, VoidTrial) and trial.reason in outcomes.VOID_REASONS:
                return _void_again(run, folder, trial)
            candidate = folder.candidate
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


def _void_again(run: RunFolder, folder: TryFolder, trial: VoidTrial) -> Outcome:
    log = folder.logs / AUDIT_LOG
    return Outcome(
        trial.agent_end,
        detail=f"void in {run.root.name} already: {trial.evidence}",
        logs={AUDIT_LOG: store.read_bytes(run.root, log)} if log.is_file() else {},
    )


def _source(configuration: AgentConfiguration) -> tuple[Path, str]:
    folder, _, configuration_id = (configuration.replay_of or "").rpartition(":")
    return Path(folder), configuration_id
