"""One judgement from beginning to end."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from akarena.judge import correctness, gates, speed
from akarena.judge.alone import Alone
from akarena.judge.arena import DeviceMemory, HostMemory, Memory, arena_bytes, timed_bytes
from akarena.judge.blame import NOT_CAPTURABLE, Blame, StoppedError
from akarena.judge.correctness import Checked, Errors, Reference
from akarena.judge.gates import PROVEN_CHEATS, Stop
from akarena.judge.idle import IdleProbe
from akarena.judge.job import Job, Mode, Process
from akarena.judge.side import Side
from akarena.judge.workers import NotCapturableError, WorkerFaultError
from akarena.records.evaluation import (
    Case,
    CaseCorrect,
    CaseIncorrect,
    CaseNotChecked,
    Configuration,
    EvaluationRecord,
    FailReason,
    Gate,
    GateResult,
    Quality,
    Round,
    SamplesRecord,
    Series,
    SkipReason,
    Speed,
    SpeedAbsent,
    SpeedMeasured,
    SpeedUnknown,
    SpeedUnknownReason,
    Split,
    VoidReason,
)
from akarena.sandbox.base import End
from akarena.sandbox.control import Control
from akarena.worker.runtime import Runtime

_BUILD_FAULTS = {
    End.TIMEOUT: FailReason.COMPILE_TIMEOUT,
    End.OUT_OF_MEMORY: FailReason.COMPILE_RESOURCES,
    End.TOO_MANY_PROCESSES: FailReason.COMPILE_RESOURCES,
    End.DISK_FULL: FailReason.COMPILE_RESOURCES,
}


_TRIES = 3
"""What failed each time beside the candidate, and never when the candidate was dead, was its doing."""
_MAY_BE_CHANCE = frozenset({FailReason.DEVICE_KEPT_BUSY, FailReason.DEVICE_MEMORY_TAKEN, FailReason.BASELINE_BROKEN})


@dataclass
class _Baseline:
    """What the baseline did on one configuration; ``errors`` is None where the target cannot verify it."""

    verdict: CaseCorrect | CaseNotChecked
    errors: Errors | None


class Judgement:
    """Judges one candidate.

    Args:
        job: What to judge.
        control: The launcher, which starts the build and the workers.
        reference: Oracle and tolerances of the task.
        started: Workers that were started already, and are waiting without a kernel.
        seconds_so_far: Time since this process began.
    """

    def __init__(
        self,
        job: Job,
        control: Control,
        reference: Reference,
        started: dict[str, socket.socket],
        seconds_so_far: float,
    ) -> None:
        self._job = job
        self._control = control
        self._reference = reference
        self._device = torch.device("cuda" if job.runtime_library else "cpu")
        self._seconds: dict[str, float] = {"import": round(seconds_so_far, 3)}
        self._series: list[Series] = []
        self._alone: Alone | None = None
        self._probe: IdleProbe | None = None
        self._cheat: FailReason | None = None
        with self._stage("start"):
            runtime = None
            if job.runtime_library and job.runtime_prefix:
                runtime = Runtime(job.runtime_library, job.runtime_prefix)
                runtime.set_device()
            self._memories = [self._new_memory(runtime) for _ in range(2)]
            self._baseline, self._candidate = (
                Side(job, control, process, side, memory, self._device)
                for process, side, memory in zip(
                    (Process.BASELINE, Process.CANDIDATE), (job.baseline, job.candidate), self._memories, strict=True
                )
            )
            for side in (self._baseline, self._candidate):
                side.worker.adopt(started.pop(side.name))
            self._blame = Blame(self._baseline, self._candidate)
            if self._timed:
                assert job.calibration is not None
                self._probe = IdleProbe(job.calibration.idle_probe_us)
                if job.mode is Mode.FULL:
                    self._alone = Alone(job, self._baseline, job.calibration, self._probe)

    @property
    def _timed(self) -> bool:
        return self._job.measures_speed and self._job.calibration is not None

    def _new_memory(self, runtime: Runtime | None) -> Memory:
        largest = max(
            arena_bytes(self._job.task, configuration.values, guarded=runtime is None)
            for configuration in self._job.configurations
        )
        if runtime is None:
            return HostMemory(largest)
        return DeviceMemory(runtime, max(largest, timed_bytes()) if self._timed else largest)

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = round(self._seconds.get(name, 0.0) + time.perf_counter() - started, 3)

    def run(self) -> tuple[EvaluationRecord, SamplesRecord]:
        """Judge; whatever the candidate does, there is a record."""
        try:
            baselines = self._check_baseline()
            self._await_build()
            if self._alone is not None:
                self._time_alone(self._alone.before)
            self._load_candidate()
            cases = [case for split in Split for case in self._judge_split(split, baselines)]
            self._candidate.worker.stop()
            if self._alone is not None:
                self._time_alone(self._alone.after)
                cases = _without_disturbed(cases, self._alone.disturbed())
            results = gates.judged(cases)
        except StoppedError as stopped:
            cases, results = [], gates.stopped(stopped.stop)
        finally:
            for side in (self._candidate, self._baseline):
                side.worker.stop()
        self._seconds["candidate_compile"] = round(
            self._seconds.get("build", 0.0) + self._candidate.first_call_seconds, 3
        )
        self._seconds["baseline_compile"] = round(self._baseline.first_call_seconds, 3)
        for memory in self._memories:
            memory.close()
        return self._evaluation(tuple(cases), results), self._samples()

    def _check_baseline(self) -> dict[str, _Baseline]:
        with self._stage("baseline_check"):
            if self._job.baseline_needs_build:
                self._finish_build(Process.BUILD_BASELINE, VoidReason.BASELINE_FAILED)
            found = {}
            try:
                self._baseline.start()
                for configuration in self._job.configurations:
                    found[configuration.id] = self._baseline_on(configuration)
            except WorkerFaultError as fault:
                raise StoppedError(Stop(Gate.SCOPE, VoidReason.BASELINE_FAILED, f"baseline: {fault}")) from None
            except correctness.OracleError as error:
                raise StoppedError(Stop(Gate.SCOPE, VoidReason.BASELINE_FAILED, f"oracle: {error}")) from None
            return found

    def _baseline_on(self, configuration: Configuration) -> _Baseline:
        if configuration.id in self._job.unverified:
            return _Baseline(CaseNotChecked(verdict="not_checked", reason=SkipReason.UNVERIFIED_ON_TARGET), None)
        checked = correctness.check(self._baseline, self._reference, configuration.values, None)
        verdict = correctness.verdict(checked, checked.errors)
        if isinstance(verdict, CaseIncorrect):
            text = f"baseline on {configuration.id} {configuration.values}: {verdict.reason.value}: {verdict.evidence}"
            raise StoppedError(Stop(Gate.SCOPE, VoidReason.BASELINE_FAILED, text))
        return _Baseline(verdict, checked.errors)

    def _await_build(self) -> None:
        if self._job.candidate_needs_build:
            with self._stage("build_wait"):
                self._finish_build(Process.BUILD_CANDIDATE, None)

    def _finish_build(self, process: Process, void: VoidReason | None) -> None:
        ended = self._control.wait(process.value, self._job.compile_seconds + 10)
        if ended is None:
            ended = self._control.kill(process.value)
        if process is Process.BUILD_CANDIDATE:
            self._seconds["build"] = round(ended.wall_seconds, 3)
        if ended.end is End.EXITED and ended.exit_code == 0:
            return
        log = (ended.stderr + b"\n" + ended.stdout).decode(errors="replace").strip()
        text = f"{ended.detail}\n{log}".strip()[:6000]
        reason = void or _BUILD_FAULTS.get(ended.end, FailReason.COMPILE_ERROR)
        raise StoppedError(Stop(Gate.BUILD if void is None else Gate.SCOPE, reason, text or "the compiler failed"))

    def _load_candidate(self) -> None:
        with self._stage("candidate_load"):
            try:
                self._candidate.start()
            except WorkerFaultError as fault:
                raise StoppedError(Stop(Gate.BUILD, fault.reason, fault.evidence)) from None

    def _judge_split(self, split: Split, baselines: dict[str, _Baseline]) -> list[Case]:
        own = [configuration for configuration in self._job.configurations if configuration.split is split]
        verdicts: dict[str, CaseCorrect | CaseIncorrect | CaseNotChecked] = {}
        failed = False
        with self._stage(f"{split.value}_correct"):
            for configuration in own:
                baseline = baselines[configuration.id]
                if baseline.errors is None:
                    verdict: CaseCorrect | CaseIncorrect | CaseNotChecked = CaseNotChecked(
                        verdict="not_checked", reason=SkipReason.UNVERIFIED_ON_TARGET
                    )
                elif failed:
                    verdict = CaseNotChecked(verdict="not_checked", reason=SkipReason.EARLIER_CASE_FAILED)
                else:
                    verdict = self._candidate_on(configuration, baseline.errors)
                    failed = isinstance(verdict, CaseIncorrect)
                verdicts[configuration.id] = verdict
        speeds: dict[str, Speed] = {}
        with self._stage(f"{split.value}_speed"):
            for configuration in own:
                if failed or self._cheat or not self._timed:
                    refused = failed or self._cheat is not None
                    reason = SkipReason.EARLIER_GATE_FAILED if refused else SkipReason.NOT_MEASURED_ON_TARGET
                    speeds[configuration.id] = SpeedAbsent(state="absent", reason=reason)
                    continue
                try:
                    speeds[configuration.id] = self._speed_on(configuration)
                except WorkerFaultError as fault:
                    failed = True
                    if fault.reason in PROVEN_CHEATS:
                        self._cheat = fault.reason
                    speeds[configuration.id] = SpeedAbsent(state="absent", reason=SkipReason.EARLIER_GATE_FAILED)
                    verdicts[configuration.id] = CaseIncorrect(
                        verdict="incorrect", reason=fault.reason, round=None, evidence=fault.evidence[:4000]
                    )
        return [
            Case(
                configuration=configuration,
                baseline=baselines[configuration.id].verdict,
                candidate=verdicts[configuration.id],
                speed=speeds[configuration.id],
            )
            for configuration in own
        ]

    def _candidate_on(self, configuration: Configuration, baseline: Errors) -> CaseCorrect | CaseIncorrect:
        try:
            self._candidate.start()
            checked = correctness.check(self._candidate, self._reference, configuration.values, baseline)
        except WorkerFaultError as fault:
            checked = Checked({}, fault.reason, None, fault.evidence)
        except torch.OutOfMemoryError as error:
            taken = self._blame.for_memory(error)
            checked = Checked({}, taken.reason, None, taken.evidence)
        return correctness.verdict(checked, baseline)

    def _speed_on(self, configuration: Configuration) -> Speed:
        """Time a configuration; anew, with a fresh worker, where it failed in a way that can be chance."""
        tries = 1
        while True:
            try:
                return self._time(configuration)
            except WorkerFaultError as fault:
                self._candidate.worker.stop()
                if fault.reason not in _MAY_BE_CHANCE or tries == _TRIES:
                    raise
            tries += 1
            self._candidate.start()
            self._candidate.answer(configuration.values, Round.ORDINARY, first=True)

    def _time(self, configuration: Configuration) -> Speed:
        """Time a configuration once.

        Raises:
            WorkerFaultError: The candidate failed, or made the baseline or the judge fail.
            StoppedError: The baseline or the device fails without the candidate, too.
        """
        assert self._job.calibration is not None
        assert self._probe is not None
        blocks = speed.CHECK_BLOCKS if self._job.mode is Mode.CHECK else speed.BLOCKS
        try:
            self._baseline.start()
            self._candidate.start()
            timed = speed.time_case(
                self._job,
                (self._baseline, self._candidate),
                configuration,
                self._reference,
                self._job.calibration,
                self._probe,
                blocks,
            )
        except torch.OutOfMemoryError as error:
            raise self._blame.for_memory(error) from None
        except NotCapturableError as error:
            raise self._blame.for_baseline(error, configuration.values) from None
        except WorkerFaultError as fault:
            if not self._baseline.worker.running:
                raise self._blame.for_baseline(fault, configuration.values) from None
            if fault.reason is FailReason.DEVICE_KEPT_BUSY:
                self._blame.for_busy(self._probe)
            raise
        self._series.append(timed.series)
        if self._alone is not None:
            self._alone.beside(timed.series)
        return timed.speed

    def _time_alone(self, step: Callable[[], None]) -> None:
        with self._stage("baseline_alone"):
            try:
                step()
            except NotCapturableError:
                raise StoppedError(NOT_CAPTURABLE) from None
            except WorkerFaultError as fault:
                raise StoppedError(Stop(Gate.SCOPE, VoidReason.BASELINE_FAILED, f"baseline: {fault}")) from None

    def _quality(self) -> Quality | None:
        if self._probe is None or self._job.calibration is None or self._alone is None:
            return None
        medians = self._alone.medians()
        if not medians:
            return None
        return Quality(
            instrument_floor=self._job.calibration.instrument_floor,
            resolution_us=self._job.calibration.resolution_us,
            baseline_alone=medians,
            idle_looks=len(self._probe.seen_us),
            busy_looks=self._probe.slow(),
        )

    def _evaluation(self, cases: tuple[Case, ...], results: tuple[GateResult, ...]) -> EvaluationRecord:
        job = self._job
        return EvaluationRecord(
            schema_version=1,
            task_id=job.task.id,
            task_digest=job.task_digest,
            candidate_digest=job.candidate_digest,
            judge_digest=job.judge_digest,
            target=job.target,
            architecture=job.architecture,
            nonce=job.nonce,
            gates=results,
            cases=cases,
            quality=self._quality(),
            stage_seconds=self._seconds,
        )

    def _samples(self) -> SamplesRecord:
        return SamplesRecord(
            schema_version=1,
            task_id=self._job.task.id,
            series=tuple(self._series),
            baseline_alone=self._alone.series() if self._alone else (),
            idle_probe_us=tuple(round(us, 1) for us in (self._probe.seen_us if self._probe else [])),
        )


def _without_disturbed(cases: list[Case], disturbed: str | None) -> list[Case]:
    """Take every number back where the candidate slowed the baseline down."""
    if disturbed is None:
        return cases
    unknown = SpeedUnknown(state="unknown", reason=SpeedUnknownReason.BASELINE_DISTURBED, evidence=disturbed)
    return [
        case.model_copy(update={"speed": unknown}) if isinstance(case.speed, SpeedMeasured) else case for case in cases
    ]
