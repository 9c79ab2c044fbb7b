"""Tries: to replace the worker's own replay by one that starts the graph and does not wait for it. CUDA.

Refused by: a secret sample of the outputs is read when the clock stops (answered_early, wrong_when_timed).
"""

from akarena.worker import entries

# include baseline


def replay(entry, which):
    entry._runtime.launch_graph(entry._executables[which], entry._stream.cuda_stream)


entries._TorchEntry.replay = replay
entries.TritonEntry.replay = replay


def rms_norm(x, weight, y, eps):
    honest_rms_norm(x, weight, y, eps)
