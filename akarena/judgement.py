"""One judgement as the runner sees it: stage the files, describe the processes, start sandbox B, read the verdict."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from akarena import configurations, files, paths, schemas
from akarena.errors import InfrastructureError
from akarena.judge.job import Job, Mode, Process, SideJob
from akarena.judge.main import JOB, ORACLE
from akarena.records.evaluation import Configuration, EvaluationRecord, SamplesRecord, VoidReason
from akarena.records.run import Calibration
from akarena.records.task import Category, TargetName, TaskRecord, Value
from akarena.sandbox.base import Command, End, Limits, Mount, Role, Sandbox, ScratchMount
from akarena.targets import EntryKind, Target, host
from akarena.tasks import Task
from akarena.temporary import OwnedFolder

JUDGE_SECONDS = 480.0
_CANDIDATE_SECONDS = 240.0
"""Less than a judgement has, by a build and the judge's own work: so a slow candidate fails, and is not void."""
_OUTPUT_BYTES = 64 << 20
_LOG_BYTES = 64 << 10
_BUILD_SECONDS = 120.0
_CALL_SECONDS = {TargetName.CPU: 20.0, TargetName.CUDA: 10.0, TargetName.ROCM: 10.0}
_MEMORY_BYTES = 32 << 30
_BUILD_MEMORY_BYTES = 8 << 30


@dataclass(frozen=True)
class Verdict:
    """What came of a judgement: records, or the reason why there are none."""

    evaluation: EvaluationRecord | None
    samples: SamplesRecord | None
    void: VoidReason | None
    log: str


def judge_digest() -> str:
    """Return the digest of everything that decides: judge, worker, targets with headers, and statistics."""
    package = paths.package()
    folders = ("judge", "worker", "targets", "records")
    names = ("statistics.py", "scoring.py", "configurations.py", "expressions.py")
    parts = [files.digest_tree(package / folder, skip=("__pycache__",)) for folder in folders]
    parts += [files.sha256(package / name) for name in names]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def entry_kinds(category: Category) -> tuple[EntryKind, EntryKind]:
    """Return how the baseline and the candidate of a category are loaded."""
    match category:
        case Category.HIP_TO_HIP:
            return EntryKind.NATIVE, EntryKind.NATIVE
        case Category.TRITON_TO_TRITON:
            return EntryKind.TRITON, EntryKind.TRITON
        case Category.PYTORCH_TO_HIP:
            return EntryKind.EAGER, EntryKind.NATIVE


class Court:
    """Judges candidates of one run: the sandbox, the target and its calibration.

    Args:
        sandbox: Where everything runs.
        target: Hardware and tool chain.
        calibration: Measured once for the run; None on a target without speed.
    """

    def __init__(self, sandbox: Sandbox, target: Target, calibration: Calibration | None = None) -> None:
        self._sandbox = sandbox
        self._target = target
        self.calibration = calibration
        self._facts = target.facts()
        self.digest = judge_digest()

    def judge(
        self,
        task: Task,
        candidate: Path,
        candidate_digest: str,
        cases: Sequence[Configuration],
        mode: Mode,
        cancel: threading.Event | None = None,
    ) -> Verdict:
        """Judge one candidate.

        Args:
            task: The pristine task.
            candidate: Folder with the candidate's files.
            candidate_digest: Their digest, for the record.
            cases: Configurations to judge on.
            mode: Full, or the short form for the agent's ``check``.
            cancel: Stops the judgement when set.

        Raises:
            InfrastructureError: The sandbox cannot be started.
        """
        baseline_kind, candidate_kind = entry_kinds(task.record.category)
        editable = task.record.editable[0]
        job = self._job(
            mode,
            task.record,
            task.digest,
            candidate_digest,
            cases,
            SideJob(
                kind=baseline_kind, path=_loaded(baseline_kind, task.baseline.name), entry=_entry(task, baseline_kind)
            ),
            SideJob(kind=candidate_kind, path=_loaded(candidate_kind, editable), entry=task.record.entry),
        )
        sources = {Process.BASELINE: task.baseline, Process.CANDIDATE: candidate / editable}
        return self._run(job, sources, task.oracle, cancel)

    def calibrate(self, cancel: threading.Event | None = None) -> Calibration:
        """Measure the instrument on this device.

        Raises:
            InfrastructureError: The measurement failed.
        """
        kernel = paths.package() / "judge" / "calibration.hip"
        side = SideJob(kind=EntryKind.NATIVE, path="/kernel/kernel.so", entry="scale")
        task = _calibration_task()
        cases = configurations.seen(task, self._target.name)
        job = self._job(Mode.CALIBRATE, task, "0" * 64, "0" * 64, cases, side, side)
        sources = {Process.BASELINE: kernel, Process.CANDIDATE: kernel}
        text, log = self._execute(job, sources, kernel, cancel)
        try:
            return Calibration.model_validate_json(json.dumps(json.loads(text)["calibration"]))
        except (ValueError, KeyError) as error:
            raise InfrastructureError(f"calibration failed: {error}; {log[-2000:]}") from None

    def _job(
        self,
        mode: Mode,
        task: TaskRecord,
        task_digest: str,
        candidate_digest: str,
        cases: Sequence[Configuration],
        baseline: SideJob,
        candidate: SideJob,
    ) -> Job:
        environment = self._target.torch_process().environment
        return Job(
            mode=mode,
            task=task,
            task_digest=task_digest,
            candidate_digest=candidate_digest,
            judge_digest=self.digest,
            target=self._target.name,
            architecture=self._facts.architecture,
            measures_speed=self._target.measures_speed,
            fp8=self._target.fp8_dtype(),
            unverified=tuple(case.id for case in cases if not self._verified(task, candidate.kind, case.values)),
            nonce=secrets.token_hex(32),
            baseline=baseline,
            candidate=candidate,
            baseline_needs_build=baseline.kind is EntryKind.NATIVE,
            candidate_needs_build=candidate.kind is EntryKind.NATIVE,
            configurations=tuple(cases),
            calibration=self.calibration,
            runtime_library=environment.get("AKARENA_RUNTIME_LIBRARY"),
            runtime_prefix=environment.get("AKARENA_RUNTIME_PREFIX"),
            call_seconds=_CALL_SECONDS[self._target.name],
            candidate_seconds=_CANDIDATE_SECONDS,
            compile_seconds=_BUILD_SECONDS,
        )

    def configurations(self, task: TaskRecord, seed: bytes) -> list[Configuration]:
        """Return the seen configurations of a task and the unseen ones of a seed."""
        _, kind = entry_kinds(task.category)
        target = self._target.name
        unseen = configurations.unseen(task, target, seed, lambda values: self._verified(task, kind, values))
        return configurations.seen(task, target) + unseen

    def _verified(self, task: TaskRecord, kind: EntryKind, values: Mapping[str, Value]) -> bool:
        return self._target.is_verified(kind, configurations.used_dtypes(task, values))

    def _run(self, job: Job, sources: dict[Process, Path], oracle: Path, cancel: threading.Event | None) -> Verdict:
        try:
            text, log = self._execute(job, sources, oracle, cancel)
        except TimeoutError as error:
            return Verdict(None, None, VoidReason.JUDGE_TIMEOUT, str(error))
        try:
            answer = json.loads(text)
            evaluation = schemas.parse(
                EvaluationRecord, json.dumps(answer["evaluation"]).encode(), "the judge's answer"
            )
            samples = schemas.parse(SamplesRecord, json.dumps(answer["samples"]).encode(), "the judge's answer")
        except (ValueError, KeyError, TypeError):
            return Verdict(None, None, VoidReason.JUDGE_CRASHED, log)
        return Verdict(evaluation, samples, None, log)

    def _execute(
        self, job: Job, sources: dict[Process, Path], oracle: Path, cancel: threading.Event | None
    ) -> tuple[str, str]:
        with OwnedFolder("judge") as folder:
            scratch = Path(folder)
            processes = self._processes(job, sources, oracle, scratch)
            result = self._sandbox.judge(processes, main=Process.JUDGE.value, cancel=cancel)
        log = result.stderr.decode(errors="replace")[-_LOG_BYTES:]
        if result.end is End.TIMEOUT:
            raise TimeoutError(f"the judge was stopped after {result.wall_seconds:.0f} s; {log[-2000:]}")
        if result.end is End.FAILED_TO_START:
            raise InfrastructureError(f"the judge could not be started: {result.detail}")
        return result.stdout.decode(errors="replace"), f"{result.end.value} {result.exit_code} {result.detail}\n{log}"

    def _processes(self, job: Job, sources: dict[Process, Path], oracle: Path, scratch: Path) -> dict[str, Command]:
        empty = scratch / "empty"
        empty.mkdir()
        (scratch / "job.json").write_text(job.model_dump_json())
        staged = {process: _stage(source, scratch / process.value) for process, source in sources.items()}
        torch = self._target.torch_process()
        commands = {
            Process.JUDGE.value: Command(
                argv=self._target.python(Role.JUDGE).argv("from akarena.judge.main import main; main()"),
                environment=torch.environment,
                mounts=(
                    *torch.mounts,
                    Mount(paths.package(), f"{host.CODE}/akarena"),
                    Mount(scratch / "job.json", str(JOB)),
                    Mount(oracle, str(ORACLE)),
                ),
                limits=_limits(JUDGE_SECONDS, _MEMORY_BYTES, _OUTPUT_BYTES),
            )
        }
        for process, side in ((Process.BASELINE, job.baseline), (Process.CANDIDATE, job.candidate)):
            commands[process.value] = self._worker(process, side, staged[process], empty)
        builds = ((Process.BUILD_BASELINE, Process.BASELINE), (Process.BUILD_CANDIDATE, Process.CANDIDATE))
        for build, process in builds:
            if (job.baseline if process is Process.BASELINE else job.candidate).kind is EntryKind.NATIVE:
                recipe = self._target.build(sources[process].name)
                commands[build.value] = Command(
                    argv=recipe.argv,
                    environment=recipe.provision.environment,
                    mounts=(*recipe.provision.mounts, Mount(staged[process], "/source")),
                    limits=_limits(_BUILD_SECONDS, _BUILD_MEMORY_BYTES, _LOG_BYTES),
                    working_directory="/source",
                    scratch=(ScratchMount(process.value, "/out", writable=True),),
                    role=Role.BUILD,
                )
        return commands

    def _worker(self, process: Process, side: SideJob, staged: Path, empty: Path) -> Command:
        code = host.code_mounts("worker")
        start = "from akarena.worker.main import main; main()"
        limits = _limits(JUDGE_SECONDS, _MEMORY_BYTES, _LOG_BYTES)
        if side.kind is EntryKind.NATIVE:
            provision = self._target.native_worker()
            python = self._target.python(Role.WORKER)
            return Command(
                argv=python.bare_argv(start),
                environment=provision.environment,
                mounts=(*python.bare_mounts(empty), *provision.mounts, *code),
                limits=limits,
                scratch=(ScratchMount(process.value, "/kernel"),),
                role=Role.WORKER,
            )
        provision = self._target.torch_process()
        environment = {**provision.environment, "TRITON_CACHE_DIR": "/tmp/triton", "AKARENA_PRELOAD": "torch"}
        return Command(
            # The image with torch, which is the judge's; nothing of the judge is in it.
            argv=self._target.python(Role.JUDGE).argv(start),
            environment=environment,
            mounts=(*provision.mounts, *code, Mount(staged, "/kernel")),
            limits=limits,
        )


def _stage(source: Path, folder: Path) -> Path:
    """Copy one file into a folder of its own, so that a build sees nothing beside it."""
    folder.mkdir()
    with suppress(FileNotFoundError):
        shutil.copyfile(source, folder / source.name, follow_symlinks=False)
    return folder


def _limits(seconds: float, memory: int, output: int) -> Limits:
    return Limits(
        wall_seconds=seconds,
        memory_bytes=memory,
        processes=512,
        output_bytes=output,
        file_bytes=8 << 30,
        tmp_bytes=2 << 30,
    )


def _loaded(kind: EntryKind, name: str) -> str:
    return "/kernel/kernel.so" if kind is EntryKind.NATIVE else f"/kernel/{name}"


def _entry(task: Task, kind: EntryKind) -> str:
    return "forward" if kind is EntryKind.EAGER else task.record.entry


def _calibration_task() -> TaskRecord:
    """Return the task that the calibration kernel answers: ``y = 2 x``."""
    path = paths.package() / "judge" / "calibration.json"
    return schemas.parse(TaskRecord, path.read_bytes(), str(path))
