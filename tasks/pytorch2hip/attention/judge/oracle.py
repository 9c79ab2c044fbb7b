"""Reference: causal multi-head attention, in fp64."""

import math

import torch


def oracle(
    *, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, batch: int, heads: int, seq: int, head_dim: int
) -> dict[str, torch.Tensor]:
    """Return out, [batch, heads, seq, head_dim], one batch entry and head at a time to stay small in memory."""
    out = torch.empty(batch * heads, seq, head_dim, dtype=torch.float64, device=q.device)
    future = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(diagonal=1)
    queries, keys, values = (x.reshape(batch * heads, seq, head_dim) for x in (q, k, v))
    for i in range(batch * heads):
        scores = queries[i].double() @ keys[i].double().T / math.sqrt(head_dim)
        out[i] = torch.softmax(scores.masked_fill(future, -math.inf), dim=-1) @ values[i].double()
    return {"out": out.reshape(batch, heads, seq, head_dim)}
