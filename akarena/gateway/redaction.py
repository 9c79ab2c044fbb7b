"""Takes the key out of what a service answers, should it quote it."""

from __future__ import annotations

_PUT_IN = b"[key]"


class Redactor:
    """Passes bytes on without the key, also where it is spread over two pieces.

    Args:
        key: The key; None where the service needs none.
    """

    def __init__(self, key: str | None) -> None:
        self._key = (key or "").encode()
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """Take a piece; give what may be passed on now."""
        if not self._key:
            return piece
        data = (self._held + piece).replace(self._key, _PUT_IN)
        longest = min(len(self._key) - 1, len(data))
        # What could be the beginning of the key waits for the next piece.
        kept = next((size for size in range(longest, 0, -1) if data.endswith(self._key[:size])), 0)
        self._held = data[len(data) - kept :]
        return data[: len(data) - kept]

    def end(self) -> bytes:
        """Give what was held back: it was no key."""
        held, self._held = self._held, b""
        return held

    def whole(self, data: bytes) -> bytes:
        """Give data that is complete without the key."""
        return data.replace(self._key, _PUT_IN) if self._key else data
