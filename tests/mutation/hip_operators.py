"""Mutation operators over HIP sources: patterns on the code of device functions.

What host code decides (which of several right kernels to launch, with how many threads) is left alone, for either
choice is right; of host code only the sizes of grids are touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from tests.mutation import hip_text
from tests.mutation.mutant import Edit, Operator, exchanges

_NAME = r"[A-Za-z_]\w*(?:\.\w+|\[[^\[\]\n]*\])*"
_OPERAND = rf"(?:{_NAME}(?:\([^()\n]*\))?|\d[\w.]*)"
_HALF_BITS, _BFLOAT_BITS = "0xffffe000u", "0xffff0000u"
_FLOAT = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)(f?)(?![\w.])", re.IGNORECASE)
_OTHER_NAMES = (("row", "col"), ("row", "column"), ("rows", "cols"))
"""Names of indices and sizes that people use in pairs; those of the task's own sizes come on top."""


def edits(text: str, sizes: Sequence[str]) -> Iterator[Edit]:
    """Propose every edit of a HIP source.

    Args:
        text: The source.
        sizes: Names of the task's sizes.
    """
    code = hip_text.masked(text)
    yield from _ceilings(code)
    functions = list(hip_text.device_functions(code))
    yield from _outer_constants(code, functions)
    for start, opening, end in functions:
        for family in _FAMILIES:
            yield from family(code, opening, end)
        yield from _names(code, start, opening, end, sizes)
        yield from _low_precision(code, start, opening, end)
        if hip_text.is_kernel(code, start):
            last = "if (blockIdx.x == gridDim.x - 1) return;"
            yield Edit(Operator.ENDS_EARLY, opening + 1, opening + 1, f" {last}")


def _replacing(
    operator: Operator, pattern: str, replacement: str | Callable[[re.Match[str]], str]
) -> Callable[[str, int, int], Iterator[Edit]]:
    """Make an operator that replaces each match of a pattern."""
    compiled = re.compile(pattern)

    def propose(code: str, start: int, end: int) -> Iterator[Edit]:
        for found in compiled.finditer(code, start, end):
            new = replacement(found) if callable(replacement) else found.expand(replacement)
            yield Edit(operator, found.start(), found.end(), new)

    return propose


_LOOSE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"+": "-", "-": "+", "*": "/", "/": "*"}
_EXTREMES = {"fmaxf": "fminf", "fminf": "fmaxf", "max": "min", "min": "max"}
_ROUNDINGS = {"rintf": "floorf", "roundf": "truncf", "nearbyintf": "floorf", "__float2int_rn": "__float2int_rz"}
_AXES = {"x": "y", "y": "x"}

_COMPARISON = r"(?<=[\w)\]] )(<=?|>=?)(?= [\w(])"

_FAMILIES: tuple[Callable[[str, int, int], Iterator[Edit]], ...] = (
    _replacing(Operator.BOUND, _COMPARISON, lambda found: _LOOSE[found[1]]),
    _replacing(Operator.BOUND_LESS, rf"(?<= < )({_NAME})(?=[;) ]|$)(?! [*/+-])", r"\1 - 1"),
    _replacing(Operator.COMPARISON_TURNED, _COMPARISON, lambda found: _TURNED[found[1]]),
    _replacing(
        Operator.AXIS_SWAPPED,
        r"\b(threadIdx|blockIdx|gridDim|blockDim)\.([xy])\b",
        lambda found: f"{found[1]}.{_AXES[found[2]]}",
    ),
    _replacing(Operator.TERM_DROPPED, rf"(?<=[\w)\]]) [+*/-] {_OPERAND}(?=[;),\]]| [+-])", ""),
    _replacing(Operator.FIRST_INDEX, r"(\bint \w+ = )0(?=;)", r"\g<1>1"),
    _replacing(Operator.FIRST_INDEX, r"(?<= == )0(?=\W)", "1"),
    _replacing(Operator.ARITHMETIC, r"(?<=[\w)\]] )([+*/-])(?==? [\w(*&])", lambda found: _OPPOSITE[found[1]]),
    _replacing(Operator.MIN_MAX, r"\b(fmaxf|fminf|max|min)(?=\()", lambda found: _EXTREMES[found[1]]),
    _replacing(Operator.MASK_DROPPED, r"(?<=\bif \()[^()\n]* < [^()\n]*(?=\))", "true"),
    _replacing(Operator.MASK_DROPPED, r"(?<= = )[^;=?\n]* < [^;=?\n]*(?= \? )", "true"),
    _replacing(Operator.BARRIER_DROPPED, r"\b__syncthreads\(\);", ";"),
    _replacing(Operator.INITIAL_VALUE, r"(\bfloat \w+ = )0\.0f?(?=[;,])", r"\g<1>1.0f"),
    _replacing(Operator.INITIAL_VALUE, r"(?<= = )-?(?:INFINITY|FLT_MAX|kLowest)(?=;)", "0.0f"),
    _replacing(Operator.STATEMENT_DELETED, rf"(?<=\n)( *){_NAME}(?: [+*/^-]?= [^;{{}}]+|\([^;{{}}]*\));(?=\n)", r"\1;"),
    _replacing(Operator.ROUNDING, rf"\b({'|'.join(_ROUNDINGS)})(?=\()", lambda found: _ROUNDINGS[found[1]]),
    lambda code, start, end: _constants(code, start, end),
    lambda code, start, end: _short_loops(code, start, end),
)


def _ceilings(code: str) -> Iterator[Edit]:
    """Divisions that round up, where their result is the size of a grid."""
    grids = re.findall(r"<<<(.*?)>>>", code, re.DOTALL)
    used = set(re.findall(r"[A-Za-z_]\w*", " ".join(grids)))
    for found in re.finditer(r" \+ ([^()\n]+|\([^()\n]*\)|[^()\n]*\([^()\n]*\)) - 1(?=\) /)", code):
        before = code[code.rfind(";", 0, found.start()) + 1 : found.start()]
        declared = re.search(r"\b(\w+)(?: =|\()", before)
        if "<<<" in before or (declared is not None and declared[1] in used):
            yield Edit(Operator.CEIL_TO_FLOOR, found.start(), found.end(), "")


def _outer_constants(code: str, functions: Sequence[tuple[int, int, int]]) -> Iterator[Edit]:
    """Constants of the file that device functions use."""
    bodies = "".join(code[opening:end] for _, opening, end in functions)
    for found in re.finditer(r"^constexpr float (\w+) = [^;\n]*;", code, re.MULTILINE):
        if re.search(rf"\b{found[1]}\b", bodies):
            yield from _constants(code, found.start(), found.end())


def _constants(code: str, start: int, end: int) -> Iterator[Edit]:
    for found in _FLOAT.finditer(code, start, end):
        value = float(found[1])
        if re.search(r"float \w+ = $", code[max(start, found.start() - 60) : found.start()]) and value == 0:
            continue  # an initial value, which has its own operator
        if value == 0:
            yield Edit(Operator.CONSTANT, found.start(), found.end(), f"1.0{found[2]}")
            continue
        if value < 1e30:
            yield Edit(Operator.CONSTANT, found.start(), found.end(), f"{value * 10!r}{found[2]}")
        yield Edit(Operator.CONSTANT, found.start(), found.end(), f"0.0{found[2]}")


def _short_loops(code: str, start: int, end: int) -> Iterator[Edit]:
    for found in re.finditer(r"\bfor \(", code[start:end]):
        body = hip_text.closing(code, start + found.end() - 1) + 1
        if code.startswith(" {", body):
            last = hip_text.closing(code, body + 1)
            yield Edit(Operator.ENDS_EARLY, last, last, " break; ")


def _names(code: str, start: int, opening: int, end: int, sizes: Sequence[str]) -> Iterator[Edit]:
    """Exchange a size or an index for another one of the same function."""
    known = set(re.findall(r"[A-Za-z_]\w*", code[start:end]))
    for one, other in exchanges(sizes, _OTHER_NAMES):
        if other not in known:
            continue
        for found in re.finditer(rf"(?<![\w.]){one}\b(?! =[^=])(?!\()", code[opening:end]):
            at = opening + found.start()
            yield Edit(Operator.AXIS_SWAPPED, at, at + len(one), other)


def _low_precision(code: str, start: int, opening: int, end: int) -> Iterator[Edit]:
    """Round what is added up, or what is stored, to fewer bits of mantissa."""
    floats = set(re.findall(r"\bfloat\*? (?:__restrict__ )?(\w+)", code[start:end]))
    assigned = rf"(?<=[;{{}})\n ])({_NAME}) (\+?=) ([^;{{}}=]+);"
    for found in re.finditer(assigned, code[opening:end]):
        target, sign, value = found.groups()
        name = re.match(r"\w+", target)
        if name is None or name[0] not in floats or not re.search(r"[+*(\w]", value):
            continue
        adds_up = sign == "+=" or value.startswith("fmaf(") or bool(re.match(rf"{re.escape(target)} [*+]", value))
        if not adds_up and "[" not in target:
            continue
        whole = f"{target} + ({value})" if sign == "+=" else value
        for bits in (_HALF_BITS, _BFLOAT_BITS):
            rounded = f"{target} = __uint_as_float(__float_as_uint({whole}) & {bits});"
            yield Edit(Operator.LOW_PRECISION, opening + found.start(), opening + found.end(), rounded)
