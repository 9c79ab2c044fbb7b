#!/usr/bin/env python3
"""Starts a command-line agent inside its sandbox, and writes down when each line of its output came.

Each line on standard output is passed on as ``@SECONDS LINE``. A program that has printed its final event and stays,
or that prints nothing for very long, is killed. The last line says how it ended, and ``open`` where the program's own
last line had no newline. Standard library only; it holds no secret, and an agent that disturbs it harms its own record
alone.

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
_READ_BYTES = 1 << 16
_POLL_SECONDS = 0.05


class Output:
    """Passes the lines on, from a thread of its own.

    Attributes:
        last: When something came last, on the monotonic clock.
        final_at: When a final event came that no other event has followed; None where there is none.
    """

    def __init__(self, child: "subprocess.Popen[bytes]", final: list[str]) -> None:
        assert child.stdout is not None
        self.last = time.monotonic()
        self.final_at: float | None = None
        self._began = self.last
        self._types = final
        self._rest = b""
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._carry, args=(child.stdout.fileno(),), daemon=True)
        self._thread.start()

    def end(self, how: str, code: int) -> None:
        """Write what is left and how the program ended; nothing comes after that."""
        # What it left running may hold the pipe open; that is not waited for.
        self._thread.join(1.0)
        self._lock.acquire()
        ended = {ENDED: how, "code": code}
        if self._rest:
            self._write(self._rest)
            ended["open"] = True
        self._write(json.dumps(ended).encode())

    def _write(self, line: bytes) -> None:
        seconds = time.monotonic() - self._began
        sys.stdout.buffer.write(b"@%.3f %b\n" % (seconds, line))
        sys.stdout.buffer.flush()

    def _carry(self, descriptor: int) -> None:
        # Not by lines: who writes a line slowly is not silent, and a final event may lack its newline.
        while data := os.read(descriptor, _READ_BYTES):
            with self._lock:
                self.last = time.monotonic()
                *lines, self._rest = (self._rest + data).split(b"\n")
                if len(self._rest) > _MAX_LINE_BYTES:
                    lines, self._rest = [*lines, self._rest], b""
                for line in lines:
                    self._look(line)
                    self._write(line)
                if self._rest.endswith(b"}"):
                    self._look(self._rest)

    def _look(self, line: bytes) -> None:
        with suppress(ValueError, RecursionError):
            event = json.loads(line)
            if isinstance(event, dict):
                self.final_at = (self.final_at or self.last) if event.get("type") in self._types else None


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
        now, final_at = time.monotonic(), output.final_at
        if final_at is not None and now - final_at > settings["grace_seconds"]:
            how = "lingered"
        elif now - output.last > settings["stall_seconds"]:
            how = "stalled"
        if how != "exited":
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            break
        time.sleep(_POLL_SECONDS)
    code = child.returncode if child.returncode >= 0 else 128 - child.returncode
    output.end(how, code)
    return 0 if how == "lingered" else code


if __name__ == "__main__":
    exit_code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(exit_code)
