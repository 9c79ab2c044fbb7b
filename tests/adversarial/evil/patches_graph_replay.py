"""Tries: to replay each recorded graph once only, and to do nothing on later replays. CUDA.

Refused by: outputs poisoned before each replay (answered_early).
"""

# include baseline
from akarena.worker.runtime import Runtime

real_launch = Runtime.launch_graph
replayed = set()


def launch_once(self, executable, stream):
    if executable not in replayed:
        replayed.add(executable)
        real_launch(self, executable, stream)


Runtime.launch_graph = launch_once


def rms_norm(x, weight, y, eps):
    honest_rms_norm(x, weight, y, eps)
