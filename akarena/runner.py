"""A run from plan to seal: every configuration on every task, as often as asked, resumable at any point."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from akarena import __version__, agents, configure, environment, keys, paths, readiness, seeds, store, tasks, temporary
from akarena import site as site_of
from akarena.agents.take_back import take_back
from akarena.errors import InfrastructureError, UserError
from akarena.judgement import Court
from akarena.lease import device_lease
from akarena.records import AttemptRecord, EventRecord, LockRecord, ManifestRecord, TrialRecord
from akarena.records.run import AgentConfiguration, EventKind, PreflightCheck
from akarena.records.trial import TrialOutcome, TrySummary
from akarena.site import Site
from akarena.store import AttemptFolder, RunFolder
from akarena.targets import Target
from akarena.tasks import Task
from akarena.trial import Bench, now, run_try


@dataclass(frozen=True)
class Request:
    """What a user asks of ``evaluate``."""

    runs_dir: Path
    agents: tuple[AgentConfiguration, ...]
    tasks: tuple[str, ...] = ()
    target: str = "auto"
    sandbox: str = "auto"
    attempts: int = 1
    tries: int = 2
    seed: int | None = None
    seed_of: str | None = None
    run_id: str | None = None
    agent_seconds: float = 3600.0
    check_calls: int = 20
    suggested_iterations: int | None = None
    contract_in_prompt: bool = True
    inspect: bool = True


class Progress(Protocol):
    """Where a run tells what it does; the command line shows it."""

    def said(self, text: str) -> None:
        """Tell one line."""

    def planned(self, done: int, total: int) -> None:
        """Tell how many attempts are done."""

    def trial(self, task: str, configuration: str, outcome: TrialOutcome | None) -> None:
        """Tell that a try began (None), or what came of an attempt."""


def start(request: Request, progress: Progress) -> RunFolder:
    """Begin a run and bring it to its end.

    Raises:
        UserError: A name or a flag is wrong, or the run id is taken.
        InfrastructureError: The machine cannot run this; nothing was started.
    """
    programs = _programs(request.agents)
    site = site_of.choose(request.sandbox, request.target, needs_service=any(agent.service for agent in request.agents))
    chosen = _select(request, site.target)
    checks = _isolated(site, programs, request.agents, progress)
    like = store.find_run(request.runs_dir, request.seed_of) if request.seed_of else None
    seed, source = seeds.choose(request.seed, like)
    run_id = _run_id(request, site.target)
    run = RunFolder(request.runs_dir / run_id)
    if run.root.exists():
        raise UserError(f"--run-id {run_id}: {run.root} exists already; take another name, or use `akarena resume`")
    manifest = ManifestRecord(
        schema_version=1,
        run_id=run_id,
        created=now(),
        akarena_version=__version__,
        source=environment.source_commit(),
        target=site.target.name,
        sandbox=site.sandbox.name,
        agents=request.agents,
        tasks=tuple(task.id for task in chosen),
        attempts=request.attempts,
        tries=request.tries,
        agent_wall_seconds=request.agent_seconds,
        check_calls=request.check_calls,
        suggested_iterations=request.suggested_iterations,
        contract_in_prompt=request.contract_in_prompt,
        seed_sha256=seeds.commitment(seed),
        seed_source=source,
    )
    try:
        run.root.mkdir(parents=True)
    except OSError as error:
        raise UserError(f"--runs-dir {request.runs_dir}: cannot hold the run ({error.strerror})") from None
    with _exclusive(run):
        seeds.keep(run_id, seed)
        store.write_record(run.manifest, manifest)
        _log(run, EventKind.RUN_STARTED)
        lock = _lock(run, manifest, chosen, site, checks, progress)
        _finish(Bench.of(manifest, lock, site, seed, request.inspect), run, chosen, progress)
    return run


def resume(run: RunFolder, progress: Progress, inspect: bool = True) -> RunFolder:
    """Run what is missing of an unsealed run. Nothing that is complete is run again.

    Raises:
        UserError: The run is sealed, is in use, or a task has changed since it began.
        InfrastructureError: The machine cannot run this.
    """
    manifest = run.read(ManifestRecord, run.manifest)
    if run.sums.exists():
        raise UserError(f"run {manifest.run_id} is sealed; there is nothing to resume")
    seed = seeds.recall(manifest)
    site = site_of.choose(manifest.sandbox, manifest.target.value)
    programs = _programs(manifest.agents)
    everything = {task.id: task for task in tasks.load_all(paths.root() / "tasks")}
    gone = [name for name in manifest.tasks if name not in everything]
    if gone:
        raise UserError(f"run {manifest.run_id}: its task {gone[0]} is not in this checkout")
    chosen = [everything[name] for name in manifest.tasks]
    with _exclusive(run):
        checks = _isolated(site, programs, manifest.agents, progress)
        _log(run, EventKind.RUN_RESUMED)
        if run.lock.exists():
            lock = run.read(LockRecord, run.lock)
            _unchanged(manifest.run_id, lock, chosen)
        else:
            lock = _lock(run, manifest, chosen, site, checks, progress)
        _finish(Bench.of(manifest, lock, site, seed, inspect), run, chosen, progress)
    return run


def rejudge(run: RunFolder, runs_dir: Path, progress: Progress) -> RunFolder:
    """Judge every candidate of a sealed run again, with its revealed seed, as a run of its own."""
    manifest = run.read(ManifestRecord, run.manifest)
    configurations = tuple(
        AgentConfiguration(id=configuration.id, agent="replay", replay_of=f"{run.root.resolve()}:{configuration.id}")
        for configuration in manifest.agents
    )
    return start(
        Request(
            runs_dir=runs_dir,
            agents=configurations,
            tasks=manifest.tasks,
            target=manifest.target.value,
            attempts=manifest.attempts,
            seed_of=str(run.root),
            run_id=_free_name(runs_dir, f"{manifest.run_id}-rejudged"),
            # Verdicts are compared, and an inspection is none.
            inspect=False,
        ),
        progress,
    )


def _select(request: Request, target: Target) -> list[Task]:
    everything = tasks.load_all(paths.root() / "tasks")
    chosen = tasks.select(everything, list(request.tasks))
    fitting = [task for task in chosen if target.name in task.record.targets]
    if not fitting:
        raise UserError(f"--target {target.name.value}: none of the selected tasks can run there")
    return fitting


def _programs(configurations: Sequence[AgentConfiguration]) -> list[str]:
    """Return the programs of agents that have images of their own, once nothing is missing for any agent."""
    configure.require_ready(configurations)
    chosen = [agents.get(configuration.agent) for configuration in configurations]
    return sorted({agent.program for agent in chosen if agent.program is not None})


def _isolated(
    site: Site, programs: Sequence[str], configurations: Sequence[AgentConfiguration], progress: Progress
) -> list[PreflightCheck]:
    """Prove the sandbox from inside, and that agents reach their service; there is no falling back to a weaker one."""
    progress.said(f"sandbox {site.sandbox.name}: checking from inside")
    places = [site, *(site.for_program(program) for program in programs if site.images is not None)]
    checks = [check for place in places for check in readiness.isolation(place)]
    checks += readiness.services(site, configurations)
    failed = [check for check in checks if not check.ok]
    if failed:
        lines = "; ".join(f"{check.check} ({check.detail})" for check in failed)
        raise InfrastructureError(f"sandbox {site.sandbox.name}: a check from inside failed: {lines}")
    return checks


def _lock(
    run: RunFolder,
    manifest: ManifestRecord,
    chosen: list[Task],
    site: Site,
    checks: Sequence[PreflightCheck],
    progress: Progress,
) -> LockRecord:
    calibration = None
    if site.target.measures_speed:
        progress.said("calibrating the instrument on this device")
        with device_lease(site.target.name):
            calibration = Court(site.sandbox, site.target).calibrate()
        # Workers of the calibration wrote into memory that its judge had made.
        shared = f"a worker answers within {calibration.round_trip_us:.0f} us"
        checks = [*checks, PreflightCheck(check="judge and workers share device memory", ok=True, detail=shared)]
    programs = readiness.versions(site, manifest.agents)
    lock = environment.lock(manifest, chosen, site, programs, checks, calibration)
    store.write_record(run.lock, lock)
    return lock


def _finish(bench: Bench, run: RunFolder, chosen: list[Task], progress: Progress) -> None:
    """Bring every attempt to its end, then seal the run."""
    manifest = bench.manifest
    plan = list(_plan(run, manifest, chosen, bench.seed))
    progress.planned(0, len(plan))
    for done, (task, configuration, attempt) in enumerate(plan, 1):
        _attempt(bench, task, configuration, attempt, progress)
        progress.planned(done, len(plan))
    keys.require_absent(run.root, keys.variables(manifest.agents))
    _log(run, EventKind.RUN_SEALED)
    seeds.reveal(run, manifest, bench.seed)
    store.write_sums(run)


def _plan(
    run: RunFolder, manifest: ManifestRecord, chosen: list[Task], seed: bytes
) -> Iterator[tuple[Task, AgentConfiguration, AttemptFolder]]:
    """Yield every attempt, in an order that is random but the same after an interruption.

    Each round of attempts takes the tasks in a new order, and on each task all configurations one after another in a
    new order, so that what drifts with time hits all alike. ``events.jsonl`` records the order.
    """

    def rank(*names: object) -> bytes:
        return hmac.digest(seed, "/".join(map(str, ("order", *names))).encode(), "sha256")

    for number in range(1, manifest.attempts + 1):
        for task in sorted(chosen, key=lambda one: rank(number, one.id)):
            for configuration in sorted(manifest.agents, key=lambda one: rank(number, task.id, one.id)):
                yield task, configuration, run.attempt(task.id, configuration.id, number)


def _attempt(
    bench: Bench, task: Task, configuration: AgentConfiguration, attempt: AttemptFolder, progress: Progress
) -> None:
    """Bring one attempt to a try that counts: the first that is not void, or the last that is allowed."""
    if attempt.attempt.exists():
        record = attempt.run.read(AttemptRecord, attempt.attempt)
        counted = attempt.run.read(TrialRecord, attempt.try_folder(record.counted_try).trial)
        progress.trial(task.id, configuration.id, counted.root)
        return
    summaries = _complete_tries(attempt)
    while (not summaries or summaries[-1].status == "void") and len(summaries) < bench.manifest.tries:
        folder = attempt.new_try()
        where = {"task_id": task.id, "configuration_id": configuration.id, "attempt": attempt.number}
        _log(attempt.run, EventKind.TRY_STARTED, try_number=folder.number, **where)
        progress.trial(task.id, configuration.id, None)
        outcome = run_try(bench, task, configuration, folder)
        _log(attempt.run, EventKind.TRY_ENDED, try_number=folder.number, detail=outcome.status, **where)
        summaries = _complete_tries(attempt)
    counted_try = summaries[-1].try_number
    store.write_record(
        attempt.attempt,
        AttemptRecord(
            schema_version=1,
            task_id=task.id,
            configuration_id=configuration.id,
            attempt=attempt.number,
            counted_try=counted_try,
            tries=tuple(summaries),
        ),
    )
    progress.trial(task.id, configuration.id, attempt.run.read(TrialRecord, attempt.try_folder(counted_try).trial).root)


def _complete_tries(attempt: AttemptFolder) -> list[TrySummary]:
    """Return the tries that were brought to an end; one that was interrupted stays on disk and does not count."""
    summaries = []
    for folder in attempt.tries():
        if folder.complete:
            status = attempt.run.read(TrialRecord, folder.trial).root.status
            summaries.append(TrySummary(try_number=folder.number, status=status))
    return summaries


def _unchanged(run_id: str, lock: LockRecord, chosen: list[Task]) -> None:
    digests = {task.id: task.digest for task in lock.tasks}
    for task in chosen:
        if digests.get(task.id) != task.digest:
            raise UserError(f"run {run_id}: task {task.id} has changed since the run began; start a new run")


@contextmanager
def _exclusive(run: RunFolder) -> Iterator[None]:
    """Keep a second akarena out of the run, and clear what killed ones left in the temporary folder."""
    temporary.sweep(take_back)
    try:
        with FileLock(run.root / ".lock", timeout=0):
            yield
    except Timeout:
        raise UserError(f"run {run.root.name} is in use by another akarena") from None


def _log(run: RunFolder, kind: EventKind, **fields: object) -> None:
    store.append_event(
        run.events, EventRecord.model_validate({"schema_version": 1, "time": now(), "kind": kind, **fields})
    )


def _run_id(request: Request, target: Target) -> str:
    if request.run_id is not None:
        if not re.fullmatch(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?", request.run_id):
            raise UserError(f"--run-id {request.run_id}: expected lower-case letters, digits, '.', '_' and '-'")
        return request.run_id
    stamp = re.sub(r"[-:]", "", now()).replace("T", "-").removesuffix("Z")
    names = "-".join(configuration.id for configuration in request.agents)[:30].strip("-._")
    return _free_name(request.runs_dir, f"{stamp}-{target.name.value}-{names}")


def _free_name(runs_dir: Path, wanted: str) -> str:
    name, number = wanted, 1
    while (runs_dir / name).exists():
        number += 1
        name = f"{wanted}-{number}"
    return name
