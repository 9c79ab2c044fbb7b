"""Feed-forward block of a transformer layer in eager PyTorch."""

import torch
from torch.nn import functional


def forward(x: torch.Tensor, w1: torch.Tensor, b1: torch.Tensor, w2: torch.Tensor, b2: torch.Tensor) -> torch.Tensor:
    """Return the block's output.

    Args:
        x: [tokens, d_model], fp32.
        w1: [d_hidden, d_model], fp32.
        b1: [d_hidden], fp32.
        w2: [d_model, d_hidden], fp32.
        b2: [d_model], fp32.

    Returns:
        [tokens, d_model], fp32.
    """
    hidden = functional.gelu(functional.linear(x, w1, b1))
    return functional.linear(hidden, w2, b2)
