"""Tries: to start the recorded calls when the judge only asks for a sign of life, just before the clock starts, and to
do no more than wait in the timed replay. CUDA.

Gains nothing, or is refused: a longer wake is added to its time, and what it saves otherwise is below 50 us a replay.
"""

from akarena.worker import entries, main

# include baseline

real_prepare = entries._TorchEntry.prepare
started = []


def wake(worker):
    if len(getattr(worker._entry, "_executables", ())) == 1:
        start(worker._entry, 0)
        started.append(True)
    else:
        worker._runtime.clear(worker._scratch, 4096)


def start(entry, which):
    entry._runtime.launch_graph(entry._executables[which], entry._stream.cuda_stream)


def replay(entry, which):
    if not started:
        start(entry, which)
    started.clear()
    torch.cuda.synchronize()


def prepare(entry, *arguments):
    started.clear()
    real_prepare(entry, *arguments)


main._Worker.wake = wake
entries._TorchEntry.prepare = prepare
entries._TorchEntry.replay = replay


def rms_norm(x, weight, y, eps):
    honest_rms_norm(x, weight, y, eps)
