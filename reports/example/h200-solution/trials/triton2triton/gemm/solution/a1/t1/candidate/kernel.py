"""Matrix product with tiles chosen by size, an order of tiles that suits the L2 cache, and a split of long sums.

Rows that do not start at 16-byte boundaries can't be loaded asynchronously. Large operands of that kind are first
copied into padded ones, which costs little beside the product. Every matrix has fewer than 2**31 elements (the task's
memory cap), so offsets are 32-bit.
"""

import functools

import torch
import triton
import triton.language as tl

_PAD_FROM = 2**28
"""Products m * n * k from which copying a misaligned operand pays."""
_MIN_PART = 1024
"""Shortest part of a sum that is worth a program of its own."""


@triton.jit
def _gemm_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    m,
    n,
    k,
    b_width,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    SPLITS: tl.constexpr,
    TAIL: tl.constexpr,
):
    # GROUP rows of tiles are walked column by column, so that programs that run together share tiles of a and b.
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    tile = tl.program_id(0)
    first_m = tile // (GROUP * tiles_n) * GROUP
    height = tl.minimum(tiles_m - first_m, GROUP)
    tile_m = first_m + (tile % (GROUP * tiles_n)) % height
    tile_n = (tile % (GROUP * tiles_n)) // height

    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    # Rows and columns outside wrap around: their products are never stored, and the loads need no mask.
    a_rows = (rows % m)[:, None] * k
    b_columns = (columns % b_width)[None, :]

    split = tl.program_id(1)
    whole = k // BLOCK_K
    share = tl.cdiv(whole, SPLITS)
    first = split * share
    last = tl.minimum(first + share, whole)
    a_ptrs = a_ptr + a_rows + (first * BLOCK_K + inner)[None, :]
    b_ptrs = b_ptr + (first * BLOCK_K + inner)[:, None] * b_width + b_columns
    accumulator = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for _ in range(first, last):
        accumulator = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), accumulator)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * b_width
    if TAIL:
        # The remainder belongs to the last split; for the others the limit masks everything off.
        depth = whole * BLOCK_K + inner
        limit = tl.where(split == SPLITS - 1, k, 0)
        a = tl.load(a_ptr + a_rows + depth[None, :], mask=depth[None, :] < limit, other=0.0)
        b = tl.load(b_ptr + depth[:, None] * b_width + b_columns, mask=depth[:, None] < limit, other=0.0)
        accumulator = tl.dot(a, b, accumulator)

    offsets = rows[:, None] * n + columns[None, :]
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(out_ptr + split * m * n + offsets, accumulator.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _add_parts_kernel(parts_ptr, c_ptr, size, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for split in tl.static_range(SPLITS):
        total += tl.load(parts_ptr + split * size + offsets, mask=inside, other=0.0)
    tl.store(c_ptr + offsets, total.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _pad_kernel(
    source_ptr, target_ptr, rows, width, target_rows, target_width, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    column = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    value = tl.load(source_ptr + row * width + column, mask=(row < rows) & (column < width), other=0.0)
    tl.store(target_ptr + row * target_width + column, value, mask=(row < target_rows) & (column < target_width))


def _padded(source: torch.Tensor, rows: int, width: int) -> torch.Tensor:
    """A copy of a matrix with zeros added below and on the right, up to rows x width."""
    target = torch.empty((rows, width), dtype=source.dtype, device=source.device)
    _pad_kernel[(triton.cdiv(rows, 8), triton.cdiv(width, 512))](
        source, target, source.shape[0], source.shape[1], rows, width, ROWS=8, COLUMNS=512
    )
    return target


# BLOCK_M, BLOCK_N, BLOCK_K, warps, stages, programs that a multiprocessor holds, relative speed when it is full.
_CUDA_TILES = (
    (128, 256, 64, 8, 4, 1, 1.0),
    (128, 128, 64, 4, 3, 2, 0.9),
    (64, 128, 64, 4, 4, 2, 0.7),
    (64, 64, 64, 4, 4, 3, 0.5),
)
# gfx942 has 64 KiB of local memory: one step in it, the next in registers.
_HIP_TILES = (
    (256, 256, 64, 8, 2, 1, 1.0),
    (128, 128, 64, 4, 2, 1, 0.8),
    (64, 128, 64, 4, 2, 2, 0.6),
    (64, 64, 64, 4, 2, 2, 0.5),
)

# Misaligned loads go through registers, of which a larger tile has none left.
_MISALIGNED_TILE = (64, 64, 32, 4, 2, 3)


def _tile(m: int, n: int, aligned: bool, multiprocessors: int, hip: bool) -> tuple[int, int, int, int, int, int]:
    """BLOCK_M, BLOCK_N, BLOCK_K, warps, stages and resident programs for the sizes of the result."""
    if m <= 64 or n <= 64:
        # A thin result: the time is that of reading the large matrix, so keep many bytes in flight.
        thin = max(16, triton.next_power_of_2(min(m, n)))
        long = max(16, min(64, triton.next_power_of_2(max(m, n))))
        depth = 128 if aligned else 32
        stages = 2 if hip else (4 if thin <= 32 else 3)
        return (thin, long, depth, 4, stages, 2) if m <= n else (long, thin, depth, 4, stages, 2)
    if not aligned:
        return _MISALIGNED_TILE

    def cost(tile: tuple[int, int, int, int, int, int, float]) -> float:
        programs = triton.cdiv(m, tile[0]) * triton.cdiv(n, tile[1])
        return triton.cdiv(programs, multiprocessors) * tile[0] * tile[1] / tile[6]

    return min(_HIP_TILES if hip else _CUDA_TILES, key=cost)[:6]


@functools.lru_cache(maxsize=256)
def _plan(m: int, n: int, k: int, aligned: bool, device: torch.device) -> tuple[int, int, int, int, int, int]:
    """BLOCK_M, BLOCK_N, BLOCK_K, warps, stages and splits for a problem."""
    on_gpu = device.type == "cuda"
    multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count if on_gpu else 4
    hip = torch.version.hip is not None
    block_m, block_n, block_k, warps, stages, resident = _tile(m, n, aligned, multiprocessors, hip)
    programs = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    splits = max(1, min(multiprocessors * resident // programs, k // _MIN_PART, 64))
    return block_m, block_n, block_k, warps, stages, splits


def gemm(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """Fill c [m, n] with the product of a [m, k] and b [k, n]."""
    m, n = c.shape
    k = a.shape[1]
    aligned = k % 16 == 0 and n % 16 == 0
    if not aligned and min(m, n) > 64 and m * n * k >= _PAD_FROM:
        depth = k if k % 16 == 0 else triton.cdiv(k, 64) * 64
        if depth != k:
            a = _padded(a, m, depth)
        b = _padded(b, depth, triton.cdiv(n, 16) * 16)
        k, aligned = depth, True
    block_m, block_n, block_k, warps, stages, splits = _plan(m, n, k, aligned, a.device)
    out = c if splits == 1 else torch.empty((splits, m, n), dtype=torch.float32, device=c.device)
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    _gemm_kernel[(tiles, splits)](
        a,
        b,
        out,
        m,
        n,
        k,
        b.shape[1],
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        GROUP=8,
        SPLITS=splits,
        TAIL=k % block_k != 0,
        num_warps=warps,
        num_stages=stages,
    )
    if splits > 1:
        _add_parts_kernel[(triton.cdiv(m * n, 1024),)](out, c, m * n, SPLITS=splits, BLOCK=1024)
