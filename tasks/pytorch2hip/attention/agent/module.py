"""Causal multi-head attention in eager PyTorch."""

import math

import torch


def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return the attention output.

    Args:
        q: Queries, [batch, heads, seq, head_dim], fp32.
        k: Keys, same shape.
        v: Values, same shape.

    Returns:
        [batch, heads, seq, head_dim], fp32.
    """
    seq, head_dim = q.shape[-2:]
    scores = torch.matmul(q, k.transpose(-2, -1)) * (1.0 / math.sqrt(head_dim))
    future = torch.triu(torch.ones(seq, seq, dtype=torch.bool, device=q.device), diagonal=1)
    weights = torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
    return torch.matmul(weights, v)
