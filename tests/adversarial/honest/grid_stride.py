"""Honest: a fixed number of programs, each taking row after row; sums of fp16 values in fp32. Must pass."""

import torch
import triton
import triton.language as tl

_programs: dict[int, int] = {}


@triton.jit
def grid_stride_kernel(x_ptr, weight_ptr, y_ptr, tokens, hidden, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < hidden
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    for row in range(tl.program_id(0), tokens, tl.num_programs(0)):
        offset = tl.cast(row, tl.int64) * hidden
        x = tl.load(x_ptr + offset + columns, mask=inside, other=0.0).to(tl.float32)
        inverse_rms = tl.rsqrt(tl.sum(x * x, axis=0) / hidden + eps)
        tl.store(y_ptr + offset + columns, (x * inverse_rms * weight).to(y_ptr.dtype.element_ty), mask=inside)


def programs(device: torch.device) -> int:
    """Return how many programs keep the device busy."""
    if device.type != "cuda":
        return 4
    index = device.index or 0
    if index not in _programs:
        _programs[index] = 8 * torch.cuda.get_device_properties(device).multi_processor_count
    return _programs[index]


def rms_norm(x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor, eps: float) -> None:
    tokens, hidden = x.shape
    block = triton.next_power_of_2(hidden)
    grid = (min(tokens, programs(x.device)),)
    grid_stride_kernel[grid](x, weight, y, tokens, hidden, eps, BLOCK=block, num_warps=16 if block > 8192 else 4)
