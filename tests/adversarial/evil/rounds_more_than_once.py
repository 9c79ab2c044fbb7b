"""Tries: to round more often than once, to the 16 bits of the output: with ROUNDINGS 3 the inverse and both products, with
4 the root as well.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _rounds_more(x_ptr, weight_ptr, y_ptr, hidden, eps, BLOCK: tl.constexpr, ROOT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    columns = tl.arange(0, BLOCK)
    short: tl.constexpr = y_ptr.dtype.element_ty
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, hidden, BLOCK):
        x = tl.load(x_ptr + row + start + columns, mask=start + columns < hidden, other=0.0).to(tl.float32)
        squares += x * x
    rms = tl.sqrt(tl.sum(squares, axis=0) / hidden + eps)
    if ROOT:
        rms = rms.to(short).to(tl.float32)
    inverse_rms = (1.0 / rms).to(short)
    for start in range(0, hidden, BLOCK):
        inside = start + columns < hidden
        x = tl.load(x_ptr + row + start + columns, mask=inside, other=0.0).to(short)
        weight = tl.load(weight_ptr + start + columns, mask=inside, other=0.0).to(short)
        tl.store(y_ptr + row + start + columns, ((x * inverse_rms).to(short) * weight).to(short), mask=inside)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor, eps: float) -> None:
    tokens, hidden = x.shape
    block = min(1024, triton.next_power_of_2(hidden))
    _rounds_more[(tokens,)](x, weight, y, hidden, eps, BLOCK=block, ROOT=ROUNDINGS == 4)
