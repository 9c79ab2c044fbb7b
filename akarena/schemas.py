"""Schemas of the records: generated from the types, checked for drift, and applied where records are read and written.

Two engines judge every record: pydantic at an ordinary read, and ``jsonschema`` at each write and in ``verify``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError as SchemaError
from jsonschema.validators import extend
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from referencing import Registry, Resource

from akarena import strictjson
from akarena.errors import InfrastructureError, UserError
from akarena.records import ALL, SCHEMA_VERSION, AuditRecord, EventRecord, Record, TrialRecord
from akarena.records.report import PublishedRecord, ReportRecord
from akarena.strictjson import key_path, shorten

AnyRecord = Record | TrialRecord
"""A trial is a choice between several types, so it is no ``Record`` by inheritance."""
R = TypeVar("R", bound=BaseModel)

RECORDS: dict[str, type[AnyRecord]] = {kind.schema_name: kind for kind in (*ALL, PublishedRecord, ReportRecord)}
"""Every type of record by the name of its schema."""

MAX_PROBLEMS = 10
"""Most problems that one message lists."""

_PREFIX = re.compile(r"^(Input|String|Tuple|Dictionary|Value error,) ")


def generate() -> dict[str, dict[str, Any]]:
    """Make the JSON Schema (2020-12) of every record, by schema name."""
    return {name: _generate(name, kind) for name, kind in sorted(RECORDS.items())}


def write(folder: Path) -> None:
    """Write ``<name>.schema.json`` for every record and remove the schema files of records that no longer exist."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = _texts()
    for path in folder.glob("*.schema.json"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def drift(folder: Path) -> list[str]:
    """Name every schema file in ``folder`` that is missing, stale or surplus; an empty list says that none is."""
    texts = _texts()
    problems = []
    for name, text in texts.items():
        path = folder / name
        if not path.is_file():
            problems.append(f"{path}: missing")
        elif path.read_bytes() != text.encode():
            problems.append(f"{path}: stale, differs from the type of the record")
    surplus = sorted(path for path in folder.glob("*.schema.json") if path.name not in texts)
    return problems + [f"{path}: surplus, no record has this name" for path in surplus]


def to_json(record: AnyRecord) -> bytes:
    """Write a record in its one canonical form: UTF-8, sorted keys, two spaces of indent (lines of a log: none).

    Raises:
        InfrastructureError: The record does not meet its own schema, which is a defect of the program.
    """
    name = record.schema_name
    indent = None if isinstance(record, AuditRecord | EventRecord) else 2
    try:
        text = json.dumps(
            record.model_dump(warnings=False), indent=indent, sort_keys=True, ensure_ascii=False, allow_nan=False
        )
        data = f"{text}\n".encode()
    except (ValueError, TypeError) as error:
        raise InfrastructureError(f"{name} record: cannot be written as JSON: {error}") from None
    problems = validate(name, data)
    if problems:
        raise InfrastructureError(f"{name} record: {'; '.join(problems)}")
    return data


def parse(kind: type[R], data: bytes, where: str) -> R:
    """Read a record from strict JSON.

    Args:
        kind: The type of record that is expected.
        data: The bytes of the file.
        where: The file's name, for the error message.

    Raises:
        UserError: One line that names ``where`` and, for up to ten problems, the key path and what was expected.
    """
    document = strictjson.loads(data, where)
    unknown = _unknown_version(document)
    if unknown:
        raise UserError(f"{where}: {unknown}")
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise UserError(f"{where}: {'; '.join(_explain(error.errors(), document))}") from None


def load(kind: type[R], path: Path) -> R:
    """Read a record from a file of our own; a foreign run folder is read through ``akarena.store``."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}))") from None
    return parse(kind, data, str(path))


def load_toml(kind: type[R], path: Path) -> R:
    """Read a record that a person wrote in TOML.

    Raises:
        UserError: The file is missing, not TOML, or no such record; the message names file, key and what was expected.
    """
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: is not TOML ({error})") from None
    # Dates are the only TOML values that JSON lacks; no key takes one.
    return parse(kind, json.dumps(content, default=str, allow_nan=True).encode(), str(path))


def validate(kind: type[AnyRecord] | str, data: bytes) -> list[str]:
    """Hold a record against its JSON Schema, offline and without pydantic.

    Args:
        kind: The type of record, or the name of its schema.
        data: The bytes of the file.

    Returns:
        Up to ten problems, each as ``key.path: what is wrong``; empty where the record is valid.
    """
    name = kind if isinstance(kind, str) else kind.schema_name
    try:
        document = strictjson.loads(data, name)
    except UserError as error:
        return [str(error).removeprefix(f"{name}: ")]
    unknown = _unknown_version(document)
    if unknown:
        return [unknown]
    errors = _leaves(_validator(name).iter_errors(document))
    return _bounded(list(dict.fromkeys(f"{key_path(error.absolute_path)}: {_message(error)}" for error in errors)))


def _generate(name: str, kind: type[AnyRecord]) -> dict[str, Any]:
    schema = _portable(kind.model_json_schema(mode="validation"))
    schema.pop("title", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:akarena:schema:{name}:{SCHEMA_VERSION}",
        "title": f"{name} record",
        **schema,
    }


def _portable(node: Any, *, named: bool = False) -> Any:
    """Rewrite a generated schema so that every engine reads it alike.

    Args:
        node: A schema, or a part of one.
        named: Whether the keys of ``node`` are names of properties or definitions rather than keywords.
    """
    if isinstance(node, list):
        return [_portable(item) for item in node]
    if not isinstance(node, dict):
        return node
    if named:
        return {_anchored(key): _portable(value) for key, value in node.items()}
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key == "pattern":
            result[key] = _anchored(value)
        elif key in ("const", "default", "enum"):
            result[key] = value
        elif key != "discriminator":  # A keyword of OpenAPI; ``oneOf`` says the same.
            result[key] = _portable(value, named=key in ("properties", "patternProperties", "$defs"))
    if "patternProperties" in result:
        result.setdefault("additionalProperties", False)
    return result


def _anchored(pattern: str) -> str:
    """Let a final ``$`` match at the very end only; Python's also matches before a last newline, unlike pydantic's."""
    return f"{pattern}(?!\\n)" if pattern.endswith("$") else pattern


def _texts() -> dict[str, str]:
    return {
        f"{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in generate().items()
    }


_integers = Draft202012Validator.TYPE_CHECKER.redefine(
    # The specification lets 1.0 pass as an integer; the types of the records do not.
    "integer",
    lambda _, value: isinstance(value, int) and not isinstance(value, bool),
)
_Validator = extend(Draft202012Validator, type_checker=_integers)  # type: ignore[no-untyped-call]


@cache
def _validator(name: str) -> Any:
    kind = RECORDS.get(name)
    if kind is None:
        raise InfrastructureError(f"schema {name!r} does not exist (known: {', '.join(sorted(RECORDS))})")
    schema = _generate(name, kind)
    # A registry that holds this one schema and retrieves nothing: no reference can reach a file or a network.
    registry: Registry[Any] = Registry().with_resource(schema["$id"], Resource.from_contents(schema))
    return _Validator(schema, registry=registry, format_checker=FormatChecker())


def _unknown_version(document: Any) -> str | None:
    if not isinstance(document, dict) or "schema_version" not in document:
        return None
    version = document["schema_version"]
    if type(version) is int and version == SCHEMA_VERSION:
        return None
    return f"schema_version {shorten(version)} is not known; this akarena reads {SCHEMA_VERSION}"


def _leaves(errors: Iterator[SchemaError]) -> Iterator[SchemaError]:
    """Follow a failed choice into the branch that was meant: the one whose fixed values the record has."""
    for error in errors:
        branches: dict[Any, list[SchemaError]] = {}
        for inner in error.context or ():
            branches.setdefault(inner.schema_path[0], []).append(inner)
        meant = [inner for inner in branches.values() if not any(_is_tag(part, error) for part in inner)]
        if error.validator in ("oneOf", "anyOf") and len(meant) == 1:
            yield from _leaves(iter(meant[0]))
        else:
            yield error


def _is_tag(error: SchemaError, choice: SchemaError) -> bool:
    """Whether an error inside a choice says that this branch was not meant: a fixed value or the type differs."""
    depth = len(error.absolute_path) - len(choice.absolute_path)
    return (error.validator == "const" and depth == 1) or (error.validator == "type" and depth == 0)


def _message(error: SchemaError) -> str:
    if error.validator in ("oneOf", "anyOf"):
        return f"{shorten(error.instance)} is none of the allowed forms"
    text = error.message if len(error.message) <= 200 else f"{error.message[:197]}..."
    return text if text.isprintable() else repr(text)


def _explain(errors: Sequence[ErrorDetails], document: Any) -> list[str]:
    """Turn pydantic's errors into ``key.path: what is wrong``, one for each place."""
    found: dict[str, tuple[list[str], str]] = {}
    for error in errors:
        path, is_key = _true_path(error["loc"], document, missing=error["type"] == "missing")
        if error["type"] == "too_short" and error["ctx"]["actual_length"] < len(error["input"]):
            continue  # Only since items of it are wrong, which are errors of their own.
        value = error["input"]
        got = "" if isinstance(value, Mapping | list) else f", got {shorten(value)}"
        match error["type"]:
            case "missing":
                text, got = "is required", ""
            case "extra_forbidden":
                text, got = "is not a known key", ""
            case "union_tag_not_found":
                path.append(error["ctx"]["discriminator"].strip("'"))
                text = "is required"
            case "union_tag_invalid":
                path.append(error["ctx"]["discriminator"].strip("'"))
                text, got = f"should be one of {error['ctx']['expected_tags']}", f", got {shorten(error['ctx']['tag'])}"
            case _:
                text = _PREFIX.sub("", error["msg"]).replace(" after validation", "")
        place = key_path(path) + (" (the key itself)" if is_key else "")
        texts, _ = found.setdefault(place, ([], got))
        if text not in texts:
            texts.append(text)
    return _bounded([f"{place}: {' or '.join(texts)}{got}" for place, (texts, got) in found.items()])


def _true_path(location: Sequence[str | int], document: Any, *, missing: bool) -> tuple[list[str | int], bool]:
    """Drop from an error's location what pydantic adds to it: names of the branches of a union."""
    path: list[str | int] = []
    value = document
    for position, step in enumerate(location):
        if isinstance(value, dict) and (step in value or (missing and position == len(location) - 1)):
            path.append(step)
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int):
            path.append(step)
            value = value[step] if step < len(value) else None
    return path, bool(location) and location[-1] == "[key]"


def _bounded(problems: list[str]) -> list[str]:
    if len(problems) <= MAX_PROBLEMS:
        return problems
    return [*problems[:MAX_PROBLEMS], f"and {len(problems) - MAX_PROBLEMS} more"]
