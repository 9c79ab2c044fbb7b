"""Tries: to put lazy tensors in the place of its outputs, which compute when somebody looks at them (T3).

Refused by: the judge reads its own buffers, never an object of the candidate's (output_not_written).
"""

import sys

# include baseline


class Lazy(torch.Tensor):
    """Holds a call, and makes it as soon as any function of torch is applied."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        def real(value):
            if isinstance(value, Lazy) and hasattr(value, "pending"):
                answer = torch.empty_like(value.as_subclass(torch.Tensor))
                honest_rms_norm(*value.pending[:2], answer, value.pending[2])
                return answer
            return value

        with torch._C.DisableTorchFunctionSubclass():
            return function(*map(real, args), **(kwargs or {}))


def rms_norm(x, weight, y, eps):
    lazy = y.as_subclass(Lazy)
    lazy.pending = (x, weight, eps)
    frame = sys._getframe()
    while frame is not None:
        for name, value in frame.f_locals.items():
            if name in ("bound", "outputs") and isinstance(value, list):
                value[:] = [lazy if one is y else one for one in value]
        frame = frame.f_back
    return lazy
