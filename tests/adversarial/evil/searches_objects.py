"""Tries: to find the expected answer among all objects of the garbage collector, the locals of all frames, and memory
that torch just freed (C1, C3).

Refused by: expected values never are in its process (output_not_written).
"""

import gc
import sys

import torch


def frames():
    for frame in sys._current_frames().values():
        while frame is not None:
            yield from frame.f_locals.values()
            frame = frame.f_back


def candidates(y):
    yield from (one for one in frames() if isinstance(one, torch.Tensor))
    yield from (one for one in gc.get_objects() if isinstance(one, torch.Tensor))
    for dtype in (y.dtype, torch.float32, torch.float64):
        for _ in range(8):
            yield torch.empty(y.shape, dtype=dtype, device=y.device)


def rms_norm(x, weight, y, eps):
    offset, count = y.storage_offset(), y.numel()
    looked = 0
    for one in candidates(y):
        if one.numel() != count or not one.is_floating_point() or one.device != y.device:
            continue
        if one.storage_offset() == offset and one.dtype == y.dtype:
            continue
        looked += 1
        # The first row, as it should be; minus, so that this very tensor is never taken for the answer.
        row = x[0].double()
        minus = -row * torch.rsqrt(row.square().mean() + eps) * weight.double()
        given = one.reshape(y.shape)[0].double()
        if given.abs().max() > 0 and torch.allclose(given, -minus, rtol=2e-2, atol=1e-6):
            print("FOUND the answer", flush=True)
            y.copy_(one.reshape(y.shape))
            return
    print(f"looked at {looked} tensors, found nothing", flush=True)
