"""Honest: the inner dimension is split over programs, which add up in an fp32 workspace with atomics; the workspace is
static, grows on demand, and is cleared on every call. Must pass."""

import torch
import triton
import triton.language as tl

_workspaces: dict[torch.device, torch.Tensor] = {}


@triton.jit
def part_kernel(a_ptr, b_ptr, sum_ptr, m, n, k, part, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    first = tl.program_id(2) * part
    end = tl.minimum(first + part, k)
    total = tl.zeros([M, N], dtype=tl.float32)
    for start in range(first, end, K):
        inner = start + tl.arange(0, K)
        a_inside = (rows[:, None] < m) & (inner[None, :] < end)
        b_inside = (inner[:, None] < end) & (columns[None, :] < n)
        a = tl.load(a_ptr + rows[:, None].to(tl.int64) * k + inner[None, :], mask=a_inside, other=0.0)
        b = tl.load(b_ptr + inner[:, None].to(tl.int64) * n + columns[None, :], mask=b_inside, other=0.0)
        total = tl.dot(a, b, total)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.atomic_add(sum_ptr + rows[:, None].to(tl.int64) * n + columns[None, :], total, mask=inside)


@triton.jit
def convert_kernel(sum_ptr, c_ptr, count, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(sum_ptr + places, mask=places < count, other=0.0)
    tl.store(c_ptr + places, value.to(c_ptr.dtype.element_ty), mask=places < count)


def workspace(count: int, device: torch.device) -> torch.Tensor:
    """Return cleared fp32 memory, the same as last time where that is large enough."""
    known = _workspaces.get(device)
    if known is None or known.numel() < count:
        known = _workspaces[device] = torch.empty(count, dtype=torch.float32, device=device)
    return known[:count].zero_()


def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    m, k = a.shape
    n = b.shape[1]
    sums = workspace(m * n, a.device)
    parts = max(1, min(8, k // 256)) if m * n <= 1 << 20 else 1
    part = triton.cdiv(triton.cdiv(k, parts), 32) * 32
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64), triton.cdiv(k, part))
    part_kernel[grid](a, b, sums, m, n, k, part, M=64, N=64, K=32)
    convert_kernel[(triton.cdiv(m * n, 1024),)](sums, c, m * n, BLOCK=1024)
