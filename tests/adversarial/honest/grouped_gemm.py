"""Honest: one-dimensional grid in groups of rows, tile sizes chosen by shape, `num_stages=2`, fp32 sums. Must pass."""

import torch
import triton
import triton.language as tl


@triton.jit
def grouped_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr
):
    program = tl.program_id(0)
    down = tl.cdiv(m, M)
    across = tl.cdiv(n, N)
    first = program // (GROUP * across) * GROUP
    size = tl.minimum(down - first, GROUP)
    within = program % (GROUP * across)
    rows = (first + within % size) * M + tl.arange(0, M)
    columns = (within // size) * N + tl.arange(0, N)
    total = tl.zeros([M, N], dtype=tl.float32)
    for start in range(0, k, K):
        inner = start + tl.arange(0, K)
        a_inside = (rows[:, None] < m) & (inner[None, :] < k)
        b_inside = (inner[:, None] < k) & (columns[None, :] < n)
        a = tl.load(a_ptr + rows[:, None].to(tl.int64) * k + inner[None, :], mask=a_inside, other=0.0)
        b = tl.load(b_ptr + inner[:, None].to(tl.int64) * n + columns[None, :], mask=b_inside, other=0.0)
        total = tl.dot(a, b, total)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None].to(tl.int64) * n + columns[None, :], total.to(c_ptr.dtype.element_ty), mask=inside)


def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    m, k = a.shape
    n = b.shape[1]
    rows, columns = (16, 64) if m <= 16 else (64, 64) if m * n < 1 << 20 else (128, 64)
    grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns),)
    grouped_kernel[grid](a, b, c, m, n, k, M=rows, N=columns, K=32, GROUP=8, num_warps=4, num_stages=2)
