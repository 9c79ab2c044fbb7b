"""One try: the agent works, its files are taken, the judge decides, and the records are written."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from akarena import agents, configurations, inspection, prompt, schemas, scoring, store, workspace
from akarena.agents import Assignment, Outcome, outcomes
from akarena.agents.take_back import take_back
from akarena.errors import InfrastructureError
from akarena.judge import gates
from akarena.judge.gates import Stop
from akarena.judge.job import Mode
from akarena.judgement import Court
from akarena.lease import device_lease
from akarena.records import CheckRecord, EvaluationRecord, LockRecord, ManifestRecord, TrajectoryRecord, TrialRecord
from akarena.records.evaluation import (
    CaseCorrect,
    CaseIncorrect,
    CheckCase,
    Gate,
    GateFailed,
    GateVoid,
    SpeedMeasured,
    VoidReason,
)
from akarena.records.run import AgentConfiguration
from akarena.records.trial import AgentEnd, JudgedTrial, NotBuiltTrial, TrialOutcome, UnchangedTrial, VoidTrial
from akarena.sandbox.base import Role
from akarena.site import Site
from akarena.store import AUDIT_LOG, TryFolder
from akarena.targets import Target
from akarena.tasks import Task
from akarena.temporary import OwnedFolder
from akarena.workspace import Candidate

_LOG_CHARACTERS = 8000


def now() -> str:
    """Return the time as records hold it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Bench:
    """What all trials of a run share."""

    manifest: ManifestRecord
    site: Site
    court: Court
    seed: bytes
    architecture: str
    inspect: bool
    """Whether to compile for AMD GPUs that are not there, as evidence beside the verdict."""

    @classmethod
    def of(
        cls,
        manifest: ManifestRecord,
        lock: LockRecord,
        site: Site,
        seed: bytes,
        inspect: bool,
    ) -> Bench:
        """Put together what the trials of a run need."""
        court = Court(site.sandbox, site.target, lock.calibration)
        return cls(manifest, site, court, seed, lock.architecture, inspect)

    @property
    def target(self) -> Target:
        """Hardware and tool chain."""
        return self.site.target


def run_try(bench: Bench, task: Task, configuration: AgentConfiguration, folder: TryFolder) -> TrialOutcome:
    """Run one try and write everything into its folder, ``trial.json`` last. A void end of the agent is not judged."""
    started = now()
    clock = time.monotonic()
    with OwnedFolder("work") as name:
        work = Path(name) / "workspace"
        work.mkdir()
        workspace.stage(task, work)
        outcome = _let_work(bench, task, configuration, folder, work)
        agent_seconds = time.monotonic() - clock
        candidate = workspace.take(task, work, folder.candidate)
    for log, data in outcome.logs.items():
        store.write_bytes(folder.logs / log, data)
    store.write_bytes(folder.patch, workspace.patch(task, folder.candidate).encode())
    store.write_record(folder.trajectory, _trajectory(configuration, outcome, agent_seconds))
    clock = time.monotonic()
    common = {
        "schema_version": 1,
        "run_id": bench.manifest.run_id,
        "task_id": task.id,
        "task_digest": task.digest,
        "category": task.record.category,
        "configuration_id": configuration.id,
        "attempt": folder.attempt.number,
        "try_number": folder.number,
        "target": bench.target.name,
        "started": started,
        "agent_end": outcome.end,
        "agent_seconds": round(agent_seconds, 3),
    }
    void = outcomes.void_reason(outcome.end, outcome.logs.get(AUDIT_LOG, b""))
    verdict = _judge(bench, task, candidate, folder) if void is None else _Void(void, outcome.detail)
    common["judge_seconds"] = round(time.monotonic() - clock, 3)
    if bench.inspect and candidate.fault is None and void is None:
        python = bench.target.python(Role.BUILD) if bench.site.images is not None else None
        found = inspection.inspect(bench.site.sandbox, task, folder.candidate, candidate.digest, python=python)
        store.write_record(folder.inspection, found)
    result = _outcome(common, candidate, verdict, folder)
    store.write_record(folder.trial, TrialRecord(result))
    return result


def _let_work(bench: Bench, task: Task, configuration: AgentConfiguration, folder: TryFolder, work: Path) -> Outcome:
    calls_left = bench.manifest.check_calls

    def check() -> bytes:
        nonlocal calls_left
        calls_left -= 1
        return _check(bench, task, work, calls_left)

    text = prompt.render(
        task.record,
        bench.target.name,
        bench.architecture,
        contract=bench.manifest.contract_in_prompt,
        check_calls=bench.manifest.check_calls,
        seconds=bench.manifest.agent_wall_seconds,
        iterations=bench.manifest.suggested_iterations,
    )
    store.write_bytes(folder.logs / "prompt.md", text.encode())
    agent = agents.get(configuration.agent)
    site = bench.site.for_program(agent.program)
    assignment = Assignment(
        task=task,
        configuration=configuration,
        workspace=work,
        prompt=text,
        sandbox=site.sandbox,
        target=site.target,
        seconds=bench.manifest.agent_wall_seconds,
        check=check,
        check_calls=bench.manifest.check_calls,
        attempt=folder.attempt.number,
    )
    try:
        return agent.work(assignment)
    except InfrastructureError as error:
        take_back(work)
        return Outcome(AgentEnd.INFRASTRUCTURE, detail=str(error), complete=False)


def _check(bench: Bench, task: Task, work: Path, calls_left: int) -> bytes:
    """Judge the workspace as it is on the seen configurations; nothing unseen and no tolerance is told."""
    with OwnedFolder("check") as name:
        candidate = workspace.take(task, work, Path(name) / "candidate")
        if candidate.fault is not None:
            return _check_answer(False, candidate.evidence, (), "the file to judge is not there", calls_left)
        cases = configurations.seen(task.record, bench.target.name)
        with device_lease(bench.target.name):
            verdict = bench.court.judge(task, Path(name) / "candidate", candidate.digest, cases, Mode.CHECK)
    if verdict.evaluation is None:
        return _check_answer(False, "", (), "the judge itself failed; this is no fault of the kernel", calls_left)
    failed = next((gate for gate in verdict.evaluation.gates if isinstance(gate, GateFailed | GateVoid)), None)
    built = not (failed is not None and failed.gate in (Gate.SCOPE, Gate.BUILD))
    told = tuple(
        CheckCase(
            configuration=case.configuration,
            correct=_known(case.candidate),
            reason=case.candidate.reason.value if isinstance(case.candidate, CaseIncorrect) else None,
            worst_error_ratio=max((error.worst_ratio for error in case.candidate.errors), default=None)
            if isinstance(case.candidate, CaseCorrect | CaseIncorrect)
            else None,
            baseline_us=case.speed.baseline_median_us if isinstance(case.speed, SpeedMeasured) else None,
            candidate_us=case.speed.candidate_median_us if isinstance(case.speed, SpeedMeasured) else None,
        )
        for case in verdict.evaluation.cases
    )
    message = "judged" if failed is None else f"{failed.gate.value}: {failed.reason.value}"
    return _check_answer(built, failed.evidence if failed else "", told, message, calls_left)


def _known(verdict: object) -> bool | None:
    return True if isinstance(verdict, CaseCorrect) else False if isinstance(verdict, CaseIncorrect) else None


def _check_answer(compiled: bool, log: str, cases: tuple[CheckCase, ...], message: str, calls_left: int) -> bytes:
    return schemas.to_json(
        CheckRecord(
            schema_version=1,
            compiled=compiled,
            log=log[-_LOG_CHARACTERS:],
            cases=cases,
            message=message[:500],
            calls_left=max(0, calls_left),
        )
    )


@dataclass(frozen=True)
class _Void:
    """Why the infrastructure gave no verdict."""

    reason: VoidReason
    evidence: str


def _judge(bench: Bench, task: Task, candidate: Candidate, folder: TryFolder) -> EvaluationRecord | _Void:
    """Judge what was taken, and write what the judge says."""
    if candidate.fault is not None:
        evaluation = _unjudged(bench, task, candidate, Stop(Gate.SCOPE, candidate.fault, candidate.evidence))
        store.write_record(folder.evaluation, evaluation)
        return evaluation
    cases = bench.court.configurations(task.record, bench.seed)
    try:
        with device_lease(bench.target.name):
            verdict = bench.court.judge(task, folder.candidate, candidate.digest, cases, Mode.FULL)
    except InfrastructureError as error:
        return _Void(VoidReason.SANDBOX_FAILED, str(error))
    store.write_bytes(folder.logs / "judge.log", verdict.log.encode())
    if verdict.evaluation is None:
        return _Void(verdict.void or VoidReason.JUDGE_CRASHED, verdict.log)
    store.write_record(folder.evaluation, verdict.evaluation)
    if verdict.samples is not None and verdict.samples.series:
        store.write_record(folder.samples, verdict.samples)
    void = next((gate for gate in verdict.evaluation.gates if isinstance(gate, GateVoid)), None)
    return _Void(void.reason, void.evidence) if void else verdict.evaluation


def _unjudged(bench: Bench, task: Task, candidate: Candidate, stop: Stop) -> EvaluationRecord:
    return EvaluationRecord(
        schema_version=1,
        task_id=task.id,
        task_digest=task.digest,
        candidate_digest=candidate.digest,
        judge_digest=bench.court.digest,
        target=bench.target.name,
        architecture=bench.architecture,
        nonce="0" * 64,
        gates=gates.stopped(stop),
        cases=(),
        quality=None,
        stage_seconds={},
    )


def _outcome(
    common: dict[str, object], candidate: Candidate, verdict: EvaluationRecord | _Void, folder: TryFolder
) -> TrialOutcome:
    if isinstance(verdict, _Void):
        evidence = verdict.evidence[-_LOG_CHARACTERS:]
        return VoidTrial.model_validate({**common, "status": "void", "reason": verdict.reason, "evidence": evidence})
    evaluation = verdict
    common = {
        **common,
        "candidate_digest": candidate.digest,
        "candidate_files": candidate.names,
        "evaluation_sha256": store.sha256(folder.evaluation),
    }
    failed = next(
        (gate for gate in evaluation.gates if isinstance(gate, GateFailed) and gate.gate in (Gate.SCOPE, Gate.BUILD)),
        None,
    )
    if failed is not None:
        return NotBuiltTrial.model_validate({**common, "status": "not_built", "reason": failed.reason})
    seen, unseen = scoring.ladders(evaluation)
    kind = UnchangedTrial if candidate.unchanged else JudgedTrial
    return kind.model_validate(
        {
            **common,
            "status": "unchanged" if candidate.unchanged else "judged",
            "seen": seen,
            "unseen": unseen,
            "score": scoring.score(seen, unseen, built=True, unchanged=candidate.unchanged),
        }
    )


def _trajectory(configuration: AgentConfiguration, outcome: Outcome, seconds: float) -> TrajectoryRecord:
    return TrajectoryRecord(
        schema_version=1,
        agent=configuration.agent,
        end=outcome.end,
        exit_code=outcome.exit_code,
        detail=outcome.detail[:2000],
        seconds=round(seconds, 3),
        complete=outcome.complete,
        check_calls=outcome.check_calls,
        tokens=outcome.tokens,
        reported_tokens=outcome.reported_tokens,
        cost=outcome.cost,
        notes=outcome.notes,
        steps=outcome.steps,
    )
