"""Rounds of fresh values on one configuration, against the oracle."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from akarena.configurations import resolve_dtype
from akarena.judge import compare
from akarena.judge.compare import Allowed, Comparison
from akarena.judge.inputs import rounds
from akarena.judge.side import Answer, Side
from akarena.judge.workers import WorkerFaultError
from akarena.records.evaluation import CaseCorrect, CaseIncorrect, FailReason, OutputError, Round
from akarena.records.task import DType, OutputArgument, TaskRecord, Value

Oracle = Callable[..., dict[str, torch.Tensor]]
Errors = dict[tuple[Round, str], Comparison]
_ELEMENTS_AT_ONCE = 1 << 25
"""Elements of one output that are compared together; in fp64 and with what is derived, some gigabytes."""


class OracleError(Exception):
    """The oracle itself fails or gives something that the task did not declare."""


def load_oracle(path: Path) -> Oracle:
    """Import the function ``oracle`` of a task."""
    spec = importlib.util.spec_from_file_location("oracle", path)
    if spec is None or spec.loader is None:
        raise OracleError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Oracle = module.oracle
    return function


class Reference:
    """The oracle and the tolerances of a task.

    Args:
        task: The task.
        oracle: Its reference.
    """

    def __init__(self, task: TaskRecord, oracle: Oracle) -> None:
        self.task = task
        self._oracle = oracle
        self._seconds: dict[str, float] = {}

    def seconds_on(self, values: Mapping[str, Value]) -> float:
        """Return how long the last comparison in this configuration took."""
        return self._seconds.get(str(sorted(values.items())), 0.0)

    def allowed(self, output: OutputArgument, values: Mapping[str, Value]) -> Allowed:
        """Return the tolerance of an output in a configuration."""
        dtype = DType(resolve_dtype(output.dtype, values))
        return compare.resolve(self.task.tolerance[dtype], values)

    def expected(self, given: Mapping[str, torch.Tensor], values: Mapping[str, Value]) -> dict[str, torch.Tensor]:
        """Ask the oracle: it gets every input and the value of every axis by name.

        Raises:
            OracleError: An expected value is missing or NaN where the inputs are finite.
        """
        with torch.no_grad():
            expected = self._oracle(**given, **values)
        for output in self.outputs:
            if output.name not in expected:
                raise OracleError(f"the oracle gives no {output.name}")
            if expected[output.name].is_floating_point() and bool(torch.isnan(expected[output.name]).any()):
                raise OracleError(f"the oracle gives NaN in {output.name}")
        return expected

    @property
    def outputs(self) -> list[OutputArgument]:
        """The outputs of the task."""
        return [argument for argument in self.task.arguments if isinstance(argument, OutputArgument)]

    def compare(self, answer: Answer, values: Mapping[str, Value]) -> dict[str, Comparison]:
        """Compare every output of one call, then overwrite the expected values."""
        started = time.perf_counter()
        (result,) = self._compare([answer], values)
        self._seconds[str(sorted(values.items()))] = time.perf_counter() - started
        return result

    def compare_all(self, answers: Sequence[Answer], values: Mapping[str, Value]) -> Iterator[dict[str, Comparison]]:
        """Compare every output of many calls, as many at a time as memory allows."""
        if not answers:
            return
        at_once = max(1, _ELEMENTS_AT_ONCE // max(output.numel() for output in answers[0].outputs.values()))
        for first in range(0, len(answers), at_once):
            yield from self._compare(answers[first : first + at_once], values)

    def _compare(self, answers: Sequence[Answer], values: Mapping[str, Value]) -> list[dict[str, Comparison]]:
        expected = [self.expected(answer.inputs, values) for answer in answers]
        results: list[dict[str, Comparison]] = [{} for _ in answers]
        for output in self.outputs:
            actual = torch.stack([answer.outputs[output.name] for answer in answers])
            wanted = torch.stack([tensors[output.name] for tensors in expected])
            found = compare.compare_calls(actual, wanted, self.allowed(output, values))
            wanted.zero_()
            for result, comparison in zip(results, found, strict=True):
                result[output.name] = comparison
        for tensors in expected:
            for tensor in tensors.values():
                tensor.zero_()
        return results


@dataclass(frozen=True)
class Checked:
    """What the rounds of one side found."""

    errors: Errors
    reason: FailReason | None = None
    round: Round | None = None
    evidence: str = ""


def check(side: Side, reference: Reference, values: Mapping[str, Value], baseline: Errors | None) -> Checked:
    """Run all rounds on one side.

    Args:
        side: Baseline or candidate, with a running worker.
        reference: Oracle and tolerances.
        values: The configuration.
        baseline: The baseline's errors, against which precision is held; None for the baseline itself.
    """
    errors: Errors = {}
    for index, round_ in enumerate(rounds(reference.task)):
        try:
            answer = side.answer(values, round_, first=index == 0)
        except WorkerFaultError as fault:
            return Checked(errors, fault.reason, round_, fault.evidence)
        for name, comparison in reference.compare(answer, values).items():
            errors[round_, name] = comparison
            if comparison.reason is not None:
                return Checked(errors, comparison.reason, round_, f"{name} {comparison.evidence}")
            if baseline is not None:
                dtype = answer.outputs[name].dtype
                fault_text = compare.precision_fault(comparison, baseline[round_, name], dtype)
                if fault_text is not None:
                    return Checked(errors, FailReason.LOW_PRECISION, round_, f"{name}: {fault_text}")
        answer.scrub()
    return Checked(errors)


def verdict(checked: Checked, baseline: Errors) -> CaseCorrect | CaseIncorrect:
    """Turn what was found into a record."""
    errors = tuple(
        OutputError(
            round=round_,
            output=name,
            worst_ratio=_rounded(found.worst_ratio),
            baseline_worst_ratio=_rounded(baseline[round_, name].worst_ratio),
            rms_error=_rounded(found.rms_error),
            baseline_rms_error=_rounded(baseline[round_, name].rms_error),
        )
        for (round_, name), found in checked.errors.items()
        if (round_, name) in baseline
    )
    if checked.reason is None:
        return CaseCorrect(verdict="correct", errors=errors)
    return CaseIncorrect(
        verdict="incorrect",
        reason=checked.reason,
        round=checked.round,
        evidence=checked.evidence[:4000],
        errors=errors,
    )


def _rounded(value: float) -> float:
    """Four significant digits: an error is not known better."""
    return float(f"{value:.4g}")
