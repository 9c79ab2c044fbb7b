import torch


def oracle(*, x: torch.Tensor, bias: torch.Tensor, rows: int, cols: int, dtype: str) -> dict[str, torch.Tensor]:
    return {"y": x.double() + bias.double()}
