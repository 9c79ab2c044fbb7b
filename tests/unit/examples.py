"""Writes ``schemas/examples``: real-looking records, and copies of them with exactly one fault each.

Run ``python -m tests.unit.examples`` from the root of the checkout after a change of the records. Nothing is decided
here: that each example is taken or refused by both engines is checked by ``test_schemas.py``.
"""

from __future__ import annotations

import copy
import json
import shutil
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from akarena import schemas
from akarena.records import AttemptRecord, AuditRecord, CheckRecord, EventRecord, ImageLockRecord, InspectionRecord
from akarena.records import audit as au
from akarena.records import evaluation as ev
from akarena.records import image as im
from akarena.records import inspection as ins
from akarena.records import run as rn
from akarena.records import trial as tr
from akarena.records.task import TargetName
from akarena.report.build import build
from tests.unit import builders

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "schemas" / "examples"
TASK, OTHER = builders.TASKS

Document = dict[str, Any]
Fault = Callable[[Document], object]
"""Spoils a document in one place."""


def put(*path: str | int, value: Any) -> Fault:
    """Set the value at a path."""

    def spoil(document: Document) -> None:
        place: Any = document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return spoil


def cut(*path: str | int) -> Fault:
    """Remove the key at a path."""

    def spoil(document: Document) -> None:
        place: Any = document
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]

    return spoil


FAULTS: dict[str, dict[str, tuple[str, Fault]]] = {
    "attempt": {
        "no-tries": ("first", put("tries", value=[])),
        "try-zero": ("first", put("counted_try", value=0)),
        "unknown-status": ("first", put("tries", 0, "status", value="won")),
        "foreign-task": ("first", put("task_id", value="hip2hip/../secret")),
    },
    "audit": {
        "unknown-verdict": ("answered", put("verdict", value="passed")),
        "negative-bytes": ("answered", put("bytes_up", value=-1)),
        "newline-in-path": ("refused", put("path", value="/v1\n/messages")),
        "unknown-reason": ("refused", put("reason", value="unwanted")),
        "body": ("answered", put("body", value="the question")),
        "impossible-status": ("answered", put("status", value=600)),
        "part-of-tokens": ("answered", cut("tokens", "cache_read")),
    },
    "check": {
        "negative-calls": ("correct", put("calls_left", value=-1)),
        "long-log": ("compile-error", put("log", value="x" * 8001)),
        "compiled-as-number": ("correct", put("compiled", value=1)),
    },
    "evaluation": {
        "five-gates": ("win", cut("gates", 5)),
        "pass-with-reason": ("win", put("gates", 0, "reason", value="wrong_values")),
        "fail-without-evidence": ("not-built", cut("gates", 1, "evidence")),
        "void-reason-on-fail": ("not-built", put("gates", 1, "reason", value="device_not_idle")),
        "speedup-of-unknown": ("unstable", put("cases", 0, "speed", "speedup", value=1.2)),
        "zero-speedup": ("win", put("cases", 0, "speed", "speedup", value=0.0)),
        "unknown-gate": ("win", put("gates", 1, "gate", value="compile")),
        "unknown-kind": ("win", put("cases", 1, "configuration", "kind", value="tiny")),
        "list-as-value": ("win", put("cases", 0, "configuration", "values", "rows", value=[64])),
        "axis-with-space": ("win", put("cases", 0, "configuration", "values", value={"row count": 64})),
    },
    "event": {
        "local-time": ("run-started", put("time", value="2026-01-02T03:04:05+01:00")),
        "unknown-kind": ("run-started", put("kind", value="paused")),
        "missing-version": ("run-started", cut("schema_version")),
    },
    "images": {
        "short-id": ("cpu", put("images", 0, "id", value="sha256:abcd")),
        "relative-python": ("cpu", put("images", 0, "facts", "python", "bare_executable", value="bin/python3")),
        "unknown-role": ("cpu", put("images", 0, "facts", "role", value="builder")),
        "unknown-prefix": ("rocm", put("images", 0, "facts", "runtime", "prefix", value="rocm")),
        "no-layers": ("cpu", put("images", 0, "layers", value=[])),
        "no-images": ("cpu", put("images", value=[])),
        "host-as-requirement": ("cpu", put("requirements", value={"https://host": "ab" * 32})),
        "newline-in-base": ("cpu", put("base", "reference", value="base\nimage")),
    },
    "inspection": {
        "failed-with-kernels": ("partly", put("candidate", "kernels", value=[])),
        "compiled-without-kernels": ("compiled", put("candidate", "kernels", value=[])),
        "negative-registers": ("compiled", put("candidate", "kernels", 0, "vgpr_count", value=-1)),
        "spills-as-text": ("compiled", put("candidate", "kernels", 0, "vgpr_spill_count", value="none")),
        "other-architecture": ("compiled", put("architectures", 0, value="sm_90")),
        "long-reason": ("partly", put("baseline", "reason", value="x" * 401)),
    },
    "lock": {
        "soft-limit": ("cuda", put("isolation", 0, "strength", value="soft")),
        "unknown-unit": ("cuda", put("calibration", "peak_flops_per_second", value={"tensor": 1.0e12})),
        "zero-bandwidth": ("cuda", put("calibration", "bandwidth_bytes_per_second", value=0)),
        "upper-case-digest": ("cuda", put("tasks", 0, "digest", value="AB" * 32)),
    },
    "agents": {
        "no-agents": ("four", put("agents", value=[])),
        "a-key-itself": ("four", put("agents", 0, "key", value="placeholder")),
        "no-agent": ("four", cut("agents", 0, "agent")),
        "free-cache": ("four", cut("agents", 2, "prices", "cache_read")),
        "empty-budget": ("four", put("agents", 1, "token_budget", value=0)),
    },
    "manifest": {
        "no-agents": ("two-agents", put("agents", value=[])),
        "agent-leads-out": ("two-agents", put("agents", 0, "id", value="../x")),
        "unknown-target": ("two-agents", put("target", value="metal")),
        "short-seed-hash": ("two-agents", put("seed_sha256", value="ab" * 31)),
        "api-key": ("two-agents", put("agents", 0, "api_key", value="placeholder")),
        "infinite-time": ("two-agents", put("agent_wall_seconds", value=float("inf"))),
    },
    "published": {
        "missing-source": ("paper", cut("source")),
        "unknown-key": ("paper", put("comment", value="")),
    },
    "report": {
        "won-above-one": ("mixed", put("agents", 0, "built", "rate", value=1.5)),
        "no-agents": ("mixed", put("agents", value=[])),
        "unknown-end": ("mixed", put("agents", 0, "ends", 0, "end", value="gave_up")),
        "stretch-beyond-the-end": ("mixed", put("tasks", 0, "trials", 0, "work", "stretches", 0, "at", value=100)),
        "step-zero": ("mixed", put("tasks", 0, "trials", 0, "work", "steps", 0, "number", value=0)),
        "unknown-answer": ("mixed", put("verdict", "answer", value="winner")),
    },
    "samples": {
        "negative-time": ("win", put("series", 0, "baseline_us", 0, value=-1.0)),
        "null-time": ("win", put("series", 0, "candidate_us", 0, value=None)),
        "unknown-side": ("win", put("series", 0, "order", value="bcx")),
    },
    "seed": {
        "as-number": ("random", put("seed", value=12345)),
        "too-long": ("random", put("seed", value="5a" * 33)),
        "unknown-key": ("random", put("comment", value="lucky")),
    },
    "task": {
        "oracle-key": ("layer-norm", put("oracle", value="judge/oracle.py")),
        "unknown-dtype": ("layer-norm", put("tolerance", value={"fp64": {"relative": "1e-9"}})),
        "editable-leads-out": ("layer-norm", put("editable", value=["../judge/oracle.py"])),
        "two-seen": ("layer-norm", put("seen", value=[{"rows": 1}, {"rows": 2}])),
        "argument-without-role": ("layer-norm", cut("arguments", 0, "role")),
        "size-with-choices": ("layer-norm", put("axes", "rows", "choices", value=[1, 2])),
        "number-as-expression": ("layer-norm", put("work", "bytes", value=4096)),
        "too-difficult": ("layer-norm", put("difficulty", value=4)),
    },
    "trajectory": {
        "cost-without-source": ("finished", cut("cost", "source")),
        "fractional-tokens": ("finished", put("tokens", "input", value=1.5)),
        "unknown-step": ("finished", put("steps", 0, "kind", value="thought")),
        "too-deep": ("finished", put("detail", value=json.loads("[" * 70 + "]" * 70))),
    },
    "trial": {
        "number-of-void": ("void", put("score", value={"paper_score": 120.0, "bounded_reward": 0.0, "won": False})),
        "speedup-of-incorrect": ("wrong-unseen", put("unseen", "geomean_speedup", value=1.9)),
        "ladder-of-not-built": ("not-built", put("seen", value={"state": "not_judged", "reason": "not_asked_for"})),
        "judged-without-score": ("win", cut("score")),
        "unknown-status": ("win", put("status", value="passed")),
        "nan-seconds": ("win", put("agent_seconds", value=float("nan"))),
        "path-leads-out": ("win", put("candidate_files", value=["../kernel.hip"])),
        "absolute-path": ("win", put("candidate_files", value=["/etc/passwd"])),
        "hidden-file": ("win", put("candidate_files", value=["src/.git"])),
        "newline-in-digest": ("win", put("candidate_digest", value="0" * 64 + "\n")),
        "attempt-as-float": ("win", put("attempt", value=1.0)),
        "attempt-as-text": ("win", put("attempt", value="1")),
        "reward-of-one": ("win", put("score", "bounded_reward", value=1.0)),
        "version-two": ("win", put("schema_version", value=2)),
        "huge-integer": ("win", put("attempt", value=2**63)),
    },
}

BYTES: dict[str, tuple[str, str, bytes, bytes]] = {
    "repeated-key": ("trial", "win", b'"attempt": 1,', b'"attempt": 1,\n  "attempt": 2,'),
    "number-too-large": ("trial", "win", b'"judge_seconds": 48.25', b'"judge_seconds": 1e999'),
    "lone-surrogate": ("trajectory", "finished", b"I will", b"\\ud800"),
    "not-utf8": ("trajectory", "finished", b"I will", b"\xff\xfe"),
    "torn": ("event", "run-started", b"}", b""),
}
"""Faults below the level of JSON values: record, example, what is replaced, and by what."""


def valid(scratch: Path) -> dict[tuple[str, str], Document]:
    """Make the valid examples by record and label."""
    found: dict[tuple[str, str], Document] = {}

    def add(label: str, record: schemas.AnyRecord) -> None:
        found[record.schema_name, label] = json.loads(schemas.to_json(record))

    outcomes = {(TASK, "solution", number): (name,) for number, name in enumerate(builders.OUTCOMES, 1)}
    run = builders.build_run(
        scratch / "run", tasks=(TASK,), agents=("solution",), attempts=len(outcomes), outcomes=outcomes
    )
    for number, name in enumerate(builders.OUTCOMES, 1):
        folder = run.attempt(TASK, "solution", number).try_folder(1)
        label = name.replace("_", "-")
        add(label, run.read(tr.TrialRecord, folder.trial))
        evaluation = run.read(ev.EvaluationRecord, folder.evaluation)
        few = tuple(case for case in evaluation.cases if case.configuration.id in ("seen-0", "unseen-3"))
        add(label, evaluation.model_copy(update={"cases": few}))
        if name in ("win", "unmeasured"):
            samples = run.read(ev.SamplesRecord, folder.samples)
            add(label, samples.model_copy(update={"series": samples.series[:1]}))

    add("answered", _audit())
    denied = {"verdict": au.Verdict.REFUSED, "reason": au.RefusalReason.TOOL_TYPE, "status": 403}
    told = "tools[0].type: 'web_search_20250305' is not on the gateway's list"
    nothing = {"tokens": None, "bytes_down": 0, "complete": False, "upstream_request_id": None}
    add("refused", _audit().model_copy(update=denied | nothing | {"detail": told}))
    add("first", _attempt("judged"))
    add("after-void", _attempt("void", "judged"))
    add("correct", _check(builders.configurations()[0]))
    add("compile-error", _check(None))
    add("run-started", EventRecord(schema_version=1, time=builders.TIME, kind=rn.EventKind.RUN_STARTED))
    ended = {"task_id": TASK, "configuration_id": "solution", "attempt": 1, "try_number": 2, "detail": "judged"}
    add(
        "try-ended",
        EventRecord(schema_version=1, time=builders.TIME, kind=rn.EventKind.TRY_ENDED).model_copy(update=ended),
    )
    add("cpu", _images(TargetName.CPU))
    add("rocm", _images(TargetName.ROCM))

    def one(name: str, vgprs: int) -> ins.Compiled:
        return builders.compiled(builders.kernel(name, "gfx942", vgprs))

    add("compiled", _inspection(one("softmax_kernel", 16), one("softmax_rows", 62)))
    missing = ins.Unavailable(
        status="unavailable", reason="the baseline is a PyTorch module: there is no kernel source"
    )
    broken = "kernel.hip:3: error: unknown type name 'flaot'"
    failed = ins.Failed(status="failed", reason="clang exited with 1 for gfx942", log=broken)
    add("partly", _inspection(missing, failed))
    add("two-agents", builders.manifest())
    agents = (
        rn.AgentConfiguration(id="claude-high", agent="claude", model="a-model", effort="high"),
        rn.AgentConfiguration(id="mine", agent="command", command=("my-agent", "--task", ".")),
    )
    chosen = {"seed_source": rn.SeedSource.CHOSEN, "agents": agents, "contract_in_prompt": False}
    add("chosen-seed", builders.manifest(target=TargetName.ROCM).model_copy(update=chosen))
    add("cuda", builders.lock())
    cpu = {"calibration": None, "architecture": "x86_64", "device": "CPU", "driver": "none", "compiler": "g++ 13.2"}
    add("cpu", builders.lock(target=TargetName.CPU).model_copy(update=cpu))
    add("random", builders.seed())
    add("revealed", builders.seed().model_copy(update={"seed_source": rn.SeedSource.REVEALED}))
    add("finished", builders.trajectory("claude"))
    silent = {"end": tr.AgentEnd.TIMED_OUT, "exit_code": None, "complete": False, "tokens": None, "cost": None}
    add("timed-out", builders.trajectory("mine").model_copy(update=silent | {"steps": (), "detail": "1800 s are over"}))
    mixed = {(OTHER, "nop", 1): ("void",), (TASK, "solution", 1): ("wrong_unseen",)}
    half = builders.build_run(scratch / "mixed", outcomes=mixed, seal=False)
    builders.build_inspection(half.attempt(TASK, "solution", 1).try_folder(1))
    add("mixed", build(half.root))
    published = ROOT / "reports" / "published" / "agentkernelarena.json"
    found["published", "paper"] = json.loads(published.read_bytes())
    found["agents", "four"] = tomllib.loads((ROOT / "docs" / "agents.toml").read_text())
    found["task", "layer-norm"] = tomllib.loads((ROOT / "tasks/hip2hip/layer_norm/task.toml").read_text())
    found["task", "two-dtypes"] = _two_dtypes(found["task", "layer-norm"])
    return found


def main() -> None:
    """Write the schemas and all examples anew."""
    schemas.write(FOLDER.parent)
    shutil.rmtree(FOLDER, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        documents = valid(Path(scratch))
    for (name, label), document in documents.items():
        _write("valid", name, label, _text(document))
    for name, faults in FAULTS.items():
        for label, (base, spoil) in faults.items():
            document = copy.deepcopy(documents[name, base])
            spoil(document)
            _write("invalid", name, label, _text(document))
    for label, (name, base, old, new) in BYTES.items():
        _write("invalid", name, label, _text(documents[name, base]).replace(old, new, 1))


def _attempt(*statuses: str) -> AttemptRecord:
    tries = tuple(
        tr.TrySummary.model_validate({"try_number": number, "status": status})
        for number, status in enumerate(statuses, 1)
    )
    return AttemptRecord(
        schema_version=1,
        task_id=TASK,
        configuration_id="solution",
        attempt=1,
        counted_try=len(tries),
        tries=tries,
    )


def _audit() -> AuditRecord:
    return AuditRecord(
        schema_version=1,
        time=builders.TIME,
        service="anthropic",
        method="POST",
        path="/v1/messages",
        model="a-model",
        verdict=au.Verdict.ALLOWED,
        reason=None,
        detail="",
        status=200,
        bytes_up=102469,
        bytes_down=1591,
        tokens=tr.Tokens(input=100, output=20, cache_read=18000, cache_write=0, reasoning=0),
        milliseconds=4210,
        streamed=True,
        complete=True,
        tools=("Bash", "Edit", "Read"),
        dropped=(),
        upstream_request_id="req_0001",
    )


def _check(configuration: ev.Configuration | None) -> CheckRecord:
    cases: tuple[ev.CheckCase, ...] = ()
    if configuration is not None:
        cases = (
            ev.CheckCase(
                configuration=configuration,
                correct=True,
                reason=None,
                worst_error_ratio=0.4,
                baseline_us=100.0,
                candidate_us=71.5,
            ),
        )
    return CheckRecord(
        schema_version=1,
        compiled=bool(cases),
        log="" if cases else "kernel.hip:3: error: unknown type name 'flaot'",
        cases=cases,
        message="1 of 1 configurations is correct" if cases else "does not compile",
        calls_left=19,
    )


def _images(target: TargetName) -> ImageLockRecord:
    runtime = im.ImageRuntime(library="/opt/rocm-7.2.4/lib/libamdhip64.so.7", prefix="hip")
    digest = f"sha256:{builders.digest('image')}"
    facts = im.ImageFacts(
        role=im.ImageRole.WORKER,
        target=target,
        python=im.ImagePython(
            executable=None,
            bare_executable="/usr/bin/python3.12",
            standard_library="/usr/lib/python3.12",
            version="3.12.3",
            package_folders=(),
        ),
        compiler=None,
        profiler=None,
        runtime=runtime if target is TargetName.ROCM else None,
        python_packages=(),
        os_packages=(rn.Package(name="libc6:amd64", version="2.39-0ubuntu8"),),
        programs=(),
    )
    image = im.Image(
        tag=f"akarena/{target.value}-worker", id=digest, layers=(digest,), size_bytes=48215815, agent=None, facts=facts
    )
    return ImageLockRecord(
        schema_version=1,
        target=target,
        base=im.ImageBase(reference="base@" + digest, id=digest, repository_digests=("base@" + digest,)),
        dockerfile_sha256=builders.digest("Dockerfile"),
        scripts_sha256=builders.digest("scripts"),
        requirements={"judge.lock": builders.digest("judge.lock")},
        builder="docker 28.2.2, classic builder",
        source_date_epoch=1767225600,
        images=(image,),
    )


def _inspection(baseline: ins.Outcome, candidate: ins.Outcome) -> InspectionRecord:
    return InspectionRecord(
        schema_version=1,
        task_id=TASK,
        candidate_digest=builders.digest("candidate"),
        architectures=("gfx942",),
        baseline=baseline,
        candidate=candidate,
    )


def _two_dtypes(task: Document) -> Document:
    changed = copy.deepcopy(task)
    changed.pop("cpu")
    changed["targets"] = ["cuda", "rocm"]
    changed["axes"]["dtype"] = {"kind": "dtype", "choices": ["fp32", "fp16"]}
    changed["constraints"] = ["rows * cols <= 2 ** 26"]
    changed["tolerance"]["fp16"] = {"relative": "1e-3", "absolute": "1e-3"}
    for configuration in changed["seen"]:
        configuration["dtype"] = "fp16"
    return changed


def _text(document: Document) -> bytes:
    return f"{json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)}\n".encode()


def _write(kind: str, name: str, label: str, data: bytes) -> None:
    path = FOLDER / kind / f"{name}-{label}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


if __name__ == "__main__":
    main()
