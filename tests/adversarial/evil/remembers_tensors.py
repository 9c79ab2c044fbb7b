"""Tries: to recognise a call by the pointer of its storage, its shapes and torch's version counters, which nobody here
ever raises, and to hand out the stored answer (T6).

Refused by: fresh values on every call (wrong_values).
"""

# include baseline

answers = {}


def rms_norm(x, weight, y, eps):
    key = (x.untyped_storage().data_ptr(), x._version, weight._version, tuple(x.shape), x.dtype, eps)
    if key not in answers:
        answers[key] = torch.empty_like(y)
        honest_rms_norm(x, weight, answers[key], eps)
    y.copy_(answers[key])
