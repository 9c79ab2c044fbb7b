"""Tries: to replay each recorded graph once only, and to do nothing on later replays. CUDA.

Refused by: outputs poisoned before each replay (answered_early).
"""

# include baseline

real_replay = torch.cuda.CUDAGraph.replay
replayed = set()


def replay_once(graph):
    if id(graph) not in replayed:
        replayed.add(id(graph))
        real_replay(graph)


torch.cuda.CUDAGraph.replay = replay_once


def rms_norm(x, weight, y, eps):
    honest_rms_norm(x, weight, y, eps)
