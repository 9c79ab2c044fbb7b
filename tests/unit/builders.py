"""Synthetic records, and a small valid run folder made of them. Nothing here runs an agent or a judge."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from akarena import scoring, store
from akarena.records import (
    AttemptRecord,
    EvaluationRecord,
    EventRecord,
    InspectionRecord,
    LockRecord,
    ManifestRecord,
    SamplesRecord,
    SeedRecord,
    TrajectoryRecord,
    TrialRecord,
)
from akarena.records import evaluation as ev
from akarena.records import inspection as ins
from akarena.records import run as rn
from akarena.records import trial as tr
from akarena.records.task import Category, ComputeUnit, TargetName
from akarena.statistics import Interval, speed_verdict
from akarena.store import RunFolder, TryFolder

RUN_ID = "2026-01-02-example"
SEED = "5a" * 32
TASKS = ("hip2hip/softmax", "triton2triton/rms_norm")
AGENTS = ("solution", "nop")
FLOOR = 0.01
TIME = "2026-01-02T03:04:05Z"
KINDS = (
    ev.Kind.EDGE,
    ev.Kind.SCALE_UP,
    ev.Kind.SCALE_DOWN,
    ev.Kind.ALIGNMENT_STRESS,
    ev.Kind.ALIGNMENT_STRESS,
    ev.Kind.ASYMMETRIC,
    ev.Kind.PRODUCTION_LIKE,
    ev.Kind.PRODUCTION_LIKE,
)
OUTCOMES = ("win", "slower", "wrong_unseen", "unstable", "not_built", "unchanged", "unmeasured", "void")
"""What a try can come to; see ``outcome``."""


def digest(text: str) -> str:
    """Return a digest that is different for every text."""
    return hashlib.sha256(text.encode()).hexdigest()


def configurations() -> list[ev.Configuration]:
    """Five seen and eight unseen configurations."""
    seen = [
        ev.Configuration(id=f"seen-{i}", split=ev.Split.SEEN, kind=None, values={"rows": 64 << i, "columns": 512})
        for i in range(5)
    ]
    unseen = [
        ev.Configuration(id=f"unseen-{i}", split=ev.Split.UNSEEN, kind=kind, values={"rows": 97 + i, "columns": 331})
        for i, kind in enumerate(KINDS)
    ]
    return seen + unseen


def correct() -> ev.CaseCorrect:
    """Correct in three rounds."""
    return ev.CaseCorrect(
        verdict="correct",
        errors=tuple(
            ev.OutputError(
                round=name,
                output="y",
                worst_ratio=0.31,
                baseline_worst_ratio=0.28,
                rms_error=1.5e-7,
                baseline_rms_error=1.4e-7,
            )
            for name in ev.Round
        ),
    )


def times(median_us: float) -> tuple[float, ...]:
    """Ten block times around a median."""
    return tuple(median_us * (1 + 0.001 * step) for step in (-4, 4, -3, 3, -2, 2, -1, 1, 0, 0))


def measured(speedup: float, baseline_us: float = 100.0) -> ev.SpeedMeasured:
    """A speedup with an interval of about three percent."""
    interval = Interval(speedup, speedup / 1.03, speedup * 1.03)
    return ev.SpeedMeasured(
        state="measured",
        verdict=speed_verdict(interval, FLOOR),
        speedup=speedup,
        low=interval.low,
        high=interval.high,
        baseline_median_us=baseline_us,
        candidate_median_us=baseline_us / speedup,
        blocks=10,
        calls_per_block=200,
        method=ev.Method.GRAPH,
        roofline_fraction=0.4,
        outputs_checked=16,
    )


@dataclass(frozen=True)
class Outcome:
    """What the judge is to have found."""

    gates: tuple[ev.GateResult, ...]
    cases: tuple[ev.Case, ...]


def outcome(name: str, speedup: float = 1.5) -> Outcome:
    """Build gates and cases of one of ``OUTCOMES``."""
    passed = {gate: ev.GatePassed(verdict="pass", gate=gate) for gate in ev.Gate}
    gates: dict[ev.Gate, ev.GateResult] = dict(passed)
    absent = ev.SpeedAbsent(state="absent", reason=ev.SkipReason.EARLIER_GATE_FAILED)
    if name == "not_built":
        gates[ev.Gate.BUILD] = ev.GateFailed(
            verdict="fail",
            gate=ev.Gate.BUILD,
            reason=ev.FailReason.COMPILE_ERROR,
            evidence="kernel.hip:12: error: expected ';' <script>alert(1)</script>",
        )
    if name == "void":
        gates[ev.Gate.SEEN_SPEED] = ev.GateVoid(
            verdict="void",
            gate=ev.Gate.SEEN_SPEED,
            reason=ev.VoidReason.DEVICE_NOT_IDLE,
            evidence="another process holds 512 MiB",
        )
    if name == "wrong_unseen":
        gates[ev.Gate.UNSEEN_CORRECT] = ev.GateFailed(
            verdict="fail",
            gate=ev.Gate.UNSEEN_CORRECT,
            reason=ev.FailReason.WRONG_VALUES,
            configuration="unseen-3",
            evidence="unseen-3: largest error is 840 times the tolerance",
        )
        gates[ev.Gate.UNSEEN_SPEED] = _skipped(ev.Gate.UNSEEN_SPEED, ev.SkipReason.EARLIER_GATE_FAILED)
    if name == "unmeasured":
        for gate in (ev.Gate.SEEN_SPEED, ev.Gate.UNSEEN_SPEED):
            gates[gate] = _skipped(gate, ev.SkipReason.NOT_MEASURED_ON_TARGET)
    if name in ("not_built", "void"):
        broken = ev.Gate.BUILD if name == "not_built" else ev.Gate.SEEN_SPEED
        for gate in list(ev.Gate)[list(ev.Gate).index(broken) + 1 :]:
            gates[gate] = _skipped(gate, ev.SkipReason.EARLIER_GATE_FAILED)
        return Outcome(tuple(gates[gate] for gate in ev.Gate), ())
    cases = []
    for index, configuration in enumerate(configurations()):
        candidate: ev.Correctness = correct()
        speed: ev.Speed = measured(speedup * (1 + 0.01 * index))
        if name == "unmeasured":
            speed = ev.SpeedAbsent(state="absent", reason=ev.SkipReason.NOT_MEASURED_ON_TARGET)
        if name == "unstable":
            speed = ev.SpeedUnknown(
                state="unknown", reason=ev.SpeedUnknownReason.UNSTABLE, evidence="bimodal after two repetitions"
            )
        if name == "wrong_unseen" and configuration.split is ev.Split.UNSEEN:
            speed = absent
            if configuration.id == "unseen-3":
                candidate = ev.CaseIncorrect(
                    verdict="incorrect",
                    reason=ev.FailReason.WRONG_VALUES,
                    round=ev.Round.ORDINARY,
                    evidence="element 17 is 0.0, expected 0.25",
                )
        cases.append(ev.Case(configuration=configuration, baseline=correct(), candidate=candidate, speed=speed))
    return Outcome(tuple(gates[gate] for gate in ev.Gate), tuple(cases))


def evaluation(
    task_id: str, candidate_digest: str, found: Outcome, target: TargetName = TargetName.CUDA
) -> EvaluationRecord:
    """Make one judgement of an outcome."""
    timed = any(isinstance(case.speed, ev.SpeedMeasured) for case in found.cases)
    return EvaluationRecord(
        schema_version=1,
        task_id=task_id,
        task_digest=digest(task_id),
        candidate_digest=candidate_digest,
        judge_digest=digest("judge"),
        target=target,
        architecture="sm_90",
        nonce=digest(f"nonce {task_id} {candidate_digest}"),
        gates=found.gates,
        cases=found.cases,
        quality=ev.Quality(
            instrument_floor=FLOOR,
            resolution_us=0.5,
            baseline_alone=(
                ev.BaselineAlone(configuration="seen-0", before_us=100.0, between_us=100.4, after_us=100.1),
            ),
            idle_looks=240,
            busy_looks=0,
        )
        if timed
        else None,
        stage_seconds={"candidate_compile": 1.8, "seen_correct": 2.2},
    )


def samples(record: EvaluationRecord) -> SamplesRecord:
    """Raw times that give the medians of a judgement."""
    return SamplesRecord(
        schema_version=1,
        task_id=record.task_id,
        series=tuple(
            ev.Series(
                configuration=case.configuration.id,
                method=case.speed.method,
                baseline_sets=8,
                candidate_sets=8,
                baseline_replays=20,
                candidate_replays=25,
                baseline_us=times(case.speed.baseline_median_us),
                candidate_us=times(case.speed.candidate_median_us),
                candidate_charge_us=0.0,
                baseline_single_us=(30.5, 30.25),
                candidate_single_us=(25.5, 25.25),
                candidate_watched=(0.25, 0.5, 1.0),
                order="bc" * 10,
            )
            for case in record.cases
            if isinstance(case.speed, ev.SpeedMeasured)
        ),
        baseline_alone=(ev.AloneSeries(configuration="seen-0", before_us=(100.0, 100.2), after_us=(100.1, 100.0)),),
        idle_probe_us=(4.1, 4.0),
    )


def trajectory(agent: str) -> TrajectoryRecord:
    """Two steps of an agent."""
    return TrajectoryRecord(
        schema_version=1,
        agent=agent,
        end=tr.AgentEnd.FINISHED,
        exit_code=0,
        detail="",
        seconds=61.5,
        complete=True,
        check_calls=1,
        tokens=tr.Tokens(input=12000, output=3400, cache_read=8000, cache_write=900, reasoning=1200),
        cost=tr.Cost(usd=0.42, source=tr.CostSource.REPORTED),
        steps=(
            tr.Step(kind=tr.StepKind.MESSAGE, seconds=1.5, text="I will vectorise the loads. <b>|</b>"),
            tr.Step(kind=tr.StepKind.CHECK, seconds=40.0, text="check", tool="check", result="5 of 5 correct"),
        ),
    )


def trial(
    name: str, folder: TryFolder, record: EvaluationRecord, evaluation_sha256: str, files: Sequence[str]
) -> TrialRecord:
    """Make the trial that follows from a judgement."""
    attempt = folder.attempt
    common = {
        "schema_version": 1,
        "run_id": RUN_ID,
        "task_id": attempt.task_id,
        "task_digest": record.task_digest,
        "category": Category(attempt.task_id.split("/")[0]),
        "configuration_id": attempt.configuration_id,
        "attempt": attempt.number,
        "try_number": folder.number,
        "target": record.target,
        "started": TIME,
        "agent_end": tr.AgentEnd.FINISHED,
        "agent_seconds": 61.5,
        "judge_seconds": 48.25,
    }
    if name == "void":
        void = next(gate for gate in record.gates if isinstance(gate, ev.GateVoid))
        return TrialRecord(
            tr.VoidTrial.model_validate(common | {"status": "void", "reason": void.reason, "evidence": void.evidence})
        )
    common |= {
        "candidate_digest": record.candidate_digest,
        "candidate_files": tuple(files),
        "evaluation_sha256": evaluation_sha256,
    }
    if name == "not_built":
        reason = next(gate.reason for gate in record.gates if isinstance(gate, ev.GateFailed))
        return TrialRecord(tr.NotBuiltTrial.model_validate(common | {"status": "not_built", "reason": reason}))
    seen, unseen = scoring.ladders(record)
    unchanged = name == "unchanged"
    kind = tr.UnchangedTrial if unchanged else tr.JudgedTrial
    score = scoring.score(seen, unseen, built=True, unchanged=unchanged)
    status = "unchanged" if unchanged else "judged"
    return TrialRecord(kind.model_validate(common | {"status": status, "seen": seen, "unseen": unseen, "score": score}))


def manifest(
    tasks: Sequence[str] = TASKS,
    agents: Sequence[str] = AGENTS,
    attempts: int = 1,
    target: TargetName = TargetName.CUDA,
) -> ManifestRecord:
    """A manifest of one model for each agent."""
    return ManifestRecord(
        schema_version=1,
        run_id=RUN_ID,
        created=TIME,
        akarena_version="0.1.0",
        source=rn.SourceCommit(commit="0123456789abcdef" * 2 + "01234567", dirty=False),
        target=target,
        sandbox="bubblewrap",
        agents=tuple(rn.AgentConfiguration(id=agent, agent=agent) for agent in agents),
        tasks=tuple(tasks),
        attempts=attempts,
        tries=3,
        agent_wall_seconds=1800.0,
        check_calls=20,
        contract_in_prompt=True,
        seed_sha256=hashlib.sha256(bytes.fromhex(SEED)).hexdigest(),
        seed_source=rn.SeedSource.RANDOM,
    )


def lock(tasks: Sequence[str] = TASKS, target: TargetName = TargetName.CUDA) -> LockRecord:
    """What the manifest resolved to."""
    return LockRecord(
        schema_version=1,
        run_id=RUN_ID,
        tasks=tuple(rn.LockedTask(id=task, digest=digest(task)) for task in tasks),
        judge_digest=digest("judge"),
        prompt_digest=digest("prompt"),
        target=target,
        architecture="sm_90",
        device="An Example Device",
        driver="570.00",
        compiler="Cuda compilation tools, release 12.8",
        operating_system="Linux 6.1",
        python="3.11.7",
        packages=(rn.Package(name="numpy", version="2.3.0"),),
        programs=(),
        isolation=(rn.AssuranceLine(limit="memory", strength="hard", how="cgroup"),),
        preflight=(rn.PreflightCheck(check="run: no capabilities", ok=True, detail="none"),),
        container_engine=None,
        calibration=rn.Calibration(
            instrument_floor=FLOOR,
            resolution_us=0.5,
            round_trip_us=11.0,
            replay_overhead_us=300.0,
            idle_probe_us=4.0,
            bandwidth_bytes_per_second=4.0e12,
            cache_bytes=52428800,
            peak_flops_per_second={ComputeUnit.VECTOR_FP32: 5.8e13, ComputeUnit.MATRIX_16BIT: 7.5e14},
            process_pairs=4,
            same_kernel_ratios=(1.001, 0.998),
        ),
    )


def seed() -> SeedRecord:
    """The seed that the manifest committed to."""
    return SeedRecord(schema_version=1, run_id=RUN_ID, seed=SEED, seed_source=rn.SeedSource.RANDOM)


def build_try(folder: TryFolder, name: str, speedup: float = 1.5, target: TargetName = TargetName.CUDA) -> str:
    """Write every file of one try; return the status of its trial."""
    editable = "kernel.py" if folder.attempt.task_id.startswith("triton") else "kernel.hip"
    folder.candidate.mkdir(parents=True)
    (folder.candidate / editable).write_text(f"// candidate of {folder.attempt.configuration_id}\n")
    folder.patch.write_text(f"--- a/{editable}\n+++ b/{editable}\n@@ -1 +1 @@\n-// old\n+// new\n")
    (folder.logs / "agent.txt").write_text("one line\n")
    store.write_record(folder.trajectory, trajectory(folder.attempt.configuration_id))
    record = evaluation(folder.attempt.task_id, store.digest_tree(folder.candidate), outcome(name, speedup), target)
    store.write_record(folder.evaluation, record)
    store.write_record(folder.samples, samples(record))
    result = trial(name, folder, record, store.sha256(folder.evaluation), [editable])
    store.write_record(folder.trial, result)
    return result.root.status


def inspection(task_id: str, candidate_digest: str, *, spills: int = 0) -> InspectionRecord:
    """What both sides use: one kernel of the baseline, two of the candidate."""
    return InspectionRecord(
        schema_version=1,
        task_id=task_id,
        candidate_digest=candidate_digest,
        architectures=("gfx942", "gfx950"),
        baseline=compiled(kernel("baseline_kernel", "gfx942", 16), kernel("baseline_kernel", "gfx950", 16)),
        candidate=compiled(
            kernel("small_rows", "gfx942", 24),
            kernel("large_rows", "gfx942", 62, spills),
            kernel("small_rows", "gfx950", 25),
            kernel("large_rows", "gfx950", 64),
        ),
    )


def compiled(*kernels: ins.KernelResources) -> ins.Compiled:
    """An outcome of these kernels."""
    toolchain = {"clang": "clang version 22.1.8", "triton": "3.9.0"}
    return ins.Compiled(status="compiled", toolchain=toolchain, kernels=kernels, kernels_left_out=0)


def kernel(name: str, architecture: str, vgprs: int, spills: int = 0) -> ins.KernelResources:
    """One compiled kernel."""
    return ins.KernelResources(
        name=name,
        architecture=architecture,
        vgpr_count=vgprs,
        agpr_count=0,
        sgpr_count=41,
        vgpr_spill_count=spills,
        sgpr_spill_count=0,
        lds_bytes=1024,
        scratch_bytes=0,
        max_flat_workgroup_size=1024,
        autotune_configs=None,
    )


def build_inspection(folder: TryFolder) -> InspectionRecord | None:
    """Write the inspection of a try; none for a void one, which names no candidate."""
    outcome = folder.attempt.run.read(TrialRecord, folder.trial).root
    if isinstance(outcome, tr.VoidTrial):
        return None
    record = inspection(outcome.task_id, outcome.candidate_digest)
    store.write_record(folder.inspection, record)
    return record


def build_run(
    root: Path,
    *,
    tasks: Sequence[str] = TASKS,
    agents: Sequence[str] = AGENTS,
    attempts: int = 1,
    outcomes: Mapping[tuple[str, str, int], Sequence[str]] | None = None,
    target: TargetName = TargetName.CUDA,
    seal: bool = True,
) -> RunFolder:
    """Write a valid run folder.

    Args:
        root: The folder to write.
        tasks: Ids of the tasks.
        agents: Names of the agents, which are the ids of their configurations too.
        attempts: Attempts of each.
        outcomes: Outcomes of the tries by (task, agent, attempt). Left out: ``unchanged`` for ``nop``, else ``win``.
        target: Target of the run.
        seal: Whether to reveal the seed and write the sums.
    """
    run = RunFolder(root)
    root.mkdir(parents=True)
    store.write_record(run.manifest, manifest(tasks, agents, attempts, target))
    store.write_record(run.lock, lock(tasks, target))
    store.append_event(run.events, EventRecord(schema_version=1, time=TIME, kind=rn.EventKind.RUN_STARTED))
    for task_index, task in enumerate(tasks):
        for agent_index, agent in enumerate(agents):
            for number in range(1, attempts + 1):
                default = ("unchanged",) if agent == "nop" else ("win",)
                names = (outcomes or {}).get((task, agent, number), default)
                attempt = run.attempt(task, agent, number)
                tries = []
                for name in names:
                    folder = attempt.new_try()
                    better = 1.5 + 0.2 * task_index + 0.1 * agent_index + 0.01 * number
                    speedup = {"unchanged": 1.0, "slower": 0.6}.get(name, better)
                    status = build_try(folder, name, speedup, target)
                    tries.append(tr.TrySummary.model_validate({"try_number": folder.number, "status": status}))
                counted = next((one.try_number for one in tries if one.status != "void"), tries[-1].try_number)
                store.write_record(
                    attempt.attempt,
                    AttemptRecord(
                        schema_version=1,
                        task_id=task,
                        configuration_id=agent,
                        attempt=number,
                        counted_try=counted,
                        tries=tuple(tries),
                    ),
                )
    if seal:
        store.append_event(run.events, EventRecord(schema_version=1, time=TIME, kind=rn.EventKind.RUN_SEALED))
        store.write_record(run.seed, seed())
        store.write_sums(run)
    return run


def _skipped(gate: ev.Gate, reason: ev.SkipReason) -> ev.GateSkipped:
    return ev.GateSkipped(verdict="skipped", gate=gate, reason=reason)
