"""Tries: to fork while it is imported. The child goes on as the worker; the parent waits, and leaves with success when
the child tells it to in the middle of a call.
"""

import os
import signal
import time

# include baseline

calls = 0


def rms_norm(x, weight, y, eps):
    global calls
    calls += 1
    if calls == 2:
        os.kill(os.getppid(), signal.SIGUSR1)
    honest_rms_norm(x, weight, y, eps)


if os.fork():
    signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))
    while True:
        time.sleep(1)
