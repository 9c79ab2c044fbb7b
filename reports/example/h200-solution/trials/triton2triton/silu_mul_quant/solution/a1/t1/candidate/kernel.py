"""SiLU-and-multiply with quantisation per token in a single pass: a program keeps its rows of y in registers."""

import torch
import triton
import triton.language as tl

_TILE = 1024
"""Elements of y that a program should hold at least, so that short rows share a program."""
_PER_WARP = 512
"""Elements of y a warp: two 16-byte loads of each half per lane of 32."""
_FULL_GRID = 512
"""Programs that keep every multiprocessor busy; below that rows are not merged."""


@triton.jit
def _silu_mul(gate, up):
    gate = gate.to(tl.float32)
    return gate / (1.0 + tl.exp(-gate)) * up.to(tl.float32)


@triton.jit
def _quantise(y, inverse_scale, INTEGER: tl.constexpr, DTYPE: tl.constexpr):
    value = y * inverse_scale
    if INTEGER:
        # Adding and taking away 1.5 * 2**23 rounds to the nearest integer, ties to even.
        value = (value + 12582912.0) - 12582912.0
    return value.to(DTYPE)


@triton.jit
def _silu_mul_quant_kernel(
    x_ptr,
    q_ptr,
    scale_ptr,
    tokens,
    hidden,
    Q_MAX: tl.constexpr,
    INTEGER: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    columns = tl.arange(0, BLOCK)
    if ROWS == 1:
        row = tl.program_id(0).to(tl.int64)
        inside = columns < hidden
        x_row = x_ptr + row * 2 * hidden
        gate = tl.load(x_row + columns, mask=inside, other=0.0, eviction_policy="evict_first")
        up = tl.load(x_row + hidden + columns, mask=inside, other=0.0, eviction_policy="evict_first")
        y = _silu_mul(gate, up)
        largest = tl.maximum(tl.max(tl.abs(y), axis=0), 1e-10)
        tl.store(scale_ptr + row, largest / Q_MAX)
        q = _quantise(y, Q_MAX / largest, INTEGER, q_ptr.dtype.element_ty)
        tl.store(q_ptr + row * hidden + columns, q, mask=inside)
    else:
        rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        inside = (rows < tokens)[:, None] & (columns < hidden)[None, :]
        start = rows.to(tl.int64)[:, None] * hidden
        gate = tl.load(x_ptr + start * 2 + columns[None, :], mask=inside, other=0.0)
        up = tl.load(x_ptr + start * 2 + hidden + columns[None, :], mask=inside, other=0.0)
        y = _silu_mul(gate, up)
        largest = tl.maximum(tl.max(tl.abs(y), axis=1), 1e-10)
        tl.store(scale_ptr + rows, largest / Q_MAX, mask=rows < tokens)
        q = _quantise(y, (Q_MAX / largest)[:, None], INTEGER, q_ptr.dtype.element_ty)
        tl.store(q_ptr + start + columns[None, :], q, mask=inside)


def silu_mul_quant(x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor) -> None:
    """Fill q [tokens, hidden] and scale [tokens] from x [tokens, 2 * hidden], whose rows hold gates, then factors."""
    tokens, hidden = q.shape
    integer = q.dtype == torch.int8
    block = triton.next_power_of_2(hidden)
    rows = max(1, min(_TILE // block, triton.next_power_of_2(triton.cdiv(tokens, _FULL_GRID))))
    warps = max(1, min(16, rows * block // _PER_WARP))
    _silu_mul_quant_kernel[(triton.cdiv(tokens, rows),)](
        x,
        q,
        scale,
        tokens,
        hidden,
        Q_MAX=127.0 if integer else 240.0,
        INTEGER=integer,
        ROWS=rows,
        BLOCK=block,
        num_warps=warps,
    )
