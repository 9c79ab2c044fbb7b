"""Runs a compiler within limits of time and output."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

MAX_LOG_BYTES = 16 * 1024


def run_logged(
    command: Sequence[str], cwd: Path, timeout_s: float, environment: dict[str, str] | None = None
) -> tuple[int | None, str]:
    """Run ``command`` to its end and return its exit code and what it printed.

    Args:
        command: Program and arguments; no shell.
        cwd: Working directory.
        timeout_s: After this many seconds the command and its children are killed.
        environment: Replaces the environment when given.

    Returns:
        The exit code (negative for a signal, ``None`` after a timeout) and the log, bounded by ``MAX_LOG_BYTES``.
    """
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code: int | None = None
        try:
            code = process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            # A child may outlive its parent in both cases.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return code, excerpt(log)


def excerpt(file: BinaryIO, limit: int = MAX_LOG_BYTES) -> str:
    """Return ``file`` as text; of more than ``limit`` bytes only the head and the tail, with a note of what is missing.

    The first error explains most, the last lines say how it ended, so both are kept.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= limit:
        data = file.read(limit)
    else:
        half = limit // 2
        head = file.read(half)
        file.seek(size - half)
        data = head + f"\n[{size - 2 * half} bytes left out]\n".encode() + file.read(half)
    return printable(data.decode("utf-8", errors="replace"))


def printable(text: str) -> str:
    """Return ``text`` without the characters that could command a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def read_regular(path: Path, limit: int) -> bytes:
    """Read a file that a hostile process wrote.

    Raises:
        OSError: When it is missing, a link, no plain file, or longer than ``limit`` bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > limit:
            raise OSError(f"{path.name} is no plain file of at most {limit} bytes")
        return file.read(limit)


def describe_exit(code: int | None, timeout_s: float) -> str:
    """Say in a few words how a command ended."""
    if code is None:
        return f"took longer than {timeout_s:g} s"
    if code < 0:
        return f"was killed by signal {-code}"
    return f"exited with {code}"
