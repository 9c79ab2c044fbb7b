#!/usr/bin/env python3
"""Starts a command-line agent inside its sandbox, and writes down when each line of its output came.

Each line on standard output is passed on as ``@SECONDS LINE``. A program that has printed its final event and stays,
or that prints nothing for very long, is killed. The last line says how it ended. Standard library only; it holds no
secret, and an agent that disturbs it harms its own record alone.

Usage: supervise.py SETTINGS PROGRAM [ARGUMENT ...], where SETTINGS is a JSON object: ``final`` (types of events after
which nothing more is to come), ``grace_seconds``, ``stall_seconds``, ``stdin`` (a file, or null). ``$NAME`` in an
argument is replaced by that environment variable.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

ENDED = "akarena_ended"
_MAX_LINE_BYTES = 16 << 20
_POLL_SECONDS = 0.05


class Output:
    """Passes the lines on, from a thread of its own.

    Attributes:
        last: When the last line came, on the monotonic clock.
        final: Whether a final event was seen.
    """

    def __init__(self, child: "subprocess.Popen[bytes]", final: list[str]) -> None:
        self.last = time.monotonic()
        self.final = False
        self._began = self.last
        self._child = child
        self._types = final
        self._lock = threading.Lock()
        self.thread = threading.Thread(target=self._carry, daemon=True)
        self.thread.start()

    def write(self, line: bytes) -> None:
        """Write one line with its time."""
        with self._lock:
            seconds = time.monotonic() - self._began
            sys.stdout.buffer.write(b"@%.3f %b\n" % (seconds, line))
            sys.stdout.buffer.flush()

    def _carry(self) -> None:
        assert self._child.stdout is not None
        while line := self._child.stdout.readline(_MAX_LINE_BYTES):
            self.last = time.monotonic()
            self.write(line.rstrip(b"\r\n"))
            with suppress(ValueError, RecursionError):
                event = json.loads(line)
                if isinstance(event, dict):
                    self.final = event.get("type") in self._types


def main(arguments: list[str]) -> int:
    """Run the program; the exit code is its own, or 128 + the signal that ended it."""
    settings = json.loads(arguments[0])
    argv = [os.path.expandvars(argument) for argument in arguments[1:]]
    source = settings["stdin"] or os.devnull
    try:
        with open(source, "rb") as stdin:  # noqa: PTH123 (pathlib is not worth its import here)
            child = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, start_new_session=True)
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
        return 127
    output = Output(child, settings["final"])
    how = "exited"
    while child.poll() is None:
        silent = time.monotonic() - output.last
        if output.final and silent > settings["grace_seconds"]:
            how = "lingered"
        elif silent > settings["stall_seconds"]:
            how = "stalled"
        if how != "exited":
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            break
        time.sleep(_POLL_SECONDS)
    # What it left running may hold the pipe open; that is not waited for.
    output.thread.join(1.0)
    code = child.returncode if child.returncode >= 0 else 128 - child.returncode
    output.write(json.dumps({ENDED: how, "code": code}).encode())
    return 0 if how == "lingered" else code


if __name__ == "__main__":
    exit_code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(exit_code)
