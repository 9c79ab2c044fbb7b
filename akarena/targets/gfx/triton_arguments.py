"""The arguments that a Triton host function is called with: read from JSON, made into tensors without values.

The file looks like this, in the order of the call::

    {"entry": "softmax", "arguments": [
        {"name": "x", "kind": "tensor", "dtype": "fp16", "shape": [512, 1024]},
        {"name": "eps", "kind": "float", "value": 1e-5},
        {"name": "rows", "kind": "int", "value": 512}]}
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DTYPES = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "uint8": "uint8",
    "bool": "bool",
}
"""Our names of element types, and torch's."""

_FP8 = {"gfx942": "float8_e4m3fnuz", "gfx950": "float8_e4m3fn"}
_MAX_FILE_BYTES = 1024 * 1024
_MAX_ARGUMENTS = 100
_MAX_DIMENSIONS = 16
_MAX_ELEMENTS = 2**40


class InvalidArgumentsError(ValueError):
    """The file of arguments is not as expected; the message is one line."""


@dataclass(frozen=True)
class Argument:
    """One argument of the call.

    Attributes:
        name: For messages only: arguments are passed by position.
        dtype: Our name of the element type; ``None`` for a scalar.
        shape: Extents of the tensor; empty for a scalar.
        value: The scalar; ``None`` for a tensor.
    """

    name: str
    dtype: str | None
    shape: tuple[int, ...]
    value: int | float | bool | None

    def torch_dtype(self, architecture: str) -> str:
        """Return torch's name of the element type; ``fp8`` is the format that ``architecture`` computes with."""
        return _FP8[architecture] if self.dtype == "fp8" else DTYPES[str(self.dtype)]


def load_arguments(path: Path) -> tuple[str | None, list[Argument]]:
    """Read the name of the host function (``None`` when the file has none) and its arguments.

    Raises:
        InvalidArgumentsError: When the file cannot be read or does not say what is expected.
    """
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MAX_FILE_BYTES + 1))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidArgumentsError(f"{path}: not readable as JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("arguments"), list):
        raise InvalidArgumentsError(f"{path}: expected an object with a list 'arguments'")
    entry = content.get("entry")
    if entry is not None and not (isinstance(entry, str) and entry.isidentifier()):
        raise InvalidArgumentsError(f"{path}: 'entry' is {str(entry)[:80]!r}, expected the name of a function")
    if len(content["arguments"]) > _MAX_ARGUMENTS:
        raise InvalidArgumentsError(f"{path}: more than {_MAX_ARGUMENTS} arguments")
    return entry, [_argument(item, f"{path}: argument {index}") for index, item in enumerate(content["arguments"])]


def _argument(item: Any, where: str) -> Argument:
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        raise InvalidArgumentsError(f"{where}: expected an object with a 'name'")
    kind = item.get("kind")
    if kind == "tensor":
        return _tensor(item, where)
    value: Any = item.get("value")
    accepted = {"int": (int,), "float": (int, float), "bool": (bool,)}.get(str(kind))
    if accepted is None:
        raise InvalidArgumentsError(f"{where}: kind is {str(kind)[:80]!r}, expected tensor, int, float or bool")
    # bool is a kind of int in Python, but not here.
    if type(value) not in accepted:
        raise InvalidArgumentsError(f"{where}: value is {str(value)[:80]!r}, expected {kind}")
    return Argument(item["name"], None, (), float(value) if kind == "float" else value)


def _tensor(item: dict[str, Any], where: str) -> Argument:
    dtype: Any = item.get("dtype")
    shape: Any = item.get("shape")
    if not isinstance(dtype, str) or dtype not in (*DTYPES, "fp8"):
        raise InvalidArgumentsError(f"{where}: dtype is {str(dtype)[:80]!r}, expected one of {', '.join(DTYPES)}, fp8")
    extents = isinstance(shape, list) and all(type(extent) is int and extent >= 0 for extent in shape)
    if not extents or len(shape) > _MAX_DIMENSIONS or math.prod(shape) > _MAX_ELEMENTS:
        raise InvalidArgumentsError(f"{where}: shape is {str(shape)[:80]}, expected a list of extents")
    return Argument(item["name"], dtype, tuple(shape), None)
