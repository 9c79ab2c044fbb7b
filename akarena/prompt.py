"""The prompt: one text for all agents of a run, rendered from the public part of a task."""

from __future__ import annotations

import hashlib
from pathlib import Path

import jinja2

from akarena import configurations
from akarena.records.task import (
    InputArgument,
    OutputArgument,
    ScalarArgument,
    TargetName,
    TaskRecord,
)

_TEMPLATE = Path(__file__).resolve().parent / "prompts" / "task.md.j2"
_C_TYPES = {
    "fp32": "float",
    "fp16": "__half",
    "bf16": "__hip_bfloat16",
    "fp8": "unsigned char",
    "int64": "long long",
    "int32": "int",
    "int8": "signed char",
    "uint8": "unsigned char",
}
_WAVES = {TargetName.CUDA: 32, TargetName.ROCM: 64, TargetName.CPU: 64}
CHECK_COMMAND = "python3 /akarena/check"
WORKSPACE = "/workspace"


def digest() -> str:
    """Return the digest of the template."""
    return hashlib.sha256(_TEMPLATE.read_bytes()).hexdigest()


def render(
    task: TaskRecord,
    target: TargetName,
    architecture: str,
    *,
    contract: bool,
    check_calls: int,
    seconds: float,
    iterations: int | None = None,
) -> str:
    """Render the prompt of a task.

    Args:
        task: The task.
        target: Where it will be judged.
        architecture: For example gfx942.
        contract: Whether to state which sizes are legal.
        check_calls: Calls of ``check`` that the agent has.
        seconds: Its time.
        iterations: Rounds of improvement to speak of; None for no word about it.
    """
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=False, autoescape=False
    )
    template = environment.from_string(_TEMPLATE.read_text("utf-8"))
    space = configurations.space(task, target)
    return template.render(
        task=task,
        target=target.value,
        architecture=architecture,
        wave=_WAVES[target],
        signature=signature(task),
        seen=configurations.seen(task, target),
        axes={name: space.sizes.get(name, axis) for name, axis in task.axes.items()},
        contract=contract,
        check_calls=check_calls,
        check_command=CHECK_COMMAND,
        minutes=round(seconds / 60),
        iterations=iterations,
        workspace=WORKSPACE,
    )


def signature(task: TaskRecord) -> str:
    """Return the C parameter list of a HIP entry."""
    parameters = []
    for argument in task.arguments:
        if isinstance(argument, OutputArgument):
            parameters.append(f"{_C_TYPES.get(argument.dtype, argument.dtype)}* {argument.name}")
        elif isinstance(argument, InputArgument):
            parameters.append(f"const {_C_TYPES.get(argument.dtype, argument.dtype)}* {argument.name}")
        else:
            parameters.append(f"{'float' if isinstance(argument, ScalarArgument) else 'int'} {argument.name}")
    return ", ".join([*parameters, "hipStream_t stream"])
