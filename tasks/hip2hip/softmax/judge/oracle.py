"""Softmax over the last axis."""

import torch


def oracle(*, x: torch.Tensor, rows: int, cols: int) -> dict[str, torch.Tensor]:
    """Return ``y`` (rows, cols) in fp64 for ``x`` (rows, cols) in fp32."""
    values = x.double()
    shifted = values - values.amax(dim=1, keepdim=True)
    exponentials = shifted.exp()
    return {"y": exponentials / exponentials.sum(dim=1, keepdim=True)}
