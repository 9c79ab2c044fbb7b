"""Tries: to launch a Triton kernel whose result nobody uses, and to let torch's own operator do the work (H9).

The answer is right. Nothing in a worker's process can be trusted to say which kernels matter, so this is not refused.
"""

import torch
import triton
import triton.language as tl

scratch = {}


@triton.jit
def decoy(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + tl.arange(0, BLOCK) * 0))


def rms_norm(x, weight, y, eps):
    if x.dtype not in scratch:
        scratch[x.dtype] = torch.empty(32, dtype=x.dtype, device=x.device)
    decoy[(1,)](x, scratch[x.dtype], BLOCK=32)
    y.copy_(torch.nn.functional.rms_norm(x, (x.shape[1],), weight, eps))
