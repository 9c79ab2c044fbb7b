"""JSON as the records need it: what is ambiguous, unbounded or not a number is refused, and the place is named.

Python's own reader lets through repeated keys, ``NaN``, lone surrogates and numbers of any length; two readers could
then see two different records in the same bytes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from akarena.errors import UserError

MAX_DEPTH = 64
"""Deepest nesting of objects and arrays; records need about ten."""
MAX_INTEGER = 2**63 - 1
"""Largest magnitude of a whole number."""

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class _Refused:
    """Stands in the parsed document for a value that is not allowed, so that its path can be told."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


class _Repeated(dict[str, Any]):
    """An object in which one key appears more than once."""

    key = ""


def loads(data: bytes, where: str) -> Any:
    """Parse strict JSON.

    Args:
        data: The bytes of the whole file.
        where: What they are, for example the file's name; it starts each error message.

    Returns:
        Dicts, lists, str, int, finite float, bool and None.

    Raises:
        UserError: The bytes are not UTF-8 or not JSON, or hold a repeated key, NaN, Infinity, a number outside the
            range of 64-bit integers or doubles, a lone surrogate, or more than 64 levels.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: byte {error.start} is not UTF-8") from None
    try:
        document = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_real
        )
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise UserError(f"{where}: nested more than {MAX_DEPTH} levels deep") from None
    problem = _first_problem(document)
    if problem is not None:
        raise UserError(f"{where}: {problem}")
    return document


def key_path(keys: Iterable[str | int]) -> str:
    """Write the place of a value as ``trials[2].score``; a key that is no plain word is quoted."""
    text = ""
    for key in keys:
        if isinstance(key, int):
            text += f"[{key}]"
        elif _PLAIN_KEY.fullmatch(key):
            text += f".{key}" if text else key
        else:
            text += f"[{shorten(key)}]"
    return text or "the whole document"


def shorten(value: object, limit: int = 80) -> str:
    """Show a value in one line of at most ``limit`` characters, without control characters."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    repeated = _Repeated(result)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            repeated.key = key
        seen.add(key)
    return repeated


def _constant(text: str) -> _Refused:
    return _Refused(f"{text} is not a number in JSON, expected a finite number")


def _integer(text: str) -> int | _Refused:
    if len(text) > 20 or abs(int(text)) > MAX_INTEGER:
        return _Refused(f"{shorten(text, 30)} is too large, expected at most {MAX_INTEGER}")
    return int(text)


def _real(text: str) -> float | _Refused:
    value = float(text)
    return value if math.isfinite(value) else _Refused(f"{shorten(text, 30)} is too large for a double")


def _first_problem(document: Any) -> str | None:
    """Walk the document without recursion; return the first thing that is wrong."""
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, _Refused):
            return f"{key_path(path)}: {value.problem}"
        if isinstance(value, _Repeated):
            return f"{key_path((*path, value.key))}: the key appears more than once"
        if isinstance(value, str) and not _encodable(value):
            return f"{key_path(path)}: holds a lone surrogate, expected Unicode text"
        if isinstance(value, dict | list) and len(path) >= MAX_DEPTH:
            return f"nested more than {MAX_DEPTH} levels deep"
        if isinstance(value, dict):
            for key in value:
                if not _encodable(key):
                    return f"{key_path(path)}: a key holds a lone surrogate, expected Unicode text"
            stack.extend(((*path, key), item) for key, item in reversed(value.items()))
        elif isinstance(value, list):
            stack.extend(((*path, index), value[index]) for index in range(len(value) - 1, -1, -1))
    return None


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
