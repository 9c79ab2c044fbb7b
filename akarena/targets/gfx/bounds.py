"""Keeps what a compiler prints, and what this package prints, within limits."""

from __future__ import annotations

import os
from typing import BinaryIO

MAX_LOG_BYTES = 16 * 1024


def tail(file: BinaryIO, limit: int = MAX_LOG_BYTES) -> str:
    """Return the end of ``file`` as text of at most ``limit`` bytes, with a first line that says what was left out."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - limit))
    text = file.read(limit).decode("utf-8", errors="replace").replace("\0", "?")
    return f"[{size - limit} bytes left out]\n{text}" if size > limit else text
