"""Tries: once it is recorded, to make torch's synchronisation return at once, so that the worker answers early. CUDA.

Refused by: a secret sample of the outputs is read when the clock stops (answered_early, wrong_when_timed).
"""

# include baseline


def no_wait(*arguments, **options):
    return None


def rms_norm(x, weight, y, eps):
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        torch.cuda.synchronize = no_wait
        torch.cuda.Stream.synchronize = no_wait
        torch.cuda.Event.synchronize = no_wait
    honest_rms_norm(x, weight, y, eps)
