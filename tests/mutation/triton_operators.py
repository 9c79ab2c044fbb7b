"""Mutation operators over Triton sources, by the positions of the syntax tree.

As with HIP, what host code decides between right kernels is left alone; of it only the sizes of grids are touched.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import accumulate

from tests.mutation.mutant import Edit, Operator, exchanges

_LOOSE: dict[type[ast.cmpop], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_TURNED: dict[type[ast.cmpop], str] = {ast.Lt: ">", ast.LtE: ">=", ast.Gt: "<", ast.GtE: "<="}
_OPPOSITE: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "//",
}
_EXTREMES = {"maximum": "minimum", "minimum": "maximum", "max": "min", "min": "max"}
_REAL_CALLS = frozenset({"exp", "exp2", "log", "rsqrt", "sqrt", "sum", "dot", "sigmoid"})
"""Functions of Triton whose result is a real number, not an index."""
_OTHER_NAMES = (("rows", "columns"),)


class Text:
    """A source with its tree and the positions of nodes in characters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        lines = text.splitlines(keepends=True)
        self._starts = list(accumulate((len(line) for line in lines), initial=0))
        self._lines = [line.encode() for line in lines]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where a node begins and ends."""
        assert isinstance(node, ast.expr | ast.stmt | ast.keyword | ast.arg)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def at(self, line: int, column: int) -> int:
        """Return the position of a column, which the tree counts in bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1][:column].decode())

    def of(self, node: ast.AST) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def edit(self, operator: Operator, node: ast.AST, new: str) -> Edit:
        """Propose a text in place of a node."""
        start, end = self.span(node)
        return Edit(operator, start, end, new)

    def kernels(self) -> list[ast.FunctionDef]:
        """Return the functions that Triton compiles."""
        functions = [node for node in self.tree.body if isinstance(node, ast.FunctionDef)]
        return [node for node in functions if any("jit" in self.of(mark) for mark in node.decorator_list)]


def edits(text: str, sizes: Sequence[str]) -> Iterator[Edit]:
    """Propose every edit of a Triton source.

    Args:
        text: The source.
        sizes: Names of the task's sizes.
    """
    source = Text(text)
    yield from _ceilings(source)
    for kernel in source.kernels():
        # A docstring is no code.
        body = kernel.body[1 if ast.get_docstring(kernel) is not None and len(kernel.body) > 1 else 0]
        last = "if tl.program_id(0) == tl.num_programs(0) - 1: return"
        start, _ = source.span(body)
        if not any(isinstance(node, ast.Return) and node.value for node in ast.walk(kernel)):
            yield Edit(Operator.ENDS_EARLY, start, start, f"{last}\n{' ' * body.col_offset}")
        for statement in kernel.body:
            for node in ast.walk(statement):
                yield from _of_node(source, node, sizes)
        yield from _names(source, kernel, sizes)


def _of_node(source: Text, node: ast.AST, sizes: Sequence[str]) -> Iterator[Edit]:
    match node:
        case ast.Compare():
            yield from _comparison(source, node)
        case ast.BinOp():
            yield from _arithmetic(source, node)
        case ast.Call():
            yield from _call(source, node)
        case ast.Subscript(slice=ast.Tuple(elts=[ast.expr() as first, ast.expr() as second])):
            if _is_new_axis(first) != _is_new_axis(second):
                yield source.edit(Operator.AXIS_SWAPPED, node.slice, f"{source.of(second)}, {source.of(first)}")
        case ast.Constant(value=float(value)):
            for new in (value * 10, 0.0) if value else (1.0,):
                yield source.edit(Operator.CONSTANT, node, repr(new))
        case ast.For(iter=ast.Call() as call):
            yield from _loop(source, call)
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield source.edit(Operator.STATEMENT_DELETED, node, "pass")
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _is_real(node.value):
                target = source.of(node.target)
                rounded = f"{target} = ({target} + {source.of(node.value)})"
                yield source.edit(Operator.LOW_PRECISION, node, f"{rounded}.to(tl.float16).to(tl.float32)")
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(value)):
                yield source.edit(Operator.STATEMENT_DELETED, node, "pass")
            # A function of the file's own may give anything, an integer too.
            if _is_real(value) and not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name)):
                rounded = f"({source.of(value)}).to(tl.float16).to(tl.float32)"
                yield source.edit(Operator.LOW_PRECISION, value, rounded)


def _comparison(source: Text, node: ast.Compare) -> Iterator[Edit]:
    left, right = node.left, node.comparators[0]
    kind = type(node.ops[0])
    if len(node.ops) > 1 or kind not in _LOOSE:
        return
    before, after = source.of(left), source.of(right)
    yield source.edit(Operator.BOUND, node, f"{before} {_LOOSE[kind]} {after}")
    yield source.edit(Operator.COMPARISON_TURNED, node, f"{before} {_TURNED[kind]} {after}")
    yield source.edit(Operator.BOUND_LESS, right, f"{after} - 1")


def _arithmetic(source: Text, node: ast.BinOp) -> Iterator[Edit]:
    if type(node.op) not in _OPPOSITE:
        return
    _, left_end = source.span(node.left)
    right_start, end = source.span(node.right)
    # Brackets round an operand lie between its ends and the operator, which is all that changes here.
    between = source.text[left_end:right_start]
    if "#" in between or "\n" in between:
        return
    sign = next(sign for sign in ("//", "*", "+", "-", "/", "%") if sign in between)
    at = left_end + between.index(sign)
    yield Edit(Operator.ARITHMETIC, at, at + len(sign), _OPPOSITE[type(node.op)])
    if "(" not in between and ")" not in between:
        yield Edit(Operator.TERM_DROPPED, left_end, end, "")


def _call(source: Text, node: ast.Call) -> Iterator[Edit]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name in _EXTREMES:
        assert isinstance(node.func, ast.Attribute)
        yield source.edit(Operator.MIN_MAX, node.func, f"{source.of(node.func.value)}.{_EXTREMES[name]}")
    if name == "program_id" and isinstance(node.args[0], ast.Constant):
        yield source.edit(Operator.AXIS_SWAPPED, node.args[0], "1" if node.args[0].value == 0 else "0")
    if name == "zeros":
        arguments = [source.of(argument) for argument in node.args]
        rest = [source.of(keyword) for keyword in node.keywords]
        yield source.edit(Operator.INITIAL_VALUE, node, f"tl.full({', '.join([arguments[0], '1.0', *rest])})")
    masks = [keyword for keyword in node.keywords if keyword.arg in ("mask", "other")]
    for keyword in node.keywords:
        if keyword.arg == "axis" and isinstance(keyword.value, ast.Constant):
            yield source.edit(Operator.AXIS_SWAPPED, keyword.value, "1" if keyword.value.value == 0 else "0")
        if keyword.arg == "other":
            yield source.edit(Operator.MASK_DROPPED, keyword.value, "1.0")
    if masks and node.args:
        _, first = source.span(node.args[-1])
        kept = [source.of(keyword) for keyword in node.keywords if keyword not in masks]
        _, end = source.span(node)
        yield Edit(Operator.MASK_DROPPED, first, end, "".join(f", {text}" for text in kept) + ")")


def _loop(source: Text, call: ast.Call) -> Iterator[Edit]:
    if source.of(call.func) not in ("range", "tl.range", "tl.static_range") or not call.args:
        return
    texts = [source.of(argument) for argument in call.args]
    first, step = (texts[0] if len(texts) > 1 else "0"), (texts[2] if len(texts) > 2 else "1")
    end = texts[min(1, len(texts) - 1)]
    name = source.of(call.func)
    yield source.edit(Operator.ENDS_EARLY, call, f"{name}({first}, {first} + {step}, {step})")
    yield source.edit(Operator.BOUND_LESS, call, f"{name}({first}, {end} - 1, {step})")
    yield source.edit(Operator.FIRST_INDEX, call, f"{name}({first} + {step}, {end}, {step})")


def _ceilings(source: Text) -> Iterator[Edit]:
    kernels = source.kernels()
    names = {kernel.name for kernel in kernels}
    nodes = list(ast.walk(source.tree))
    grids: list[ast.AST] = [
        node.slice
        for node in nodes
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in names
    ]
    used = {node.id for grid in grids for node in ast.walk(grid) if isinstance(node, ast.Name)}
    named = [node.value for node in nodes if isinstance(node, ast.Assign) and source.of(node.targets[0]) in used]
    for node in [*(node for kernel in kernels for node in ast.walk(kernel)), *_terms([*grids, *named])]:
        if isinstance(node, ast.Call) and source.of(node.func) in ("tl.cdiv", "triton.cdiv"):
            numerator, divisor = (source.of(argument) for argument in node.args)
            yield source.edit(Operator.CEIL_TO_FLOOR, node, f"(({numerator}) // ({divisor}))")


def _terms(nodes: list[ast.AST]) -> Iterator[ast.AST]:
    """Return what tuples and arithmetic are made of; what lies deeper in calls only tunes."""
    for node in nodes:
        if isinstance(node, ast.Tuple | ast.BinOp):
            yield from _terms(list(ast.iter_child_nodes(node)))
        else:
            yield node


def _names(source: Text, kernel: ast.FunctionDef, sizes: Sequence[str]) -> Iterator[Edit]:
    """Exchange a size or an index for another one of the same function."""
    nodes = [node for statement in kernel.body for node in ast.walk(statement) if isinstance(node, ast.Name)]
    known = {node.id for node in nodes} | {argument.arg for argument in kernel.args.args}
    pairs = exchanges(sizes, _OTHER_NAMES)
    for node in nodes:
        for one, other in pairs:
            if node.id == one and other in known and isinstance(node.ctx, ast.Load):
                yield source.edit(Operator.AXIS_SWAPPED, node, other)


def _is_new_axis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_real(node: ast.expr) -> bool:
    """Say whether a value is surely a real number and not an index: it divides, or calls for such a result."""
    for part in ast.walk(node):
        if isinstance(part, ast.Compare):
            return False
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
            return True
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _REAL_CALLS:
            return True
    return False
