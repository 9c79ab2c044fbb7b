"""Negative controls: wrong answers that a task's gate must refuse, generated from its oracle.

A tolerance is only worth something if what is plainly wrong lies outside it. Each control spoils the outputs of a right
answer in one way; it is held against the oracle as the judge holds a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import torch

from akarena.configurations import resolve_dtype, tensor_shape
from akarena.judge import compare, inputs
from akarena.judge.correctness import Oracle, Reference
from akarena.records.evaluation import FailReason, Round
from akarena.records.task import InputArgument, TaskRecord, Value

Tensors = dict[str, torch.Tensor]
FP8 = "float8_e4m3fn"
"""fp8 of the cpu target, where the controls run."""
_JUNK = 0x5A
"""Byte of memory that nobody has written."""
_LAST_BLOCK = 256
"""Elements of the block that is skipped."""
_LOWER = {torch.float32: torch.float16, torch.float16: torch.float8_e4m3fn, torch.bfloat16: torch.float8_e4m3fn}
"""The next lower dtype."""


class Outcome(StrEnum):
    """What became of a control."""

    CAUGHT = "caught"
    """The gate refused it, as it should."""
    EQUIVALENT = "equivalent"
    """It changed nothing: here it is a right answer (a row of one column transposed, a constant output averaged)."""
    PASSED = "passed"
    """The gate took a wrong answer: the tolerance is too wide or the inputs do not show the fault."""


@dataclass(frozen=True)
class Caught:
    """What the gate said about one control.

    Attributes:
        outcome: Over all outputs, see :func:`run_controls`.
        output: The output that it was decided on.
        reason: Why the gate refused it; None where it did not.
        worst_ratio: Largest error over tolerance; how far outside a caught one is.
    """

    outcome: Outcome
    output: str
    reason: FailReason | None
    worst_ratio: float


@dataclass(frozen=True)
class Case:
    """A right answer on one configuration, and all that a control may use to spoil it.

    Attributes:
        reference: Oracle and tolerances.
        values: The configuration.
        inputs: The inputs, in their storage dtypes.
        other: Other inputs of the same distribution.
        expected: The oracle's answer to ``inputs``: fp64, or the output's integer dtype.
        dtypes: dtype of each output.
    """

    reference: Reference
    values: Mapping[str, Value]
    inputs: Tensors
    other: Tensors
    expected: Tensors
    dtypes: Mapping[str, torch.dtype]

    def stored(self, outputs: Mapping[str, torch.Tensor]) -> Tensors:
        """Round outputs once to the dtypes that a kernel would store."""
        return {name: fit(outputs[name], dtype) for name, dtype in self.dtypes.items()}

    def gate(self, name: str, actual: torch.Tensor) -> tuple[FailReason | None, float]:
        """Hold an output against the oracle, as the judge does.

        The baseline's own error, from which the budget for precision comes, is that of the right answer rounded once.
        """
        output = next(output for output in self.reference.outputs if output.name == name)
        allowed = self.reference.allowed(output, self.values)
        found = compare.compare(actual, self.expected[name], allowed)
        if found.reason is not None:
            return found.reason, found.worst_ratio
        honest = compare.compare(fit(self.expected[name], actual.dtype), self.expected[name], allowed)
        fault = compare.precision_fault(found, honest, actual.dtype)
        return (FailReason.LOW_PRECISION if fault else None), found.worst_ratio


Control = Callable[[Case], Tensors]


def draw_inputs(task: TaskRecord, values: Mapping[str, Value], nonce: str, round_: Round = Round.ORDINARY) -> Tensors:
    """Draw all inputs of a configuration on the CPU, as the judge does; ``nonce`` decides the values."""
    known = inputs.dtypes(FP8)
    return {
        argument.name: inputs.draw(
            argument,
            tensor_shape(argument, values),
            known[resolve_dtype(argument.dtype, values)],
            round_,
            inputs.generator(torch.device("cpu"), nonce, argument.name, round_),
            values,
        )
        for argument in task.arguments
        if isinstance(argument, InputArgument)
    }


def make_case(task: TaskRecord, values: Mapping[str, Value], oracle: Oracle, nonce: str = "controls") -> Case:
    """Draw inputs and ask the oracle.

    Raises:
        OracleError: The oracle does not give every output, or gives NaN.
    """
    reference = Reference(task, oracle)
    given = draw_inputs(task, values, nonce)
    known = inputs.dtypes(FP8)
    return Case(
        reference=reference,
        values=values,
        inputs=given,
        other=draw_inputs(task, values, f"{nonce}/other"),
        expected=reference.expected(given, values),
        dtypes={output.name: known[resolve_dtype(output.dtype, values)] for output in reference.outputs},
    )


def run_controls(task: TaskRecord, values: Mapping[str, Value], oracle: Oracle) -> dict[str, Caught]:
    """Apply every control to a right answer in the ordinary round.

    Each output is spoiled alone, since the others may be right; only a computation in a lower precision, which spoils
    all outputs together, counts as caught where one output shows it.

    Args:
        task: The task.
        values: The configuration.
        oracle: The task's reference.

    Returns:
        By name of the control, what became of it.
    """
    case = make_case(task, values, oracle)
    right = case.stored(case.expected)
    result = {}
    for name, control in CONTROLS.items():
        wrong = control(case)
        found = [_judge(case, output, wrong[output], right[output]) for output in case.dtypes]
        order = [Outcome.PASSED, Outcome.CAUGHT, Outcome.EQUIVALENT]
        if name in _ALL_OUTPUTS_TOGETHER:
            order[:2] = Outcome.CAUGHT, Outcome.PASSED
        result[name] = min(found, key=lambda caught: order.index(caught.outcome))
    return result


def fit(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Convert to a dtype, once and to nearest; what is too large becomes the largest value."""
    if values.dtype == dtype:
        return values.clone()
    limits = torch.iinfo(dtype) if inputs.is_integer(dtype) else torch.finfo(dtype)
    wide = values.to(torch.float64)
    if inputs.is_integer(dtype):
        wide = wide.round()
    finite = torch.isfinite(wide)
    # fp64 cannot hold the largest int64: clamping to it would overflow.
    top = min(float(limits.max), 2.0**62)
    return torch.where(finite, wide.clamp(max(float(limits.min), -(2.0**62)), top), wide).to(dtype)


def _judge(case: Case, output: str, wrong: torch.Tensor, right: torch.Tensor) -> Caught:
    if _same(wrong, right):
        return Caught(Outcome.EQUIVALENT, output, None, 0.0)
    reason, ratio = case.gate(output, wrong)
    return Caught(Outcome.PASSED if reason is None else Outcome.CAUGHT, output, reason, ratio)


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether all values are equal; not bit by bit, since -0 is as right as 0."""
    return torch.equal(left.to(torch.float64).nan_to_num(1.25e300), right.to(torch.float64).nan_to_num(1.25e300))


def _each(case: Case, spoil: Callable[[torch.Tensor], torch.Tensor]) -> Tensors:
    return {name: spoil(output) for name, output in case.stored(case.expected).items()}


def _zeros(case: Case) -> Tensors:
    return _each(case, torch.zeros_like)


def _input_copied(case: Case) -> Tensors:
    """The first input of as many elements; else the first one, repeated or cut."""

    def copy(output: torch.Tensor) -> torch.Tensor:
        fitting = [tensor for tensor in case.inputs.values() if tensor.numel() == output.numel()]
        source = next(iter([*fitting, *case.inputs.values()]), torch.zeros(1)).flatten()
        repeats = -(-output.numel() // source.numel())
        return fit(source.repeat(repeats)[: output.numel()].reshape(output.shape), output.dtype)

    return _each(case, copy)


def _last_block_skipped(case: Case) -> Tensors:
    def skip(output: torch.Tensor) -> torch.Tensor:
        tail = output.reshape(-1)[-max(1, min(_LAST_BLOCK, output.numel() // 8)) :]
        tail.view(torch.uint8).fill_(_JUNK)
        return output

    return _each(case, skip)


def _one_element_wrong(case: Case) -> Tensors:
    """The largest element, where a relative tolerance is widest, moved by the rms of the output or more."""

    def move(output: torch.Tensor) -> torch.Tensor:
        wide = output.to(torch.float64).reshape(-1)
        index = int(wide.abs().argmax())
        rms = float(wide.square().mean().sqrt())
        step = max(round(rms), 8) if inputs.is_integer(output.dtype) else (rms or 1.0)
        # Towards zero and beyond: away from it the value might not fit into the dtype.
        wide[index] -= step if float(wide[index]) > 0 else -step
        return fit(wide.reshape(output.shape), output.dtype)

    return _each(case, move)


def _lower_precision(case: Case) -> Tensors:
    """Inputs and outputs held in the next lower dtype: fp32 in fp16, 16-bit in fp8."""
    rounded = {name: _through_lower(tensor, tensor.dtype) for name, tensor in case.inputs.items()}
    expected = case.reference.expected(rounded, case.values)
    return case.stored({name: _through_lower(expected[name], dtype) for name, dtype in case.dtypes.items()})


def _tf32_inputs(case: Case) -> Tensors:
    """fp32 inputs with ten bits of mantissa. Only fp32 outputs promise more than that, so others stay right."""
    rounded = {name: _to_tf32(x) if x.dtype is torch.float32 else x for name, x in case.inputs.items()}
    expected = case.reference.expected(rounded, case.values)
    single = [name for name, dtype in case.dtypes.items() if dtype is torch.float32]
    return case.stored({**case.expected, **{name: expected[name] for name in single}})


def _stale_output(case: Case) -> Tensors:
    """The right answer to other inputs."""
    return case.stored(case.reference.expected(case.other, case.values))


def _transposed(case: Case) -> Tensors:
    """The last two axes swapped; one axis alone reversed."""

    def swap(output: torch.Tensor) -> torch.Tensor:
        places = torch.arange(output.numel()).reshape(output.shape)
        moved = places.flip(0) if output.dim() == 1 else places.transpose(-1, -2)
        # Copied as bytes: not every operation knows fp8.
        raw = output.contiguous().reshape(-1).view(torch.uint8).reshape(-1, output.element_size())
        return raw[moved.reshape(-1)].reshape(-1).view(output.dtype).reshape(output.shape)

    return _each(case, swap)


def _constant_mean(case: Case) -> Tensors:
    """The mean of the output everywhere."""

    def average(output: torch.Tensor) -> torch.Tensor:
        return fit(output.to(torch.float64).mean().expand(output.shape), output.dtype)

    return _each(case, average)


def _through_lower(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Round to the dtype below ``dtype`` and back; integers and fp8 stay."""
    lower = _LOWER.get(dtype)
    return values if lower is None else fit(values, lower).to(values.dtype)


def _to_tf32(values: torch.Tensor) -> torch.Tensor:
    bits = values.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


CONTROLS: dict[str, Control] = {
    "zeros": _zeros,
    "input_copied": _input_copied,
    "last_block_skipped": _last_block_skipped,
    "one_element_wrong": _one_element_wrong,
    "lower_precision": _lower_precision,
    "tf32_inputs": _tf32_inputs,
    "stale_output": _stale_output,
    "transposed": _transposed,
    "constant_mean": _constant_mean,
}
"""Every control by name."""
_ALL_OUTPUTS_TOGETHER = frozenset({"lower_precision", "tf32_inputs"})
