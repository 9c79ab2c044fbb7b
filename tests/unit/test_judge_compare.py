from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from akarena.judge import compare
from akarena.judge.compare import Allowed
from akarena.records.evaluation import FailReason
from akarena.records.task import Tolerance

STRICT = Allowed(relative=0.0, absolute=0.0, units=0, units_share=0.0)
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e4m3fnuz]
NARROW = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float8_e4m3fn: torch.int8}
"""Formats small enough to try every value, with integers of the same size."""


def allowed(relative: float = 0.0, absolute: float = 0.0, units: int = 0, share: float = 0.0) -> Allowed:
    return Allowed(relative, absolute, units, share)


def fp64(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def every_finite(dtype: torch.dtype) -> torch.Tensor:
    """Return all finite values of a small float format, in order."""
    bits = torch.arange(2 ** (8 * dtype.itemsize)).to(NARROW[dtype])
    values = bits.view(dtype).to(torch.float64)
    return torch.tensor(sorted(set(values[values.isfinite()].tolist())), dtype=torch.float64)


def test_outputs_between_16_and_32_in_bf16_may_differ_by_one_unit() -> None:
    expected = torch.linspace(16.0, 31.9, 100, dtype=torch.float64)
    actual = expected.to(torch.bfloat16)
    assert compare.compare(actual, expected, STRICT).reason is None
    two_units = (actual.to(torch.float64) + 0.25).to(torch.bfloat16)
    assert compare.compare(two_units, expected, STRICT).reason is FailReason.WRONG_VALUES


@pytest.mark.parametrize("dtype", NARROW)
def test_the_next_value_of_the_format_is_always_admitted(dtype: torch.dtype) -> None:
    values = every_finite(dtype)
    lower, upper = values[:-1], values[1:]
    for near, wanted in ((upper, lower), (lower, upper)):
        found = compare.compare(near.to(dtype), wanted, STRICT)
        assert found.reason is None, found.evidence


@pytest.mark.parametrize("dtype", NARROW)
def test_two_values_further_is_not_admitted(dtype: torch.dtype) -> None:
    values = every_finite(dtype)
    values = values[values >= 2 * torch.finfo(dtype).tiny]
    for index in range(0, len(values) - 2, max(1, len(values) // 200)):
        found = compare.compare(values[index + 2].to(dtype).view(1), values[index].view(1), STRICT)
        assert found.reason is FailReason.WRONG_VALUES


@settings(max_examples=200, deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**120), max_value=2.0**120))
def test_the_next_fp32_value_is_always_admitted(value: float) -> None:
    one = torch.tensor([value], dtype=torch.float32)
    for towards in (math.inf, -math.inf):
        next_ = torch.nextafter(one, torch.tensor(towards))
        assert compare.compare(next_, one.double(), STRICT).worst_ratio <= 1.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_rounding_alone_does_is_admitted(dtype: torch.dtype) -> None:
    expected = torch.randn(4096, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    found = compare.compare(expected.to(dtype), expected, STRICT)
    assert found.reason is None
    assert 0 < found.worst_ratio <= 0.5 + 1e-9
    assert compare.precision_fault(found, found, dtype) is None


@pytest.mark.parametrize("value", [0.0, 1e-6, -4e-6])
def test_zeros_and_constants_against_a_tiny_reference_fail(value: float) -> None:
    expected = 4e-6 * torch.randn(512, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    # 1e-2 is larger than every output; it counts in units of the reference.
    found = compare.compare(torch.full((512,), value), expected, allowed(absolute=1e-2))
    assert found.reason is FailReason.WRONG_VALUES


def test_the_mean_of_a_softmax_is_no_answer() -> None:
    expected = torch.softmax(torch.randn(8, 1000, dtype=torch.float64, generator=torch.Generator().manual_seed(4)), 1)
    found = compare.compare(torch.full((8, 1000), 1e-3), expected, allowed(1e-3, 1e-3))
    assert found.reason is FailReason.WRONG_VALUES


@pytest.mark.parametrize("bad", [1.0, math.nan, math.inf, -math.inf])
def test_one_bad_element_in_a_million_fails_and_is_named(bad: float) -> None:
    expected = torch.randn(1000, 1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    actual = expected.to(torch.float32)
    actual[777, 123] += bad
    found = compare.compare(actual, expected, allowed(1e-5, 1e-5))
    assert found.reason is (FailReason.NON_FINITE_MISMATCH if not math.isfinite(bad) else FailReason.WRONG_VALUES)
    assert "at [777, 123]" in found.evidence
    assert math.isfinite(found.worst_ratio)
    assert math.isfinite(found.rms_error)


CLASSES = {"finite": 1.0, "nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@pytest.mark.parametrize("wanted", CLASSES)
@pytest.mark.parametrize("given_", CLASSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_what_is_not_finite_is_compared_by_class(dtype: torch.dtype, given_: str, wanted: str) -> None:
    actual = torch.tensor([1.0, CLASSES[given_], 1.0], dtype=dtype)
    found = compare.compare(actual, fp64(1.0, CLASSES[wanted], 1.0), allowed(10.0, 10.0))
    assert found.reason is (None if given_ == wanted else FailReason.NON_FINITE_MISMATCH)


def test_what_is_not_finite_is_compared_by_place() -> None:
    actual = torch.tensor([1.0, math.inf])
    assert compare.compare(actual, fp64(math.inf, 1.0), allowed(10.0, 10.0)).reason is FailReason.NON_FINITE_MISMATCH


def test_a_reference_that_overflows_the_dtype_is_infinite_there() -> None:
    expected = fp64(1e6, -1e6, 1.0)
    assert compare.compare(expected.to(torch.float16), expected, STRICT).reason is None
    largest = torch.tensor([65504.0, -65504.0, 1.0], dtype=torch.float16)
    assert compare.compare(largest, expected, allowed(1.0, 1.0)).reason is FailReason.NON_FINITE_MISMATCH


def test_infinities_leave_the_error_of_the_others_as_it_is() -> None:
    found = compare.compare(torch.tensor([math.inf, 1.5]), fp64(math.inf, 1.0), allowed(relative=0.1))
    assert found.reason is FailReason.WRONG_VALUES
    assert found.worst_ratio == pytest.approx(0.5 / 0.1)


def test_a_reference_of_zeros_is_matched_by_zeros_alone() -> None:
    zeros = torch.zeros(8, dtype=torch.float64)
    assert compare.compare(torch.zeros(8), zeros, allowed(0.1, 0.1)).reason is None
    assert compare.compare(-torch.zeros(8), zeros, allowed(0.1, 0.1)).reason is None
    found = compare.compare(torch.full((8,), 1e-20), zeros, allowed(0.1, 0.1))
    assert found.reason is FailReason.WRONG_VALUES
    assert math.isfinite(found.rms_error)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [((1,), (4,)), ((4, 1), (4,)), ((2, 2), (4,)), ((), (1,)), ((0,), (0,)), ((4,), (1,))],
)
def test_a_shape_that_would_broadcast_is_refused(actual: tuple[int, ...], expected: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="oracle gives"):
        compare.compare(torch.zeros(actual), torch.zeros(expected, dtype=torch.float64), STRICT)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_integers_differ_by_units_and_by_share(dtype: torch.dtype) -> None:
    expected = torch.arange(0, 100).to(dtype)
    actual = expected.clone()
    assert compare.compare(actual, expected, STRICT).reason is None
    actual[3] += 1
    assert compare.compare(actual, expected, STRICT).reason is FailReason.WRONG_VALUES
    assert compare.compare(actual, expected, allowed(units=1)).reason is FailReason.WRONG_VALUES
    assert compare.compare(actual, expected, allowed(share=1.0)).reason is FailReason.WRONG_VALUES
    assert compare.compare(actual, expected, allowed(units=1, share=0.01)).reason is None
    actual[5] += 1
    found = compare.compare(actual, expected, allowed(units=1, share=0.01))
    assert found.reason is FailReason.WRONG_VALUES
    assert found.worst_ratio == pytest.approx(2.0)
    far = expected.clone()
    far[3] += 2
    found = compare.compare(far, expected, allowed(units=1, share=1.0))
    assert found.reason is FailReason.WRONG_VALUES
    assert "at [3]" in found.evidence


def test_integers_do_not_wrap_around() -> None:
    expected = torch.tensor([127, -128], dtype=torch.int8)
    found = compare.compare(torch.tensor([-128, 127], dtype=torch.int8), expected, allowed(units=1, share=1.0))
    assert found.reason is FailReason.WRONG_VALUES
    assert found.worst_ratio == 255


def test_half_precision_work_in_an_fp32_task_is_seen() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(64, 256, dtype=torch.float64, generator=generator)
    honest = torch.softmax(x.float(), 1)
    reference = torch.softmax(x, 1)
    baseline = compare.compare(honest, reference, allowed(1e-2, 1e-2))
    assert baseline.reason is None
    assert compare.precision_fault(baseline, baseline, torch.float32) is None
    for low in (torch.float16, torch.bfloat16):
        cheap = compare.compare(torch.softmax(x.to(low).float(), 1), reference, allowed(2e-2, 2e-2))
        assert cheap.reason is None, "the wide tolerance alone does not see it"
        fault = compare.precision_fault(cheap, baseline, torch.float32)
        assert fault is not None
        assert "allowed" in fault


def error(rms_error: float, weight: float = 1e6) -> compare.Comparison:
    return compare.Comparison(0.5, rms_error, weight, None, "")


def test_a_baseline_without_error_leaves_room_for_rounding() -> None:
    eps = torch.finfo(torch.float32).eps
    assert compare.precision_fault(error(eps), error(0.0), torch.float32) is None
    assert compare.precision_fault(error(10 * eps), error(0.0), torch.float32) is not None
    assert compare.precision_fault(error(1.0), error(0.0), torch.int8) is None


SHORT = [torch.float16, torch.bfloat16, torch.float8_e4m3fn]


@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize("count", [1, 3, 16, 256, 4096])
def test_one_rounding_is_always_precise_enough(dtype: torch.dtype, count: int) -> None:
    """Whatever the values, and although the two sides get different ones; a second rounding passes, too."""
    generator = torch.Generator().manual_seed(count)
    for _ in range(300):
        first, second, factor = 0.1 + torch.randn(3, count, dtype=torch.float64, generator=generator).abs()
        baseline, found = (compare.compare(one.to(dtype), one, allowed(0.5, 0.5)) for one in (first, second))
        assert compare.precision_fault(found, baseline, dtype) is None
        twice = (second.to(dtype).double() * (1 + factor.abs())).to(dtype)
        once_more = compare.compare(twice, second * (1 + factor.abs()), allowed(0.5, 0.5))
        if count >= 256 and dtype.itemsize == 2:
            assert compare.precision_fault(once_more, baseline, dtype) is None


@pytest.mark.parametrize("dtype", SHORT)
def test_three_roundings_and_cutting_off_are_not(dtype: torch.dtype) -> None:
    one, *factors = (
        torch.randn(4, 40000, dtype=torch.float64, generator=torch.Generator().manual_seed(5)).exp().unbind()
    )
    baseline = compare.compare(one.to(dtype), one, allowed(0.5, 0.5))
    rounded = one.to(dtype).double()
    for factor in factors[:2]:
        one, rounded = one * factor, (rounded * factor).to(dtype).double()
    found = compare.compare(rounded.to(dtype), one, allowed(0.5, 0.5))
    assert found.reason is None
    assert compare.precision_fault(found, baseline, dtype) is not None
    cut = one.to(dtype).double()
    whole = torch.uint8 if dtype.itemsize == 1 else torch.int16
    towards_zero = (one.to(dtype).view(whole) - (cut > one).to(whole)).view(dtype)
    found = compare.compare(towards_zero, one, allowed(0.5, 0.5))
    assert found.reason is None
    assert compare.precision_fault(found, baseline, dtype) is not None


def test_few_large_elements_count_as_few() -> None:
    """A heavy tail: the error is that of the largest elements, and so varies like one of few."""
    values = torch.ones(4096, dtype=torch.float64)
    assert compare.compare(values.float(), values, allowed(1e-3)).weight == pytest.approx(4096)
    values[:3] = 1e6
    assert compare.compare(values.float(), values, allowed(1e-3)).weight == pytest.approx(3, rel=1e-3)


def test_a_single_element_of_a_small_output_may_differ_by_a_unit() -> None:
    share = Allowed(relative=0.0, absolute=0.0, units=1, units_share=1e-3)
    expected = torch.zeros(100, dtype=torch.int8)
    one, two = expected.clone(), expected.clone()
    one[3] = 1
    two[3:5] = 1
    assert compare.compare(one, expected, share).reason is None
    assert compare.compare(two, expected, share).reason is FailReason.WRONG_VALUES


def test_a_tolerance_is_evaluated_for_the_configuration() -> None:
    tolerance = Tolerance(relative="0.25 * k", absolute="0.5", units=2, units_share=0.25)
    assert compare.resolve(tolerance, {"k": 8}) == Allowed(2.0, 0.5, 2, 0.25)
