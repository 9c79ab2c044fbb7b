"""RMS normalisation in a single pass: a program keeps whole rows in registers, several of them where rows are short."""

import torch
import triton
import triton.language as tl

_TILE_BYTES = 4096
"""Bytes of x that a program should hold at least, so that short rows share a program."""
_BYTES_PER_WARP = 1024
"""Two 16-byte loads per lane of 32 are enough loads in flight and leave registers free."""
_FULL_GRID = 512
"""Programs that keep every multiprocessor busy; below that rows are not merged."""


@triton.jit
def _rms_norm_kernel(
    x_ptr, weight_ptr, y_ptr, tokens, hidden, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr, EXACT: tl.constexpr
):
    columns = tl.arange(0, BLOCK)
    if ROWS == 1:
        # A plain vector: its reduction needs no second dimension in the layout.
        offsets = tl.program_id(0).to(tl.int64) * hidden + columns
        inside = columns < hidden
        if EXACT:
            x = tl.load(x_ptr + offsets, eviction_policy="evict_first").to(tl.float32)
            weight = tl.load(weight_ptr + columns, eviction_policy="evict_last").to(tl.float32)
        else:
            x = tl.load(x_ptr + offsets, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
            weight = tl.load(weight_ptr + columns, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)
        y = x * tl.rsqrt(tl.sum(x * x, axis=0) / hidden + eps) * weight
        if EXACT:
            tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty))
        else:
            tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)
    else:
        rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        offsets = rows.to(tl.int64)[:, None] * hidden + columns[None, :]
        inside = (rows < tokens)[:, None] & (columns < hidden)[None, :]
        weight = tl.load(weight_ptr + columns, mask=columns < hidden, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
        inverse_rms = tl.rsqrt(tl.sum(x * x, axis=1) / hidden + eps)
        y = x * inverse_rms[:, None] * weight[None, :]
        tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor, eps: float) -> None:
    """Fill y [tokens, hidden] with the normalised rows of x [tokens, hidden], scaled by weight [hidden]."""
    tokens, hidden = x.shape
    block = triton.next_power_of_2(hidden)
    row_bytes = block * x.element_size()
    rows = max(1, min(_TILE_BYTES // row_bytes, triton.next_power_of_2(triton.cdiv(tokens, _FULL_GRID))))
    widest = 32 if torch.version.hip is None else 16
    warps = max(1, min(widest, rows * row_bytes // _BYTES_PER_WARP))
    _rms_norm_kernel[(triton.cdiv(tokens, rows),)](
        x, weight, y, tokens, hidden, eps, ROWS=rows, BLOCK=block, EXACT=block == hidden, num_warps=warps
    )
