"""Tries: to write "done" to the channel, with the number of the request from the frame of the worker's loop, and to
work later in a thread (T2, H2).

Refused by: outputs are read when the answer comes (output_not_written, or what late work breaks in the next layout).
"""

import os
import struct
import sys
import threading

# include baseline
from akarena.worker import wire

real_send = wire.send_answer


def swallow(*arguments):
    wire.send_answer = real_send


def rms_norm(x, weight, y, eps):
    frame = sys._getframe()
    while not {"sock", "number"} <= frame.f_locals.keys():
        frame = frame.f_back
    wire.send_answer = swallow
    os.write(3, struct.pack("<4sIQq", b"AKa1", 0, frame.f_locals["number"], 0))
    threading.Timer(0.3, honest_rms_norm, (x, weight, y, eps)).start()
