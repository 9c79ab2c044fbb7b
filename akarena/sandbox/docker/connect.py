"""The first program of every container: takes its orders and descriptors from a socket, then becomes the real program.

Started with the interpreter of the image as `python -I -S connect.py SOCKET`, so it is standard library only and alone.
The orders say what to execute; the descriptors become 3, 4 and so on. Of the connection nothing is left to the program:
it ends with the execution, or carries back why there was none.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct
import sys
from contextlib import suppress

LENGTH = struct.Struct("!Q")
MAX_FDS = 20
_FIRST = 3
_HIGH = 500
"""Above every number that a program is given."""
_NOT_EXECUTED = 127


def receive(channel: socket.socket) -> tuple[dict[str, object], list[int]]:
    """Read one message: its length, with the descriptors, and JSON."""
    head, fds, _, _ = socket.recv_fds(channel, LENGTH.size, MAX_FDS, socket.MSG_CMSG_CLOEXEC)
    (length,) = LENGTH.unpack(head)
    data = bytearray()
    while len(data) < length:
        piece = channel.recv(min(length - len(data), 1 << 20))
        if not piece:
            raise EOFError("the orders are cut")
        data += piece
    return json.loads(data), fds


def _lift(fd: int) -> int:
    lifted = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    os.close(fd)
    return lifted


def _arrange(fds: list[int]) -> None:
    """Leave the standard streams and the given descriptors, and nothing else that would be inherited."""
    lifted = [_lift(fd) for fd in fds]
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 (pathlib is not worth its import here)
        if 2 < int(name) < _HIGH:
            with suppress(OSError):  # The listing's own descriptor is gone by now.
                os.close(int(name))
    for number, fd in enumerate(lifted, _FIRST):
        os.dup2(fd, number, inheritable=True)


def _become(orders: dict[str, object]) -> None:
    argv, directory, environment = orders["argv"], orders["directory"], orders["environment"]
    assert isinstance(argv, list)
    assert isinstance(directory, str)
    assert isinstance(environment, dict)
    os.umask(0o022)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        # The interpreter ignores some, which an execution would inherit.
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.chdir(directory)
    os.execvpe(argv[0], argv, {**environment, "PWD": os.getcwd()})  # noqa: PTH109 (likewise)


def main() -> None:
    """Connect, obey, and say what went wrong."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    channel.connect(sys.argv[1])
    orders, fds = receive(channel)
    channel = socket.socket(fileno=_lift(channel.detach()))
    try:
        _arrange(fds)
        _become(orders)
    except OSError as error:
        channel.sendall(f"{error.filename or ''}: {error.strerror}".lstrip(": ").encode())
    os._exit(_NOT_EXECUTED)


if __name__ == "__main__":
    main()
