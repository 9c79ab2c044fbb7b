import torch


def oracle(*, x: torch.Tensor, shift: torch.Tensor, rows: int, cols: int, scale: float) -> dict[str, torch.Tensor]:
    return {"y": scale * x.double() + shift.double()}
