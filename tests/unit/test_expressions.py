from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akarena.expressions import DTYPE_BYTES, ExpressionError, evaluate, evaluate_size

VALUES: dict[str, int | float | str] = {"m": 96, "n": 7, "eps": 1e-5, "dtype": "fp16"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", 3),
        ("m * n + 1", 673),
        ("m / 64", 1.5),
        ("m // n", 13),
        ("-m // n", -14),
        ("m % n", 5),
        ("2 ** 10", 1024),
        ("-(m - 100)", 4),
        ("ceil_div(m, n)", 14),
        ("ceil_div(98, n)", 14),
        ("min(m, n, 3)", 3),
        ("max(m, n)", 96),
        ("sqrt(m - 32)", 8.0),
        ("log2(1024)", 10.0),
        ("1 / sqrt(4)", 0.5),
        ("bytes_of(dtype) * m", 192),
        ("m >= 96", 1),
        ("m != 96", 0),
        ("m > 1 and n > 7", 0),
        ("m > 1 or n > 7", 1),
        ("not m", 0),
        ("(m > 1) * 5", 5),
        ("dtype == dtype", 1),
        ("m * eps", 96e-5),
    ],
)
def test_evaluates(text: str, expected: float) -> None:
    result = evaluate(text, VALUES)
    assert result == pytest.approx(expected, rel=1e-15)
    assert not isinstance(result, bool)


@pytest.mark.parametrize(("dtype", "size"), DTYPE_BYTES.items())
def test_bytes_of_every_dtype(dtype: str, size: int) -> None:
    assert evaluate("bytes_of(t)", {"t": dtype}) == size


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "invalid syntax"),
        ("m +", "invalid syntax"),
        ("m; n", "invalid syntax"),
        ("x", r"unknown name 'x' \(known: dtype, eps, m, n\)"),
        ("m / 0", "division by zero"),
        ("m // (n - 7)", "zero"),
        ("sqrt(-1)", "math domain error"),
        ("log2(0)", "math domain error"),
        ("2 ** 65", "exponent 65 is larger than 64"),
        ("2 ** -65", "exponent -65 is larger than 64"),
        ("(-8) ** 0.5", "is not a number"),
        ("1e308 * 10", "is not finite|is larger than"),
        ("1e999", "is not finite"),
        ("dtype", "is not a number"),
        ("dtype + 1", "dtype|str"),
        ("bytes_of(m)", "bytes_of needs a dtype axis, got 96"),
        ("bytes_of(m > 1)", "bytes_of needs a dtype axis"),
        ("min(m)", "not iterable"),
        ("ceil_div(m)", "argument"),
        ("max(m, key=n)", "is not allowed"),
        ("True", "True and False are not allowed"),
        ("'a'", "is not allowed"),
        ("1j", "is not allowed"),
        ("None", "is not allowed"),
        ("1 < m < 5", "is not allowed"),
        ("m if n else 1", "is not allowed"),
        ("[m]", "is not allowed"),
        ("m.real", "is not allowed"),
        ("m[0]", "is not allowed"),
        ("lambda: 1", "is not allowed"),
        ("(x := 1)", "is not allowed"),
        ("~m", "is not allowed"),
        ("m << 3", "is not allowed"),
        ("m in n", "is not allowed"),
        ("abs(m)", "is not allowed"),
        ("eval('1')", "is not allowed"),
        ("__import__('os').system('true')", "is not allowed"),
        ("().__class__", "is not allowed"),
        ("f'{m}'", "is not allowed"),
    ],
)
def test_refuses_and_says_why(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        evaluate(text, VALUES)


@pytest.mark.parametrize(
    "text",
    [
        "(10 ** 64) ** 64",
        "((((9 ** 64) ** 64) ** 64) ** 64) ** 64",
        "dtype * 9999999999",
        "-" * 50_000 + "1",
        "(" * 5_000 + "1" + ")" * 5_000,
        "1" * 5_000,
    ],
    ids=["beyond a float", "tower of powers", "repeated text", "signs", "parentheses", "digits"],
)
def test_refuses_what_would_not_end(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, VALUES)


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(st.text(alphabet="mn019 +-*/%()<>=.,'[]{}:eabdnort_", max_size=30))
def test_gives_a_finite_number_or_the_one_error(text: str) -> None:
    try:
        result = evaluate(text, VALUES)
    except ExpressionError:
        return
    assert math.isfinite(result)


@pytest.mark.parametrize(("text", "expected"), [("m", 96), ("m / 2", 48), ("n * 1.0", 7)])
def test_sizes_are_positive_whole_numbers(text: str, expected: int) -> None:
    result = evaluate_size(text, VALUES)
    assert result == expected
    assert isinstance(result, int)


@pytest.mark.parametrize("text", ["0", "n - 8", "n / 2", "m < 1"])
def test_refuses_other_sizes(text: str) -> None:
    with pytest.raises(ExpressionError, match="expected a positive whole number"):
        evaluate_size(text, VALUES)
