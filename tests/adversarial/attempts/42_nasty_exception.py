# TASK triton2triton/rms_norm
# TRIES raises an exception whose text is 64 MB, whose `__str__` raises SystemExit after a second, with a chain of 10000 causes
# SUCCESS void, a hang, or a report that can't be written
import sys
import time

import torch
import triton


class Nasty(BaseException):
    def __str__(self) -> str:
        time.sleep(1)
        raise SystemExit(0)

    __repr__ = __str__

    def __class_getitem__(cls, item):
        raise Nasty


def rms_norm(x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor, eps: float) -> None:
    error = Nasty("x" * (64 << 20))
    for _ in range(10000):
        new = Nasty("cause")
        new.__cause__ = error
        error = new
    sys.excepthook = lambda *_: time.sleep(2)
    raise error
