"""Wrappers in Python, for Triton: the honest function is renamed, and one below it calls it and spoils the result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from akarena.judge import inputs
from akarena.judge.controls import FP8
from akarena.records.evaluation import Configuration
from akarena.records.task import InputArgument, OutputArgument, TaskRecord
from tests.mutation import wrappers
from tests.mutation.mutant import Mutant, Operator
from tests.mutation.wrappers import Call, Spoil

_PLACES = {"first": "0", "middle": "flat.numel() // 2", "last": "flat.numel() - 1"}


def mutants(task: TaskRecord, text: str, cases: Sequence[Configuration]) -> Iterator[Mutant]:
    """Wrap a Triton source in every way.

    Args:
        task: The task.
        text: A correct kernel.
        cases: Configurations, for the tolerances.

    Raises:
        ValueError: The source has no entry of the task's name.
    """
    renamed, count = re.subn(rf"^def {task.entry}\(", f"def honest_{task.entry}(", text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"there is no def {task.entry}(")
    names = [argument.name for argument in task.arguments]
    known = inputs.dtypes(FP8)
    moved = {
        str(known[dtype]): (off.relative, off.absolute, off.units) for dtype, off in wrappers.off(task, cases).items()
    }
    for what in wrappers.every(task):
        if isinstance(what, Spoil):
            flat = f"flat = {what.output}.view(-1)"
            before, after = _spoil(what, len(_output(task, what.output).shape))
            lines = [flat, *before, f"honest_{task.entry}({', '.join(names)})", *after]
        else:
            lines = [f"honest_{task.entry}({', '.join(_argument(task, what, name) for name in names)})"]
        body = "\n    ".join(lines)
        yield wrappers.mutant(
            what, f"{renamed}\n\n_MOVED = {moved!r}\n\n\ndef {task.entry}({', '.join(names)}):\n    {body}\n"
        )


def _output(task: TaskRecord, name: str) -> OutputArgument:
    return next(output for output in wrappers.outputs(task) if output.name == name)


def _argument(task: TaskRecord, what: Call, name: str) -> str:
    if what.operator is Operator.SIZE_LESS:
        argument = next(one for one in task.arguments if one.name == name)
        if isinstance(argument, InputArgument | OutputArgument) and argument.shape[0] == what.first:
            return f"({name}[:-1] if len({name}) > 1 else {name})"
        return name
    if name == what.first:
        return f"{name} * 1.01" if what.operator is Operator.SCALAR_OFF else what.second
    return what.first if name == what.second else name


def _spoil(what: Spoil, dimensions: int) -> tuple[list[str], list[str]]:
    """Return what is done before and after the honest call."""
    place = _PLACES.get(what.place, "0")
    match what.operator:
        case Operator.ONE_ELEMENT:
            bound = "absolute * value.square().mean().sqrt() + relative * value[place].abs()"
            return [], [
                "relative, absolute, units = _MOVED[str(flat.dtype)]",
                f"value, place = flat.float(), {place}",
                f"by = {bound} if flat.is_floating_point() else units",
                "new = value[place] - by if value[place] > 0 else value[place] + by",
                "flat[place] = new.to(flat.dtype)",
            ]
        case Operator.SCALED:
            return [], [
                "relative, absolute, units = _MOVED[str(flat.dtype)]",
                "flat.copy_((flat.float() * (1 + relative + absolute)).to(flat.dtype))",
            ]
        case Operator.SIGN:
            return [], ["flat.copy_((-flat.float()).to(flat.dtype))"]
        case Operator.NEIGHBOURS_SWAPPED:
            middle = "flat.numel() // 2"
            return [], [
                "if flat.numel() > 1:",
                f"    flat[{middle} - 1 : {middle} + 1] = flat[{middle} - 1 : {middle} + 1].flip(0)",
            ]
        case Operator.NOT_A_NUMBER:
            return [], [f"flat[{place}] = float('nan')"]
        case _:
            tail = f"min({what.output}.shape[-1], {wrappers.TAIL})" if dimensions > 1 else "1"
            return [f"kept = flat[-{tail} :].clone()"], [f"flat[-{tail} :] = kept"]
