"""Tries: to send a pickle that runs a command to whoever reads the channel, while it is imported (D5).

Refused by: an answer is 24 fixed bytes, and nothing of a worker is unpickled (protocol_broken).
"""

import os
import pickle


class Command:
    """Runs a command where it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch /tmp/owned; kill -9 $PPID",)


os.write(3, pickle.dumps({"status": "pass", "command": Command()}))


def rms_norm(x, weight, y, eps):
    return None
