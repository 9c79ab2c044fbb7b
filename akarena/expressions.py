"""Arithmetic over the sizes of a task, evaluated without ``eval``.

Allowed: numbers, names of axes, ``+ - * / // % **``, comparisons, ``and or not``, and the functions ``min``, ``max``,
``ceil_div``, ``sqrt``, ``log2``, ``bytes_of`` (bytes of one element of a dtype axis).
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

Number = int | float

MAX_LENGTH = 300
"""Longest expression."""
_LARGEST = 1e300
"""Largest magnitude of any intermediate result; it also keeps towers of powers short."""

DTYPE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int64": 8, "int32": 4, "int8": 1, "uint8": 1}


class ExpressionError(ValueError):
    """An expression is malformed, names something unknown, or leaves the range of numbers."""


def _bytes_of(dtype: Any) -> int:
    try:
        return DTYPE_BYTES[dtype]
    except (KeyError, TypeError):
        raise ExpressionError(f"bytes_of needs a dtype axis, got {dtype!r}") from None


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > 64:
        raise ExpressionError(f"exponent {exponent} is larger than 64")
    result: Number = base**exponent
    return result


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "ceil_div": lambda a, b: -(-a // b),
    "sqrt": math.sqrt,
    "log2": math.log2,
    "bytes_of": _bytes_of,
}


def evaluate(text: str, values: Mapping[str, Number | str]) -> Number:
    """Evaluate an expression.

    Args:
        text: The expression.
        values: Value of each name that it may use.

    Returns:
        An int or a finite float; comparisons give 0 or 1.

    Raises:
        ExpressionError: The text is not such an expression; the message says why.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"longer than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(text, mode="eval")
        result = _visit(tree.body, values)
    except ExpressionError:
        raise
    except (SyntaxError, ValueError, TypeError, ZeroDivisionError, OverflowError, RecursionError) as error:
        raise ExpressionError(f"{text!r}: {error}") from None
    if isinstance(result, bool):
        return int(result)
    if not isinstance(result, int | float):
        raise ExpressionError(f"{text!r} is not a number")
    if not math.isfinite(result):
        raise ExpressionError(f"{text!r} is not finite")
    return result


def evaluate_size(text: str, values: Mapping[str, Number | str]) -> int:
    """Evaluate an expression that must be a positive whole number, such as an extent of a shape."""
    result = evaluate(text, values)
    if int(result) != result or result < 1:
        raise ExpressionError(f"{text!r} gives {result}, expected a positive whole number")
    return int(result)


def _arithmetic(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    if isinstance(left, str) or isinstance(right, str):
        raise ExpressionError("a dtype is no number")
    result = operation(left, right)
    if abs(result) > _LARGEST:
        raise ExpressionError(f"an intermediate result is larger than {_LARGEST:g}")
    return result


def _visit(node: ast.expr, values: Mapping[str, Number | str]) -> Any:
    match node:
        case ast.Constant(value=bool()):
            raise ExpressionError("True and False are not allowed")
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            if name not in values:
                raise ExpressionError(f"unknown name {name!r} (known: {', '.join(sorted(values))})")
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_visit(operand, values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _visit(operand, values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _arithmetic(_BINARY[type(op)], _visit(left, values), _visit(right, values))
        case ast.BoolOp(op=op, values=parts):
            results = [bool(_visit(part, values)) for part in parts]
            return all(results) if isinstance(op, ast.And) else any(results)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return _COMPARE[type(op)](_visit(left, values), _visit(right, values))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_visit(arg, values) for arg in args))
        case _:
            raise ExpressionError(f"{ast.unparse(node)!r} is not allowed in an expression")
