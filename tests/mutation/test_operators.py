"""Each operator gives the edit that it says, and only in code."""

from __future__ import annotations

import ast

import pytest

from akarena import configurations, paths, tasks
from akarena.records.task import TargetName
from tests.mutation import catalogue, hip_operators, hip_text, mutant, probe, triton_operators
from tests.mutation.mutant import Edit, Mutant, Operator

HIP = """\
#include <hip/hip_runtime.h>
// for (int i = 0; i < n; ++i) sum += x[i] * 2.0f;
constexpr int kBlock = 64;
__global__ void scale(float* y, const float* x, int rows, int cols, float eps) {
    const int row = blockIdx.x * kBlock + threadIdx.x;  // row < rows
    float sum = 0.0f;
    for (int col = 0; col < cols; ++col) {
        sum += x[row * cols + col] - eps;
    }
    __syncthreads();
    if (row < rows) {
        y[row] = fmaxf(sum, 0.5f);
    }
}
extern "C" int scale_rows(float* y, const float* x, int rows, int cols, float eps, hipStream_t stream) {
    const int tuned = rows < 7 ? 1 : 2;
    scale<<<(rows + kBlock - 1) / kBlock, kBlock, 0, stream>>>(y, x, rows, cols, eps);
    return hipGetLastError() + 0 * tuned;
}
"""

TRITON = '''\
"""Sums + products < bounds."""

import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, rows, cols, eps, BLOCK: tl.constexpr):
    """Rows < cols."""
    columns = tl.arange(0, BLOCK)  # columns < cols
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + start + columns, mask=start + columns < cols, other=0.0)
        total += tl.exp(x * 0.5) / eps
    y = tl.max(total, axis=0)
    tl.store(y_ptr + tl.program_id(0), y)


def scale_rows(x, y, eps):
    blocks = 4 if x.shape[0] < 7 else 8
    _kernel[(triton.cdiv(x.shape[0], blocks),)](x, y, x.shape[0], x.shape[1], eps, BLOCK=blocks)
'''

HIP_CHANGES = {
    Operator.BOUND: ("col < cols", "col <= cols"),
    Operator.BOUND_LESS: ("col < cols;", "col < cols - 1;"),
    Operator.COMPARISON_TURNED: ("if (row < rows)", "if (row > rows)"),
    Operator.CEIL_TO_FLOOR: ("(rows + kBlock - 1) / kBlock", "(rows) / kBlock"),
    Operator.AXIS_SWAPPED: ("blockIdx.x * kBlock", "blockIdx.y * kBlock"),
    Operator.TERM_DROPPED: ("+ col] - eps;", "+ col];"),
    Operator.CONSTANT: ("0.5f", "5.0f"),
    Operator.FIRST_INDEX: ("int col = 0;", "int col = 1;"),
    Operator.ARITHMETIC: ("row * cols", "row / cols"),
    Operator.MIN_MAX: ("fmaxf(", "fminf("),
    Operator.MASK_DROPPED: ("if (row < rows)", "if (true)"),
    Operator.BARRIER_DROPPED: ("    __syncthreads();", "    ;"),
    Operator.LOW_PRECISION: (
        "sum += x[row * cols + col] - eps;",
        "sum = __uint_as_float(__float_as_uint(sum + (x[row * cols + col] - eps)) & 0xffffe000u);",
    ),
    Operator.INITIAL_VALUE: ("float sum = 0.0f", "float sum = 1.0f"),
    Operator.STATEMENT_DELETED: ("        y[row] = fmaxf(sum, 0.5f);", "        ;"),
    Operator.ENDS_EARLY: ("float eps) {\n", "float eps) { if (blockIdx.x == gridDim.x - 1) return;\n"),
}
TRITON_CHANGES = {
    Operator.BOUND: ("mask=start + columns < cols", "mask=start + columns <= cols"),
    Operator.BOUND_LESS: ("range(0, cols, BLOCK)", "range(0, cols - 1, BLOCK)"),
    Operator.COMPARISON_TURNED: ("mask=start + columns < cols", "mask=start + columns > cols"),
    Operator.CEIL_TO_FLOOR: ("triton.cdiv(x.shape[0], blocks)", "((x.shape[0]) // (blocks))"),
    Operator.AXIS_SWAPPED: ("axis=0", "axis=1"),
    Operator.TERM_DROPPED: ("tl.exp(x * 0.5) / eps", "tl.exp(x * 0.5)"),
    Operator.FIRST_INDEX: ("range(0, cols, BLOCK)", "range(0 + BLOCK, cols, BLOCK)"),
    Operator.ARITHMETIC: ("tl.exp(x * 0.5) / eps", "tl.exp(x * 0.5) * eps"),
    Operator.MIN_MAX: ("tl.max(", "tl.min("),
    Operator.MASK_DROPPED: (", mask=start + columns < cols, other=0.0)", ")"),
    Operator.CONSTANT: ("x * 0.5", "x * 5.0"),
    Operator.LOW_PRECISION: (
        "total += tl.exp(x * 0.5) / eps",
        "total = (total + tl.exp(x * 0.5) / eps).to(tl.float16).to(tl.float32)",
    ),
    Operator.INITIAL_VALUE: ("tl.zeros([BLOCK], dtype", "tl.full([BLOCK], 1.0, dtype"),
    Operator.STATEMENT_DELETED: ("    tl.store(y_ptr + tl.program_id(0), y)", "    pass"),
    Operator.ENDS_EARLY: ("range(0, cols, BLOCK)", "range(0, 0 + BLOCK, BLOCK)"),
}
SIZES = ("rows", "cols")


def _made(text: str, *, hip: bool) -> list[Mutant]:
    edits = hip_operators.edits(text, SIZES) if hip else triton_operators.edits(text, SIZES)
    return list(mutant.apply(edits, "solution", text))


@pytest.mark.parametrize("operator", HIP_CHANGES)
def test_hip(operator: Operator) -> None:
    old, new = HIP_CHANGES[operator]
    assert HIP.replace(old, new, 1) in [one.text for one in _made(HIP, hip=True) if one.operator is operator]


@pytest.mark.parametrize("operator", TRITON_CHANGES)
def test_triton(operator: Operator) -> None:
    old, new = TRITON_CHANGES[operator]
    assert TRITON.replace(old, new, 1) in [one.text for one in _made(TRITON, hip=False) if one.operator is operator]


def test_rounding_in_hip() -> None:
    text = "__device__ float f(float x) {\n    return rintf(x);\n}\n"
    assert [one.text for one in _made(text, hip=True)] == [text.replace("rintf", "floorf")]


@pytest.mark.parametrize("text", [HIP, TRITON], ids=["hip", "triton"])
def test_one_place_differs_and_it_is_code(text: str) -> None:
    hip = text is HIP
    edits = list(hip_operators.edits(text, SIZES) if hip else triton_operators.edits(text, SIZES))
    assert edits
    for edit in edits:
        for line in text[: edit.start].count("\n"), text[: edit.end].count("\n"):
            assert not text.splitlines()[line].lstrip().startswith(("//", "#include", '"""'))
        column = edit.start - text.rfind("\n", 0, edit.start) - 1
        comment = text.splitlines()[text.count("\n", 0, edit.start)].find("//" if hip else "  #")
        assert comment < 0 or column <= comment
    for one in _made(text, hip=hip):
        assert one.text != text
        assert any(text[: edit.start] + edit.text + text[edit.end :] == one.text for edit in edits)


def test_what_host_code_chooses_is_left_alone() -> None:
    lines = {one.line_text for text in (HIP, TRITON) for one in _made(text, hip=text is HIP)}
    assert not [line for line in lines if "7" in line]


def test_mask_keeps_offsets() -> None:
    text = '#define A 1\nint a = 1; // b\nconst char* c = "d"; /* e\nf */ int g;\n'
    code = hip_text.masked(text)
    assert len(code) == len(text)
    assert code.split() == ["int", "a", "=", "1;", "const", "char*", "c", "=", ";", "int", "g;"]


def test_the_same_mutants_are_chosen_and_each_operator_is() -> None:
    every = _made(HIP, hip=True)
    few = mutant.choose(every, 20)
    assert few == mutant.choose(every, 20)
    assert few[:10] == mutant.choose(every, 10)
    assert {one.operator for one in few} == {one.operator for one in every}


def test_an_edit_that_changes_nothing_is_no_mutant() -> None:
    edits = [Edit(Operator.BOUND, 0, 1, "a"), Edit(Operator.BOUND, 0, 1, "b"), Edit(Operator.CONSTANT, 0, 1, "b")]
    assert [one.text for one in mutant.apply(edits, "solution", "abc")] == ["bbc"]


def test_a_trap_stands_before_the_statement() -> None:
    inside = probe.with_trap(HIP, HIP.index("fmaxf"), hip=True)
    assert inside is not None
    assert inside.index("nullptr") < inside.index("y[row] = fmaxf")
    assert inside.index("nullptr") > inside.index("if (row < rows)")
    python = probe.with_trap(TRITON, TRITON.index("tl.exp"), hip=False)
    assert python is not None
    ast.parse(python)
    assert python.index("static_assert") > python.index("x = tl.load")


def test_every_task_has_mutants_of_every_kind() -> None:
    for task in tasks.load_all(paths.root() / "tasks"):
        found = catalogue.all_mutants(task, configurations.seen(task.record, TargetName.CPU))
        assert set(found) == {*catalogue.sources(task), catalogue.WRAPPED}
        ids = [one.id for own in found.values() for one in own]
        assert len(ids) == len(set(ids)), task.id
        assert {one.operator for one in found[catalogue.WRAPPED]} >= {Operator.ONE_ELEMENT, Operator.TAIL_STALE}
        for source, own in found.items():
            assert len(own) >= 9, (task.id, source)
            if task.record.editable[0].endswith(".py"):
                for one in own:
                    ast.parse(one.text)
