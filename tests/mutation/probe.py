"""A trap in place of a mutant: where it passes too, the line is not run by any configuration of the judgement."""

from __future__ import annotations

import ast

from tests.mutation import hip_text
from tests.mutation.triton_operators import Text

_HIP_TRAP = " *static_cast<volatile int*>(nullptr) = 0; "


def with_trap(text: str, position: int, *, hip: bool) -> str | None:
    """Put a trap before the statement at a position; None where that is not possible."""
    return _in_hip(text, position) if hip else _in_python(text, position)


def _in_hip(text: str, position: int) -> str | None:
    code = hip_text.masked(text)
    at = hip_text.statement_start(code, position)
    if at is None or code[at:].lstrip().startswith("else"):
        return None
    return text[:at] + _HIP_TRAP + text[at:]


def _in_python(text: str, position: int) -> str | None:
    source = Text(text)
    kernels = source.kernels()
    found: tuple[ast.stmt, ast.FunctionDef] | None = None
    for function in (node for node in source.tree.body if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, ast.stmt) and node is not function:
                start, end = source.span(node)
                # Breadth first: a later one lies deeper.
                if start <= position < end:
                    found = node, function
    if found is None:
        return None
    statement, function = found
    start, _ = source.span(statement)
    trap = "tl.static_assert(False)" if function in kernels else "raise AssertionError"
    return f"{text[:start]}{trap}\n{' ' * statement.col_offset}{text[start:]}"
