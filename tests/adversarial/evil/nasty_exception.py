"""Tries: to raise an exception with a text of 64 MB and a chain of 10000 causes, whose `__str__` waits and then ends the
process with success.
"""

import sys
import time


class Nasty(BaseException):
    def __str__(self):
        time.sleep(1)
        raise SystemExit(0)

    __repr__ = __str__


def rms_norm(x, weight, y, eps):
    error = Nasty("x" * (64 << 20))
    for _ in range(10000):
        new = Nasty("cause")
        new.__cause__ = error
        error = new
    sys.excepthook = lambda *_: time.sleep(2)
    raise error
