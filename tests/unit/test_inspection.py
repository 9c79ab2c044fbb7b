"""Inspection keeps what an honest compiler says, and turns everything else into a reason instead of an exception."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from akarena import inspection, sandbox, schemas, tasks
from akarena.errors import InfrastructureError
from akarena.records.inspection import Compiled, Failed, InspectionRecord, Outcome, Unavailable
from akarena.sandbox.base import AssuranceLine, Command, End, Result
from akarena.targets.gfx import toolchain

ROOT = Path(__file__).resolve().parents[2]
DIGEST = "ab" * 32
KERNEL: dict[str, Any] = {
    "name": "softmax_kernel",
    "architecture": "gfx942",
    "vgpr_count": 16,
    "agpr_count": 0,
    "sgpr_count": 41,
    "vgpr_spill_count": 3,
    "sgpr_spill_count": 0,
    "lds_bytes": 1024,
    "scratch_bytes": 12,
    "max_flat_workgroup_size": 1024,
    "launch": None,
}
ANSWER: dict[str, Any] = {
    "status": "compiled",
    "reason": None,
    "toolchain": {"clang": "clang version 22.1.8"},
    "kernels": [KERNEL],
    "kernels_left_out": 0,
    "log": "",
}


def result(stdout: bytes = b"", end: End = End.EXITED, exit_code: int | None = 0, **changes: Any) -> Result:
    content: dict[str, Any] = {"signal": None, "stderr": b"", "dropped_bytes": 0, "wall_seconds": 1.0, "detail": ""}
    return Result(end=end, exit_code=exit_code, stdout=stdout, **(content | changes))


def answer(**changes: Any) -> Result:
    return result(json.dumps(ANSWER | changes).encode() + b"\n")


def kernel(**changes: Any) -> Result:
    return answer(kernels=[KERNEL | changes])


@dataclass
class Fake:
    """Answers every command with one result, and notes what it was given."""

    given: Result | Exception
    commands: list[Command] = field(default_factory=list)
    contents: list[dict[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return "fake"

    def assurance(self) -> tuple[AssuranceLine, ...]:
        return ()

    def run(self, command: Command, *, cancel: threading.Event | None = None) -> Result:
        self.commands.append(command)
        own = [mount for mount in command.mounts if mount.target in ("/source", "/arguments.json")]
        found = [(mount, path) for mount in own for path in (mount.source, *mount.source.glob("*"))]
        self.contents.append({path.name: path.read_text() for _, path in found if path.is_file()})
        if isinstance(self.given, Exception):
            raise self.given
        return self.given

    def judge(self, processes: Mapping[str, Command], *, main: str, cancel: threading.Event | None = None) -> Result:
        raise AssertionError("an inspection is no judgement")


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "_baselines", {})


@pytest.fixture
def softmax() -> tasks.Task:
    return tasks.load(ROOT / "tasks/hip2hip/softmax")


def inspect(fake: Fake, task: tasks.Task, candidate: Path | None = None) -> InspectionRecord:
    record = inspection.inspect(fake, task, candidate or task.solution_folder, DIGEST, ("gfx942",))
    assert schemas.parse(InspectionRecord, schemas.to_json(record), "again") == record
    return record


def test_an_honest_answer_is_kept(softmax: tasks.Task) -> None:
    record = inspect(Fake(answer()), softmax)
    assert (record.task_id, record.candidate_digest) == ("hip2hip/softmax", DIGEST)
    for side in (record.baseline, record.candidate):
        assert isinstance(side, Compiled)
        assert side.toolchain == ANSWER["toolchain"]
        (found,) = side.kernels
        expected = {**KERNEL, "autotune_configs": None}
        del expected["launch"]
        assert found.model_dump() == expected


def test_each_file_is_compiled_alone_and_without_a_way_out(softmax: tasks.Task) -> None:
    fake = Fake(answer())
    inspect(fake, softmax)
    baseline, candidate = fake.commands
    assert fake.contents[0] == {"kernel.hip": softmax.baseline.read_text()}
    assert fake.contents[1] == {"kernel.hip": (softmax.solution_folder / "kernel.hip").read_text()}
    assert baseline.argv == candidate.argv
    assert candidate.argv[-8:] == (
        *("--kind", "hip", "--source", "/source/kernel.hip", "--out", "/tmp/out", "--architecture", "gfx942"),
    )
    for command in (baseline, candidate):
        assert not any(mount.writable or mount.device for mount in command.mounts)
        assert not command.scratch
        assert command.environment["HOME"] == "/tmp"
        assert command.limits.wall_seconds == 180.0
        ours = [mount.target for mount in command.mounts if mount.source.is_relative_to(ROOT / "akarena")]
        assert ours == ["/akarena/gfx"]
        assert not any(ROOT.is_relative_to(mount.source) for mount in command.mounts)


def test_triton_is_called_with_the_first_seen_configuration() -> None:
    fake = Fake(kernel(launch={"autotune_configs": 7}))
    record = inspect(fake, tasks.load(ROOT / "tasks/triton2triton/rms_norm"))
    command, contents = fake.commands[-1], fake.contents[-1]
    assert command.argv[-2:] == ("--arguments", "/arguments.json")
    assert json.loads(contents["arguments.json"]) == {
        "entry": "rms_norm",
        "arguments": [
            {"name": "x", "kind": "tensor", "dtype": "fp16", "shape": [64, 1024]},
            {"name": "weight", "kind": "tensor", "dtype": "fp16", "shape": [1024]},
            {"name": "y", "kind": "tensor", "dtype": "fp16", "shape": [64, 1024]},
            {"name": "eps", "kind": "float", "value": 1e-6},
        ],
    }
    assert isinstance(record.candidate, Compiled)
    assert record.candidate.kernels[0].autotune_configs == 7


def test_a_pytorch_baseline_is_not_compiled() -> None:
    fake = Fake(answer())
    record = inspect(fake, tasks.load(ROOT / "tasks/pytorch2hip/cross_entropy"))
    assert isinstance(record.baseline, Unavailable)
    assert isinstance(record.candidate, Compiled)
    assert len(fake.commands) == 1


def test_only_a_baseline_that_compiled_is_remembered(softmax: tasks.Task) -> None:
    slow = Fake(result(end=End.TIMEOUT, exit_code=None))
    inspect(slow, softmax)
    inspect(slow, softmax)
    assert len(slow.commands) == 4
    good = Fake(answer())
    inspect(good, softmax)
    again = inspect(good, softmax)
    assert len(good.commands) == 3
    assert isinstance(again.baseline, Compiled)
    inspection.inspect(good, softmax, softmax.solution_folder, DIGEST, ("gfx942", "gfx950"))
    assert len(good.commands) == 5


def odd() -> Iterator[Any]:
    yield pytest.param(result(b"", End.TIMEOUT, None), "took longer than 180 s", id="timeout")
    yield pytest.param(result(b"", End.OUT_OF_MEMORY, None), "out_of_memory", id="memory")
    yield pytest.param(result(b"", End.SIGNALLED, None, signal=6), "ended with signal 6", id="signal")
    yield pytest.param(result(answer().stdout, exit_code=2), "exit code 2", id="exit code")
    yield pytest.param(result(answer().stdout, dropped_bytes=1), "longer than 65536 bytes", id="dropped")
    yield pytest.param(result(b" " * 65_536 + answer().stdout), "longer than 65536 bytes", id="long")
    yield pytest.param(result(b""), "not JSON", id="silent")
    yield pytest.param(result(answer().stdout * 2), "not JSON", id="two answers")
    yield pytest.param(result(b"\xff\xfe{}"), "not UTF-8", id="binary")
    yield pytest.param(result(b"[" * 60_000), "levels deep", id="deep")
    yield pytest.param(result(b"[]"), "the answer", id="list")
    yield pytest.param(result(b"null"), "the answer", id="null")
    yield pytest.param(result(b'{"status": "failed", ' + answer().stdout[1:]), "more than once", id="repeated key")
    yield pytest.param(answer(log="\ud800"), "lone surrogate", id="surrogate")
    yield pytest.param(answer(schema_version=1), "schema_version", id="extra key")
    yield pytest.param(answer(schema_version=2), "schema_version", id="other version")
    yield pytest.param(answer(status="passed"), "status", id="status")
    yield pytest.param(answer(toolchain={f"k{i}": "" for i in range(17)}), "toolchain", id="many versions")
    yield pytest.param(answer(toolchain={"a b": "1"}), "not usable", id="version name")
    yield pytest.param(answer(kernels=[]), "kernels for nothing", id="no kernel")
    yield pytest.param(answer(kernels=[{}]), "not usable", id="empty kernel")
    yield pytest.param(answer(kernels=[[]]), "kernels[0]", id="kernel is a list")
    yield pytest.param(answer(kernels=[{}] * 1025), "kernels", id="many kernels")
    yield pytest.param(answer(kernels=[], kernels_left_out=1), "not usable", id="all left out")
    yield pytest.param(answer(kernels_left_out=-1), "kernels_left_out", id="negative left out")
    yield pytest.param(kernel(architecture="gfx1100"), "kernels for gfx1100, not gfx942", id="other architecture")
    yield pytest.param(kernel(vgpr_count=-1), "not usable", id="negative")
    yield pytest.param(kernel(vgpr_count=2**32), "not usable", id="huge")
    yield pytest.param(kernel(vgpr_count=2**64), "too large", id="more than 64 bits")
    yield pytest.param(kernel(vgpr_count=True), "not usable", id="bool")
    yield pytest.param(kernel(vgpr_count=1.0), "not usable", id="float")
    yield pytest.param(kernel(score=1), "not usable", id="unknown count")
    yield pytest.param(kernel(name=["k"]), "not usable", id="name is a list")
    yield pytest.param(kernel(name=" \n"), "not usable", id="blank name")
    yield pytest.param(kernel(launch={"autotune_configs": "all"}), "not usable", id="text for a count")


@pytest.mark.parametrize(("given", "said"), list(odd()))
def test_an_odd_answer_is_a_failure_with_a_reason(softmax: tasks.Task, given: Result, said: str) -> None:
    side = inspect(Fake(given), softmax).candidate
    assert isinstance(side, Failed)
    assert said in side.reason
    assert side.reason.isprintable()


def test_what_a_hostile_answer_says_is_bounded_and_harmless(softmax: tasks.Task) -> None:
    escape = "\x1b]0;x\x07"
    side = inspect(Fake(kernel(name=f"{escape}{'k' * 5000}")), softmax).candidate
    assert isinstance(side, Compiled)
    assert side.kernels[0].name.startswith("?]0;x?kkk")
    assert len(side.kernels[0].name) == 400
    failure = inspect(
        Fake(answer(status="failed", reason=f"a\nb{escape}", log=f"first{escape}{'x' * 30_000}last")), softmax
    )
    assert isinstance(failure.candidate, Failed)
    assert failure.candidate.reason == "a b?]0;x?"
    log = failure.candidate.log
    assert log.startswith("first?]0;x?x")
    assert log.endswith("xlast")
    assert 7000 < len(log) <= 8000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (answer(status="unavailable", reason="clang-22 is not installed", kernels=[]), "clang-22 is not installed"),
        (result(end=End.FAILED_TO_START, exit_code=None, detail="no such file"), "no such file"),
        (result(end=End.STOPPED, exit_code=None), "stopped"),
        (InfrastructureError("user namespaces are off"), "user namespaces are off"),
    ],
)
def test_what_says_nothing_about_the_source_is_unavailable(
    softmax: tasks.Task, given: Result | Exception, said: str
) -> None:
    side = inspect(Fake(given), softmax).candidate
    assert isinstance(side, Unavailable)
    assert said in side.reason


@pytest.mark.parametrize("kind", ["missing", "link", "folder"])
def test_a_candidate_without_a_plain_file_is_not_compiled(softmax: tasks.Task, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "kernel.hip"
    if kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "folder":
        path.mkdir()
    fake = Fake(answer())
    side = inspect(fake, softmax, tmp_path).candidate
    assert isinstance(side, Failed)
    assert side.reason == "kernel.hip is missing, no regular file, or too large"
    assert len(fake.commands) == 1, "the baseline only"


def shown(side: Outcome) -> str:
    return f"{side.reason}\n{side.log}" if isinstance(side, Failed) else str(side)


def real(task_id: str, candidate: Path | None = None) -> InspectionRecord:
    try:
        toolchain.find()
    except toolchain.Unavailable as error:
        pytest.skip(str(error))
    task = tasks.load(ROOT / "tasks" / task_id)
    record = inspection.inspect(sandbox.get("bubblewrap"), task, candidate or task.solution_folder, DIGEST)
    schemas.to_json(record)
    return record


@pytest.mark.clang
@pytest.mark.slow
@pytest.mark.parametrize("task_id", ["hip2hip/softmax", "triton2triton/rms_norm"])
def test_solutions_are_compiled_for_both_architectures(task_id: str) -> None:
    record = real(task_id)
    for side in (record.baseline, record.candidate):
        assert isinstance(side, Compiled), shown(side)
        assert {kernel.architecture for kernel in side.kernels} == {"gfx942", "gfx950"}
        for found in side.kernels:
            assert 0 < found.vgpr_count <= 512
            assert 0 < found.sgpr_count <= 112
            assert found.max_flat_workgroup_size >= 64
            assert (found.autotune_configs is None) == task_id.startswith("hip2hip")
    assert isinstance(record.candidate, Compiled)
    assert ("clang" in record.candidate.toolchain) == task_id.startswith("hip2hip")


@pytest.mark.clang
@pytest.mark.slow
def test_a_hip_candidate_with_an_error_fails_and_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "kernel.hip").write_text("#include <hip/hip_runtime.h>\n__global__ void k(flaot* x) {}\n")
    record = real("hip2hip/softmax", tmp_path)
    assert isinstance(record.baseline, Compiled), shown(record.baseline)
    assert isinstance(record.candidate, Failed)
    assert "unknown type name 'flaot'" in record.candidate.log


@pytest.mark.clang
@pytest.mark.slow
def test_a_triton_candidate_reaches_neither_the_network_nor_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(
        "import pathlib, socket\n"
        f"assert not pathlib.Path({str(ROOT / 'tasks')!r}).exists(), 'sees the tasks'\n"
        "try:\n"
        "    socket.create_connection(('192.0.2.1', 80), 5)\n"
        "except OSError as error:\n"
        "    raise RuntimeError(f'network: {error.strerror}')\n"
    )
    side = real("triton2triton/rms_norm", tmp_path).candidate
    assert isinstance(side, Failed)
    assert "RuntimeError for gfx942: network: Network is unreachable" in side.reason
