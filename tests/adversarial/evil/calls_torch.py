"""Tries: to call torch's own operator instead of writing a kernel, against the rules of the task (H7).

The answer is right. Nothing in a worker's process can be trusted to say which kernels ran, so this is not refused.
"""

import torch


def rms_norm(x, weight, y, eps):
    y.copy_(torch.nn.functional.rms_norm(x, (x.shape[1],), weight, eps))
