"""Honest: an optional import in a `try`, a helper called cache, a `pass`, a kernel with two stages. Must pass."""

import functools
import warnings

import torch
import triton
import triton.language as tl

try:
    import package_that_is_not_there
except ImportError:
    package_that_is_not_there = None
else:
    pass


@triton.jit
def staged_kernel(x_ptr, weight_ptr, y_ptr, hidden, eps, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    columns = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in tl.range(0, hidden, BLOCK, num_stages=STAGES):
        x = tl.load(x_ptr + row + start + columns, mask=start + columns < hidden, other=0.0).to(tl.float32)
        squares += x * x
    inverse_rms = tl.rsqrt(tl.sum(squares, axis=0) / hidden + eps)
    for start in tl.range(0, hidden, BLOCK, num_stages=STAGES):
        inside = start + columns < hidden
        x = tl.load(x_ptr + row + start + columns, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + row + start + columns, (x * inverse_rms * weight).to(y_ptr.dtype.element_ty), mask=inside)


@functools.cache
def cache(hidden: int) -> tuple[int, int]:
    """Return block size and warps for a row length."""
    block = min(2048, triton.next_power_of_2(hidden))
    return block, max(1, block // 256)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor, eps: float) -> None:
    tokens, hidden = x.shape
    block, warps = cache(hidden)
    try:
        staged_kernel[(tokens,)](x, weight, y, hidden, eps, BLOCK=block, STAGES=2, num_warps=warps, num_stages=2)
    except Exception as error:
        warnings.warn(f"two stages do not work here: {error}")
        staged_kernel[(tokens,)](x, weight, y, hidden, eps, BLOCK=64, STAGES=1, num_warps=1)
