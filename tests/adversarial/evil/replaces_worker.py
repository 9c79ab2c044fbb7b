"""Tries: to overwrite the worker's own functions, so that every request is done at once, and to replace whatever could
compare results in its process (H1).

Refused by: the deciding code runs in another process, on outputs that it reads itself (output_not_written).
"""

import sys

import torch
from akarena.worker import entries, main, memory, runtime, wire

main._Worker.do = lambda worker, command, payload: None
memory.Arena.guard = memory.Arena.unguard = lambda *arguments: None
runtime.Runtime.synchronize = lambda *arguments: None
for name in ("prepare", "call", "capture", "replay", "plain"):
    setattr(entries._TorchEntry, name, lambda *arguments: None)

for name in ("allclose", "equal", "isclose"):
    setattr(torch, name, lambda *arguments, **options: True)
torch.testing.assert_close = lambda *arguments, **options: None
torch.Tensor.__eq__ = lambda left, right: torch.ones((), dtype=torch.bool)
for name, module in list(sys.modules.items()):
    if name.startswith("akarena."):
        for function in ("compare", "verdict", "check", "judged"):
            if hasattr(module, function):
                setattr(module, function, lambda *arguments, **options: None)

real_send = wire.send_answer


def send_done(sock, status, number, code=0):
    real_send(sock, wire.Status.DONE, number, 0)


wire.send_answer = send_done


def rms_norm(x, weight, y, eps):
    return None
