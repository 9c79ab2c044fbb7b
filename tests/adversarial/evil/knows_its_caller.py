"""Tries: to see from its callers whether it is checked or timed, and to save the second half of the rows when timed
(T10). CUDA.

Refused by: outputs of timed calls are sampled and compared (answered_early, wrong_when_timed).
"""

import sys

# include baseline


def is_timed():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name in ("capture", "plain"):
            return True
        frame = frame.f_back
    return False


def rms_norm(x, weight, y, eps):
    rows = max(1, x.shape[0] // 2) if is_timed() else x.shape[0]
    honest_rms_norm(x[:rows], weight, y[:rows], eps)
