import torch


def oracle(*, a: torch.Tensor, b: torch.Tensor, rows: int, cols: int, scale: float) -> dict[str, torch.Tensor]:
    return {"y": scale * (a.double() * b.double()).sum(dim=1)}
