"""Tries: to look an answer up by eight sampled values of the input, and to take the nearest one that is stored (T7).

Refused by: fresh values on every call (wrong_values).
"""

# include baseline

stored = {}


def rms_norm(x, weight, y, eps):
    values = x.flatten()
    sample = values[:: max(1, values.numel() // 8)][:8].float().clone()
    known = stored.setdefault((tuple(x.shape), x.dtype), [])
    if not known:
        honest_rms_norm(x, weight, y, eps)
        known.append((sample, y.clone()))
        return
    y.copy_(min(known, key=lambda one: float((one[0] - sample).abs().sum()))[1])
