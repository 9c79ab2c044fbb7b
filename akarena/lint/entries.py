"""Whether the functions of a task have the parameters that ``task.toml`` declares. Nothing is compiled or imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from akarena.records.task import (
    Argument,
    InputArgument,
    OutputArgument,
    ScalarArgument,
    SizeArgument,
    TaskRecord,
)

_C_TYPES: dict[str, tuple[str, ...]] = {
    "fp32": ("float",),
    "fp16": ("__half", "half"),
    "bf16": ("__hip_bfloat16", "hip_bfloat16"),
    "fp8": ("unsigned char", "uint8_t"),
    "int64": ("long long", "int64_t"),
    "int32": ("int", "int32_t"),
    "int8": ("signed char", "int8_t"),
    "uint8": ("unsigned char", "uint8_t"),
}
"""C types of an element; the first is the one that messages name."""
_NOT_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_RESTRICT = re.compile(r"\b(?:__restrict__|__restrict)\b")
_PARAMETER = re.compile(r"\s*(const\s+)?([\w\s]+?)(\s+const)?\s*(\*?)\s*(?:const\s+)?(\w+)\s*")


@dataclass(frozen=True)
class _Parameter:
    const: bool
    c_type: str
    pointer: bool
    name: str


def check_hip(text: str, task: TaskRecord) -> Iterator[str]:
    """Yield what is wrong with the ``extern "C"`` definition of the entry in a HIP source."""
    code = _NOT_CODE.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)
    pattern = rf'extern\s+"C"\s+([\w\s]*?)\b{re.escape(task.entry)}\s*\(([^()]*)\)\s*(?:noexcept\s*)?\{{'
    match = re.search(pattern, code)
    wanted = ", ".join([*(_c_text(argument) for argument in task.arguments), "hipStream_t stream"])
    if match is None:
        yield f'is not defined; expected extern "C" int {task.entry}({wanted})'
        return
    if match[1].strip() not in ("int", "hipError_t"):
        yield f"returns {match[1].strip()!r}, expected int or hipError_t"
    given = [part.strip() for part in _RESTRICT.sub(" ", match[2]).split(",")]
    if len(given) != len(task.arguments) + 1:
        yield f"takes {len(given)} parameters, expected {len(task.arguments) + 1}: ({wanted})"
        return
    for position, (argument, parameter) in enumerate(zip(task.arguments, given, strict=False), 1):
        if not _fits(argument, parameter):
            yield f"parameter {position} is {' '.join(parameter.split())!r}, expected {_c_text(argument)!r}"
    if not re.fullmatch(r"hipStream_t\s+\w+", given[-1]):
        yield f"the last parameter is {' '.join(given[-1].split())!r}, expected 'hipStream_t stream'"


def check_triton(text: str, task: TaskRecord) -> Iterator[str]:
    """Yield what is wrong with the function ``entry`` of a Triton source."""
    yield from _check_python(text, task.entry, [argument.name for argument in task.arguments])


def check_module(text: str, task: TaskRecord) -> Iterator[str]:
    """Yield what is wrong with ``forward`` of a PyTorch baseline: inputs in declared order, then scalars."""
    inputs = [argument.name for argument in task.arguments if isinstance(argument, InputArgument)]
    scalars = [argument.name for argument in task.arguments if isinstance(argument, ScalarArgument)]
    yield from _check_python(text, "forward", inputs + scalars)


def check_oracle(text: str, task: TaskRecord) -> Iterator[str]:
    """Yield what is wrong with ``oracle``: it is called with every input and every axis by name."""
    function = _function(text, "oracle")
    if isinstance(function, str):
        yield function
        return
    arguments = function.args
    if arguments.posonlyargs:
        yield "takes positional-only parameters, expected keyword-only ones"
    accepted = {parameter.arg for parameter in (*arguments.args, *arguments.kwonlyargs)}
    passed = {argument.name for argument in task.arguments if isinstance(argument, InputArgument)} | set(task.axes)
    if arguments.kwarg is None and passed - accepted:
        yield f"does not accept {', '.join(sorted(passed - accepted))}"
    if accepted - passed:
        yield f"asks for {', '.join(sorted(accepted - passed))}, neither an input nor an axis"


def _check_python(text: str, name: str, wanted: list[str]) -> Iterator[str]:
    function = _function(text, name)
    if isinstance(function, str):
        yield function
        return
    arguments = function.args
    given = [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args)]
    if given != wanted or arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
        yield f"is def {name}({ast.unparse(arguments)}), expected the parameters ({', '.join(wanted)})"


def _function(text: str, name: str) -> ast.FunctionDef | str:
    """Return the function of a module, or what is wrong."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        return f"the file is not Python ({error})"
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    return f"is not defined; expected def {name}(...) at the top level"


def _c_text(argument: Argument) -> str:
    match argument:
        case OutputArgument():
            return f"{_c_types(argument)[0]}* {argument.name}"
        case InputArgument():
            return f"const {_c_types(argument)[0]}* {argument.name}"
        case SizeArgument():
            return f"int {argument.name}"
        case ScalarArgument():
            return f"float {argument.name}"


def _c_types(argument: InputArgument | OutputArgument) -> tuple[str, ...]:
    return _C_TYPES.get(argument.dtype, (argument.dtype,))


def _fits(argument: Argument, text: str) -> bool:
    match = _PARAMETER.fullmatch(text)
    if match is None:
        return False
    found = _Parameter(bool(match[1] or match[3]), " ".join(match[2].split()), bool(match[4]), match[5])
    if found.name != argument.name:
        return False
    if isinstance(argument, InputArgument | OutputArgument):
        is_input = isinstance(argument, InputArgument)
        return found.pointer and found.const is is_input and found.c_type in _c_types(argument)
    return not found.pointer and found.c_type == ("int" if isinstance(argument, SizeArgument) else "float")
