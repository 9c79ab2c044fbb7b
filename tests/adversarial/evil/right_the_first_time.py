"""Tries: to take the first call on a shape for the check and all later ones for the timing, which it answers with the
first row only (T9, T10).

Refused by: every call is on poisoned outputs, and several calls on each shape are checked (output_not_written).
"""

# include baseline

seen = set()


def rms_norm(x, weight, y, eps):
    key = (tuple(x.shape), x.dtype, eps)
    rows = 1 if key in seen else x.shape[0]
    seen.add(key)
    honest_rms_norm(x[:rows], weight, y[:rows], eps)
