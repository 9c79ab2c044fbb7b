"""Honest: Triton's autotuner chooses between two configurations for each row length. Must pass."""

import torch
import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK": 512}, num_warps=4, num_stages=2),
    triton.Config({"BLOCK": 1024}, num_warps=8, num_stages=2),
]


@triton.autotune(configs=CONFIGS, key=["hidden"])
@triton.jit
def tuned_kernel(x_ptr, weight_ptr, y_ptr, hidden, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    columns = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, hidden, BLOCK):
        x = tl.load(x_ptr + row + start + columns, mask=start + columns < hidden, other=0.0).to(tl.float32)
        squares += x * x
    inverse_rms = tl.rsqrt(tl.sum(squares, axis=0) / hidden + eps)
    for start in range(0, hidden, BLOCK):
        inside = start + columns < hidden
        x = tl.load(x_ptr + row + start + columns, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + row + start + columns, (x * inverse_rms * weight).to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor, eps: float) -> None:
    tokens, hidden = x.shape
    tuned_kernel[(tokens,)](x, weight, y, hidden, eps)
