"""Compile baseline and candidate for AMD GPUs that are not there, and record what they use. Nothing is scored by it.

The compiler runs in a sandbox, once for each file. Whatever it answers is treated as written by the candidate.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from akarena import configurations, files, paths, schemas
from akarena.errors import InfrastructureError, UserError
from akarena.records.base import NonNegativeInt, Part
from akarena.records.inspection import Compiled, Failed, InspectionRecord, KernelResources, Outcome, Unavailable
from akarena.records.task import Category, InputArgument, OutputArgument, SizeArgument, TargetName
from akarena.sandbox.base import Command, End, Limits, Mount, Result, Role, Sandbox
from akarena.targets import host
from akarena.targets.base import Python
from akarena.tasks import Task
from akarena.temporary import OwnedFolder

ARCHITECTURES = ("gfx942", "gfx950")
_ANSWER_BYTES = 64 << 10
"""Longest answer that ``python -m gfx`` gives."""
_LIMITS = Limits(
    wall_seconds=180.0,
    memory_bytes=8 << 30,
    processes=256,
    output_bytes=2 * _ANSWER_BYTES,
    file_bytes=1 << 30,
    tmp_bytes=2 << 30,
)
_LINE = 400
_LOG = 8000
_SOURCE = "/source"
_ARGUMENTS = "/arguments.json"

_baselines: dict[tuple[str, tuple[str, ...]], Outcome] = {}
"""Baselines that compiled in this process, by task digest and architectures; they never change within a run."""


@dataclass(frozen=True)
class _Where:
    """The sandbox, and the interpreter in its image; without one this machine's programs are mounted."""

    sandbox: Sandbox
    python: Python | None


class _Answer(Part):
    """What ``python -m gfx`` prints."""

    status: Literal["compiled", "failed", "unavailable"]
    reason: str | None
    toolchain: dict[str, str] = Field(max_length=16)
    kernels: tuple[dict[str, Any], ...] = Field(max_length=1024)
    kernels_left_out: NonNegativeInt
    log: str


def inspect(
    sandbox: Sandbox,
    task: Task,
    candidate: Path,
    candidate_digest: str,
    architectures: Sequence[str] = ARCHITECTURES,
    *,
    python: Python | None = None,
    cancel: threading.Event | None = None,
) -> InspectionRecord:
    """Compile a candidate and its baseline, each in a sandbox of its own.

    Never raises for what a candidate does, for a missing tool chain or for a sandbox that cannot start: each is an
    outcome, with its reason.

    Args:
        sandbox: Where the compiler runs, for at most three minutes a file.
        task: The pristine task.
        candidate: Folder with the candidate's files.
        candidate_digest: Their digest, for the record.
        architectures: What to compile for.
        python: The interpreter in the sandbox's image, where the compiler has to be too; None for this machine's.
        cancel: Stops the compilation when set; what was stopped is unavailable.
    """
    chosen = tuple(dict.fromkeys(architectures))
    where = _Where(sandbox, python)
    editable = task.record.editable[0]
    return InspectionRecord(
        schema_version=1,
        task_id=task.id,
        candidate_digest=candidate_digest,
        architectures=chosen,
        baseline=_baseline(where, task, chosen, cancel),
        candidate=_inspect(where, task, candidate, editable, chosen, cancel),
    )


def _baseline(where: _Where, task: Task, architectures: tuple[str, ...], cancel: threading.Event | None) -> Outcome:
    if task.record.category is Category.PYTORCH_TO_HIP:
        return Unavailable(status="unavailable", reason="the baseline is a PyTorch module: there is no kernel source")
    key = (task.digest, architectures)
    outcome = _baselines.get(key)
    if outcome is None:
        outcome = _inspect(where, task, task.baseline.parent, task.baseline.name, architectures, cancel)
        # A failure may be a matter of the machine at that moment, so only a success is kept.
        if isinstance(outcome, Compiled):
            _baselines[key] = outcome
    return outcome


def _inspect(
    where: _Where,
    task: Task,
    folder: Path,
    name: str,
    architectures: tuple[str, ...],
    cancel: threading.Event | None,
) -> Outcome:
    try:
        source = files.read_bytes(folder, folder / name)
    except UserError:
        return _failed(f"{name} is missing, no regular file, or too large", "")
    try:
        with OwnedFolder("inspect") as scratch:
            command = _command(where, task, Path(scratch), Path(name).name, source, architectures)
            result = where.sandbox.run(command, cancel=cancel)
    except (InfrastructureError, OSError) as error:
        return Unavailable(status="unavailable", reason=_line(f"the sandbox cannot be used: {error}"))
    return _outcome(result, architectures)


def _command(
    where: _Where, task: Task, scratch: Path, name: str, source: bytes, architectures: tuple[str, ...]
) -> Command:
    triton = task.record.category is Category.TRITON_TO_TRITON
    staged = scratch / "source"
    staged.mkdir()
    (staged / name).write_bytes(source)
    flags = ["--kind", "triton" if triton else "hip", "--source", f"{_SOURCE}/{name}", "--out", "/tmp/out"]
    for architecture in architectures:
        flags += ["--architecture", architecture]
    mounts = [
        *(() if where.python else (*host.system_mounts(), *host.python_mounts())),
        Mount(paths.package() / "targets" / "gfx", f"{host.CODE}/gfx"),
        Mount(staged, _SOURCE),
    ]
    if triton:
        (scratch / "arguments.json").write_text(json.dumps(_call_arguments(task)), encoding="utf-8")
        mounts.append(Mount(scratch / "arguments.json", _ARGUMENTS))
        flags += ["--arguments", _ARGUMENTS]
    # Python finds its own installation and its virtual environment by itself, and the other folders of packages not.
    own = [str(root) for root in host.python_roots() if str(root) not in (sys.prefix, sys.base_prefix)]
    packages = () if where.python else own
    environment = {
        "HOME": "/tmp",
        "LC_ALL": "C.UTF-8",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join((host.CODE, *packages)),
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return Command(
        argv=(where.python.executable if where.python else sys.executable, "-P", "-m", "gfx", *flags),
        environment=environment,
        mounts=tuple(mounts),
        limits=_LIMITS,
        role=Role.BUILD,
    )


def _call_arguments(task: Task) -> dict[str, Any]:
    """Describe a call of a task's entry on its first seen configuration, as ``targets/gfx/triton_arguments`` reads it.

    The configuration is the one that every GPU gets, not the smaller one of the cpu target.
    """
    values = configurations.seen(task.record, TargetName.ROCM)[0].values
    arguments: list[dict[str, Any]] = []
    for argument in task.record.arguments:
        if isinstance(argument, InputArgument | OutputArgument):
            dtype = configurations.resolve_dtype(argument.dtype, values)
            shape = configurations.tensor_shape(argument, values)
            arguments.append({"name": argument.name, "kind": "tensor", "dtype": dtype, "shape": shape})
        elif isinstance(argument, SizeArgument):
            arguments.append({"name": argument.name, "kind": "int", "value": int(values[argument.name])})
        else:
            arguments.append({"name": argument.name, "kind": "float", "value": float(values[argument.name])})
    return {"entry": task.record.entry, "arguments": arguments}


def _outcome(result: Result, architectures: tuple[str, ...]) -> Outcome:
    """Turn the end of a compilation into an outcome; an answer that is odd in any way is a failure that says how."""
    log = result.stderr.decode(errors="replace")
    match result.end:
        case End.EXITED:
            pass
        case End.STOPPED:
            return Unavailable(status="unavailable", reason="the compilation was stopped")
        case End.FAILED_TO_START:
            return Unavailable(status="unavailable", reason=_line(f"the compiler cannot be started: {result.detail}"))
        case End.TIMEOUT:
            return _failed(f"the compilation took longer than {_LIMITS.wall_seconds:g} s", log)
        case _:
            how = f"signal {result.signal}" if result.end is End.SIGNALLED else result.end.value
            return _failed(f"the compilation ended with {how}{f': {result.detail}' if result.detail else ''}", log)
    if result.exit_code != 0:
        return _failed(f"the compilation ended with exit code {result.exit_code}", log)
    if result.dropped_bytes or len(result.stdout) > _ANSWER_BYTES:
        return _failed(f"the answer is longer than {_ANSWER_BYTES} bytes", log)
    try:
        return _read(schemas.parse(_Answer, result.stdout, "the answer"), architectures)
    except UserError as error:
        return _failed(str(error), log)
    except (ValidationError, ValueError) as error:
        return _failed(f"the answer is not usable: {error}", log)


def _read(answer: _Answer, architectures: tuple[str, ...]) -> Outcome:
    if answer.status == "unavailable":
        return Unavailable(status="unavailable", reason=_line(answer.reason or "no reason was given"))
    if answer.status == "failed":
        return _failed(answer.reason or "no reason was given", answer.log)
    kernels = tuple(_kernel(kernel) for kernel in answer.kernels)
    found = {kernel.architecture for kernel in kernels}
    if found - set(architectures) or (found != set(architectures) and not answer.kernels_left_out):
        raise ValueError(f"it has kernels for {', '.join(sorted(found)) or 'nothing'}, not {', '.join(architectures)}")
    toolchain = {name: _line(version) for name, version in answer.toolchain.items()}
    return Compiled(status="compiled", toolchain=toolchain, kernels=kernels, kernels_left_out=answer.kernels_left_out)


def _kernel(content: dict[str, Any]) -> KernelResources:
    content = dict(content)
    launch = content.pop("launch", None)
    configs = launch.get("autotune_configs") if isinstance(launch, dict) else None
    name = content.get("name")
    shown = _line(name) if isinstance(name, str) else name
    return KernelResources.model_validate({**content, "name": shown, "autotune_configs": configs})


def _failed(reason: str, log: str) -> Failed:
    gap = "\n[...]\n"
    if len(log) > _LOG:
        half = (_LOG - len(gap)) // 2
        log = log[:half] + gap + log[-half:]
    return Failed(status="failed", reason=_line(reason), log=_printable(log))


def _line(text: str) -> str:
    """Return text as one line of bounded length, with nothing in it that could command a terminal."""
    line = _printable(" ".join(text[: 4 * _LINE].split()))
    return line if len(line) <= _LINE else f"{line[: _LINE - 3]}..."


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)
