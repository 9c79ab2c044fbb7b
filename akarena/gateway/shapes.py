"""Shapes that a JSON document must have: a small language for allow-lists.

A shape is called with a value and the path to it, and raises `Denial` where the value is not listed. A shape changes
nothing. Whatever is not named by a shape is refused, so that a new feature of a service is off until it was looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from akarena.gateway.refusal import refused
from akarena.records.audit import RefusalReason
from akarena.strictjson import key_path, shorten

Path = tuple[str | int, ...]
Shape = Callable[[Any, Path], None]


def anything(value: Any, path: Path) -> None:
    """Take any JSON: for data that the service hands to the model or back to the agent and does not act on."""


def scalar(value: Any, path: Path) -> None:
    """Take a text, number, truth value or null."""
    if isinstance(value, dict | list):
        raise _wrong(value, path, "a plain value")


def text(value: Any, path: Path) -> None:
    """Take a text or null."""
    if value is not None and not isinstance(value, str):
        raise _wrong(value, path, "a text")


def number(value: Any, path: Path) -> None:
    """Take a number or null."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise _wrong(value, path, "a number")


def count(value: Any, path: Path) -> None:
    """Take a whole number from 0, or null."""
    if value is not None and (type(value) is not int or value < 0):
        raise _wrong(value, path, "a whole number")


def flag(value: Any, path: Path) -> None:
    """Take true, false or null."""
    if value is not None and not isinstance(value, bool):
        raise _wrong(value, path, "true or false")


def only(*values: str | bool | int | None) -> Shape:
    """Take one of these values."""

    def shape(value: Any, path: Path) -> None:
        if not any(type(value) is type(item) and value == item for item in values):
            raise _wrong(value, path, " or ".join(repr(item) for item in values))

    return shape


def matching(pattern: str, meaning: str, reason: RefusalReason = RefusalReason.VALUE) -> Shape:
    """Take a text that matches a pattern as a whole."""
    compiled = re.compile(pattern, re.DOTALL)

    def shape(value: Any, path: Path) -> None:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise refused(reason, f"{key_path(path)}: {shorten(value, 60)} is not allowed, expected {meaning}")

    return shape


def mapping(item: Shape) -> Shape:
    """Take an object with any keys, and values of one shape."""

    def shape(value: Any, path: Path) -> None:
        if value is None:
            return
        if not isinstance(value, dict):
            raise _wrong(value, path, "an object")
        for key, inner in value.items():
            item(inner, (*path, key))

    return shape


def array(item: Shape) -> Shape:
    """Take a list (or null) of items of one shape."""

    def shape(value: Any, path: Path) -> None:
        if value is None:
            return
        if not isinstance(value, list):
            raise _wrong(value, path, "a list")
        for index, inner in enumerate(value):
            item(inner, (*path, index))

    return shape


def fields(known: Mapping[str, Shape], *, required: tuple[str, ...] = ()) -> Shape:
    """Take an object (or null) that has no fields but these."""

    def shape(value: Any, path: Path) -> None:
        if value is None and not required:
            return
        if not isinstance(value, dict):
            raise _wrong(value, path, "an object")
        for key, inner in value.items():
            if key not in known:
                raise refused(RefusalReason.FIELD, f"{key_path((*path, key))}: this field is not on the gateway's list")
            known[key](inner, (*path, key))
        for key in required:
            if value.get(key) is None:
                raise refused(RefusalReason.FIELD, f"{key_path((*path, key))}: is required")

    return shape


def text_or(other: Shape) -> Shape:
    """Take a text, or what the other shape takes."""

    def shape(value: Any, path: Path) -> None:
        if not isinstance(value, str):
            other(value, path)

    return shape


def tagged(kinds: Mapping[str, Shape], reason: RefusalReason, *, default: str | None = None) -> Shape:
    """Take an object whose ``type`` matches one of these patterns as a whole, and of the shape that goes with it.

    Args:
        kinds: Shapes of the fields by pattern of the type.
        reason: Of a refusal when the type is another.
        default: The type where none is given; without it a type is required.
    """
    compiled = [(re.compile(pattern), shape) for pattern, shape in kinds.items()]

    def shape(value: Any, path: Path) -> None:
        if not isinstance(value, dict):
            raise _wrong(value, path, "an object")
        kind = value.get("type")
        kind = default if kind is None else kind
        if isinstance(kind, str):
            for pattern, inner in compiled:
                if pattern.fullmatch(kind):
                    inner(value, path)
                    return
        raise refused(reason, f"{key_path((*path, 'type'))}: {shorten(kind, 60)} is not on the gateway's list")

    return shape


def _wrong(value: Any, path: Path, expected: str) -> Exception:
    return refused(RefusalReason.VALUE, f"{key_path(path)}: {shorten(value, 60)} is not allowed, expected {expected}")
