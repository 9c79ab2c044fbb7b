"""Cross entropy with label smoothing in eager PyTorch."""

import torch


def forward(logits: torch.Tensor, targets: torch.Tensor, smoothing: float) -> torch.Tensor:
    """Return the loss of each row.

    Args:
        logits: [rows, classes], fp32.
        targets: [rows], int32, the class of each row.
        smoothing: Share of the target distribution that is spread evenly over all classes.

    Returns:
        [rows], fp32.
    """
    log_probabilities = torch.log_softmax(logits, dim=-1)
    target_loss = -log_probabilities.gather(1, targets.long().unsqueeze(1)).squeeze(1)
    uniform_loss = -log_probabilities.mean(dim=-1)
    return (1.0 - smoothing) * target_loss + smoothing * uniform_loss
