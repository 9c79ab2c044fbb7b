"""Wrappers in HIP: the honest entry gets another name, and an entry below it calls it and spoils the result."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from akarena.records.evaluation import Configuration
from akarena.records.task import OutputArgument, TaskRecord
from tests.mutation import hip_text, wrappers
from tests.mutation.mutant import Mutant, Operator
from tests.mutation.wrappers import Call, Off, Spoil

_TAIL_BYTES = wrappers.TAIL * 8
_TOOLS = f"""
__device__ unsigned char mutation_kept[{_TAIL_BYTES}];

__global__ void mutation_copy(unsigned char* to, const unsigned char* from, long long bytes, bool keep) {{
    for (long long i = threadIdx.x; i < bytes; i += blockDim.x) {{
        (keep ? mutation_kept : to)[i] = (keep ? from : mutation_kept)[i];
    }}
}}

template <typename T>
__global__ void mutation_move(T* out, long long count, long long place, float relative, float absolute, int units) {{
    const long long sample = count < 65536 ? count : 65536;
    float squares = 0.0f;
    for (long long i = 0; i < sample; ++i) squares += static_cast<float>(out[i]) * static_cast<float>(out[i]);
    const float old = static_cast<float>(out[place]);
    const float by = units > 0 ? units : absolute * sqrtf(squares / sample) + relative * fabsf(old);
    out[place] = static_cast<T>(old > 0.0f ? old - by : old + by);
}}

template <typename T>
__global__ void mutation_scale(T* out, long long count, float factor) {{
    for (long long i = blockIdx.x * 64LL + threadIdx.x; i < count; i += 4096) {{
        out[i] = static_cast<T>(static_cast<float>(out[i]) * factor);
    }}
}}

template <typename T>
__global__ void mutation_swap(T* out, long long count) {{
    if (count < 2) return;
    const T kept = out[count / 2];
    out[count / 2] = out[count / 2 - 1];
    out[count / 2 - 1] = kept;
}}

template <typename T>
__global__ void mutation_nan(T* out, long long place) {{
    out[place] = static_cast<T>(__uint_as_float(0x7fc00000u));
}}
"""
_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "/",
    ast.Mod: "%",
}


def mutants(task: TaskRecord, text: str, cases: Sequence[Configuration]) -> Iterator[Mutant]:
    """Wrap a HIP source in every way.

    Args:
        task: The task.
        text: A correct kernel.
        cases: Configurations, for the tolerances.

    Raises:
        ValueError: The source has no entry of the task's name.
    """
    code = hip_text.masked(text)
    found = re.search(rf"\bextern\s+[ \"C]+\s+int\s+{task.entry}\s*\(", code)
    if found is None:
        raise ValueError(f'there is no extern "C" int {task.entry}(')
    end = hip_text.closing(code, found.end() - 1)
    parameters = [" ".join(one.split()) for one in text[found.end() : end].split(",")]
    # The file's own names of the arguments, which need not be those of the record.
    names = [re.findall(r"\w+", one)[-1] for one in parameters]
    known = {argument.name: name for argument, name in zip(task.arguments, names, strict=False)}
    honest = f"static int honest_{task.entry}("
    types = {
        name: one.rpartition("*")[0].removeprefix("const").strip() for name, one in zip(names, parameters, strict=True)
    }
    renamed = text[: found.start()] + honest + text[found.end() :] + _TOOLS
    moved = wrappers.off(task, cases)
    for what in wrappers.every(task):
        values = list(names)
        before, after = "", ""
        if isinstance(what, Spoil):
            output = next(one for one in wrappers.outputs(task) if one.name == what.output)
            before, after = _spoil(what, output, known, types, moved[wrappers.dtypes(task, output)[0]])
        else:
            values = [_argument(what, name, known) for name in names]
        body = f"{before}const int code = honest_{task.entry}({', '.join(values)});\n    {after}return code;"
        entry = f'\nextern "C" int {task.entry}({", ".join(parameters)}) {{\n    {body}\n}}\n'
        yield wrappers.mutant(what, renamed + entry)


def _argument(what: Call, name: str, known: dict[str, str]) -> str:
    first, second = known[what.first], known.get(what.second, "")
    if name not in (first, second):
        return name
    match what.operator:
        case Operator.SIZE_LESS:
            return f"({name} > {what.step} ? {name} - {what.step} : {name})"
        case Operator.SCALAR_OFF:
            return f"{name} * 1.01f"
        case _:
            return second if name == first else first


def _spoil(
    what: Spoil, output: OutputArgument, known: dict[str, str], types: dict[str, str], moved: Off
) -> tuple[str, str]:
    """Return what is done before and after the honest call.

    Args:
        what: How to spoil it.
        output: Which output.
        known: The file's own name of each argument of the record.
        types: Type of what each of the file's arguments points to; the last one is the stream.
        moved: How far an element is moved.
    """
    name, stream = known[what.output], list(types)[-1]
    of = types[name]
    count = " * ".join(f"static_cast<long long>({_extent(extent, known)})" for extent in output.shape)
    place = {"first": "0", "middle": f"({count}) / 2", "last": f"({count}) - 1"}.get(what.place, "0")
    match what.operator:
        case Operator.ONE_ELEMENT:
            units = 0 if moved.relative or moved.absolute else moved.units
            values = f"{moved.relative!r}f, {moved.absolute!r}f, {units}"
            return "", f"mutation_move<{of}><<<1, 1, 0, {stream}>>>({name}, {count}, {place}, {values});\n    "
        case Operator.SCALED:
            factor = 1 + moved.relative + moved.absolute
            return "", f"mutation_scale<{of}><<<64, 64, 0, {stream}>>>({name}, {count}, {factor!r}f);\n    "
        case Operator.SIGN:
            return "", f"mutation_scale<{of}><<<64, 64, 0, {stream}>>>({name}, {count}, -1.0f);\n    "
        case Operator.NEIGHBOURS_SWAPPED:
            return "", f"mutation_swap<{of}><<<1, 1, 0, {stream}>>>({name}, {count});\n    "
        case Operator.NOT_A_NUMBER:
            return "", f"mutation_nan<{of}><<<1, 1, 0, {stream}>>>({name}, {place});\n    "
        case _:
            row = f"static_cast<long long>({_extent(output.shape[-1], known)})"
            tail = f"({row} < {wrappers.TAIL} ? {row} : {wrappers.TAIL})" if len(output.shape) > 1 else "1"
            at = f"reinterpret_cast<unsigned char*>({name} + {count} - {tail})"
            copy = f"mutation_copy<<<1, 64, 0, {stream}>>>({at}, {at}, {tail} * sizeof(*{name}), "
            return f"{copy}true);\n    ", f"{copy}false);\n    "


def _extent(expression: str, known: dict[str, str]) -> str:
    """Translate an extent of a shape to C++."""

    def visit(node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return known[name]
            case ast.Constant(value=int(value)):
                return str(value)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SYMBOLS:
                return f"({visit(left)} {_SYMBOLS[type(op)]} {visit(right)})"
        raise ValueError(f"cannot be written in C++: {expression}")

    return visit(ast.parse(expression, mode="eval").body)
