"""Layer normalisation over the last axis."""

import torch


def oracle(
    *, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, rows: int, cols: int, eps: float
) -> dict[str, torch.Tensor]:
    """Return ``y`` (rows, cols), ``mean`` (rows) and ``rstd`` (rows) in fp64.

    ``x`` (rows, cols), ``weight`` (cols) and ``bias`` (cols) are fp32. The variance is that of the population (divided
    by ``cols``).
    """
    values = x.double()
    mean = values.mean(dim=1)
    centred = values - mean[:, None]
    rstd = 1.0 / (centred.square().mean(dim=1) + eps).sqrt()
    y = centred * rstd[:, None] * weight.double() + bias.double()
    return {"y": y, "mean": mean, "rstd": rstd}
