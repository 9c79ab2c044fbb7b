# TASK triton2triton/rms_norm
"""Tries: to let the calls of a replay overlap, by replacing the worker's function that puts them one behind another. CUDA.

No gain by: calls replayed by themselves, which are charged where they take longer than within a block.
"""

"""RMS normalisation of the rows of a matrix, one program per row."""

import torch
import triton
import triton.language as tl


@triton.jit
def _rms_norm_kernel(x_ptr, weight_ptr, y_ptr, hidden, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    columns = tl.arange(0, BLOCK)

    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, hidden, BLOCK):
        inside = start + columns < hidden
        x = tl.load(x_ptr + row + start + columns, mask=inside, other=0.0).to(tl.float32)
        squares += x * x
    inverse_rms = tl.rsqrt(tl.sum(squares, axis=0) / hidden + eps)

    for start in range(0, hidden, BLOCK):
        inside = start + columns < hidden
        x = tl.load(x_ptr + row + start + columns, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + columns, mask=inside, other=0.0).to(tl.float32)
        y = x * inverse_rms * weight
        tl.store(y_ptr + row + start + columns, y.to(y_ptr.dtype.element_ty), mask=inside)


def honest_rms_norm(x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor, eps: float) -> None:
    """Fill y [tokens, hidden] with the normalised rows of x [tokens, hidden], scaled by weight [hidden]."""
    tokens, hidden = x.shape
    block = min(1024, triton.next_power_of_2(hidden))
    _rms_norm_kernel[(tokens,)](x, weight, y, hidden, eps, BLOCK=block)
import ctypes

from akarena.worker.runtime import Runtime


def all_at_once(self, graphs, stream):
    whole, executable, node = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    self._call("GraphCreate", ctypes.byref(whole), ctypes.c_uint(0))
    for graph in graphs:
        none = ctypes.c_size_t(0)
        self._call("GraphAddChildGraphNode", ctypes.byref(node), whole, None, none, ctypes.c_void_p(graph))
    self._call("GraphInstantiateWithFlags", ctypes.byref(executable), whole, ctypes.c_ulonglong(0))
    self._call("GraphUpload", executable, ctypes.c_void_p(stream))
    self.synchronize()
    return executable.value


Runtime.chain = all_at_once


def rms_norm(x, weight, y, eps):
    honest_rms_norm(x, weight, y, eps)
