"""Keep the head and the tail of an output stream of any length. Standard library only."""

from __future__ import annotations


class Capture:
    """Raw bytes, bounded: the first half of the limit and the last half; what lies between is counted."""

    def __init__(self, limit_bytes: int) -> None:
        self._head_limit = limit_bytes // 2
        self._tail_limit = limit_bytes - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self.dropped_bytes = 0

    def add(self, data: bytes) -> None:
        """Append what was read."""
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Trimming only at twice the limit keeps the cost per byte constant.
        if len(self._tail) > 2 * self._tail_limit:
            self._trim()

    def _trim(self) -> None:
        excess = len(self._tail) - self._tail_limit
        if excess > 0:
            del self._tail[:excess]
            self.dropped_bytes += excess

    def value(self) -> bytes:
        """Give what was kept, with a line in between where something was dropped."""
        self._trim()
        gap = b"\n[... %d bytes dropped ...]\n" % self.dropped_bytes if self.dropped_bytes else b""
        return bytes(self._head) + gap + bytes(self._tail)
