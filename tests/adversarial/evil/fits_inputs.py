"""Tries: to answer with its weights and to overwrite the input so that this is right (C2).

Refused by: the reference uses the judge's own copies, and inputs are compared after the call (input_changed,
wrong_values).
"""


def rms_norm(x, weight, y, eps):
    x.fill_(256.0)
    y.copy_(weight.expand_as(y))
