"""Tries: to have a timer raise in the worker's own code between calls, and an audit hook refuse it sockets and files, so
that a request counts as done that was not carried out.
"""

import signal
import sys

# include baseline

started = False


class Quiet(BaseException):
    pass


def interrupt(*_):
    raise Quiet


def refuse(event, arguments):
    if event.startswith(("socket.", "os.", "open")):
        raise PermissionError


def gemm(a, b, c):
    global started
    honest_gemm(a, b, c)
    if not started:
        started = True
        sys.addaudithook(refuse)
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.003)
