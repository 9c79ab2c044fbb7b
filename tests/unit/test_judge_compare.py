from __future__ import annotations

import math

import pytest
import torch

from akarena.judge import compare
from akarena.judge.compare import Allowed
from akarena.records.evaluation import FailReason

STRICT = Allowed(relative=0.0, absolute=0.0, units=0, units_share=0.0)


def allowed(relative: float = 0.0, absolute: float = 0.0, units: int = 0, share: float = 0.0) -> Allowed:
    return Allowed(relative, absolute, units, share)


def test_one_unit_in_the_last_place_is_always_admitted() -> None:
    expected = torch.linspace(16.0, 31.9, 100, dtype=torch.float64)
    actual = expected.to(torch.bfloat16)
    assert compare.compare(actual, expected, STRICT).reason is None
    two_units = (actual.to(torch.float64) + 0.25).to(torch.bfloat16)
    assert compare.compare(two_units, expected, STRICT).reason is FailReason.WRONG_VALUES


def test_zeros_against_a_tiny_reference_fail() -> None:
    expected = torch.full((64,), 4e-6, dtype=torch.float64)
    assert compare.compare(torch.zeros(64), expected, allowed(absolute=1e-2)).reason is FailReason.WRONG_VALUES


def test_one_bad_element_in_a_million_fails() -> None:
    expected = torch.randn(1_000_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    actual = expected.to(torch.float32)
    actual[777_777] += 1.0
    found = compare.compare(actual, expected, allowed(1e-5, 1e-5))
    assert found.reason is FailReason.WRONG_VALUES
    assert "[777777]" in found.evidence


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_non_finite_output_against_a_finite_reference_fails(value: float) -> None:
    actual = torch.tensor([1.0, value])
    found = compare.compare(actual, torch.tensor([1.0, 1.0], dtype=torch.float64), allowed(10.0, 10.0))
    assert found.reason is FailReason.NON_FINITE_MISMATCH
    assert math.isfinite(found.worst_ratio)


def test_infinities_are_compared_by_sign_and_place() -> None:
    expected = torch.tensor([math.inf, -math.inf, 1.0], dtype=torch.float64)
    assert compare.compare(expected.to(torch.float32), expected, STRICT).reason is None
    swapped = torch.tensor([-math.inf, math.inf, 1.0])
    assert compare.compare(swapped, expected, STRICT).reason is FailReason.NON_FINITE_MISMATCH


def test_a_reference_that_overflows_the_dtype_is_infinite_there() -> None:
    expected = torch.tensor([1e6, 1.0], dtype=torch.float64)
    assert compare.compare(expected.to(torch.float16), expected, STRICT).reason is None


def test_shapes_must_be_equal_and_not_empty() -> None:
    with pytest.raises(ValueError, match="oracle gives"):
        compare.compare(torch.zeros(1), torch.zeros(4, dtype=torch.float64), STRICT)
    with pytest.raises(ValueError, match="oracle gives"):
        compare.compare(torch.zeros(0), torch.zeros(0, dtype=torch.float64), STRICT)


def test_integers_differ_by_units_and_by_share() -> None:
    expected = torch.arange(-50, 50, dtype=torch.int8)
    actual = expected.clone()
    assert compare.compare(actual, expected, STRICT).reason is None
    actual[3] += 1
    assert compare.compare(actual, expected, STRICT).reason is FailReason.WRONG_VALUES
    assert compare.compare(actual, expected, allowed(units=1, share=0.02)).reason is None
    actual[5:9] += 1
    assert compare.compare(actual, expected, allowed(units=1, share=0.02)).reason is FailReason.WRONG_VALUES
    far = expected.clone()
    far[3] += 2
    assert compare.compare(far, expected, allowed(units=1, share=1.0)).reason is FailReason.WRONG_VALUES


def test_half_precision_work_in_an_fp32_task_is_seen() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(64, 256, dtype=torch.float64, generator=generator)
    honest = torch.softmax(x.float(), 1)
    half = torch.softmax(x.half().float(), 1)
    reference = torch.softmax(x, 1)
    baseline = compare.compare(honest, reference, allowed(1e-2, 1e-2))
    cheap = compare.compare(half, reference, allowed(1e-2, 1e-2))
    assert baseline.reason is None
    assert cheap.reason is None
    assert compare.precision_fault(baseline.rms_error, baseline.rms_error, torch.float32) is None
    assert compare.precision_fault(cheap.rms_error, baseline.rms_error, torch.float32) is not None
