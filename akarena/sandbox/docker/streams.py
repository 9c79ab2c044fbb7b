"""The end of a stream of the Docker SDK."""

from __future__ import annotations

from contextlib import suppress
from typing import Any


def stop(stream: Any) -> None:
    """Make a stream end for whoever reads it; safe from another thread."""
    with suppress(OSError, AttributeError, ValueError):  # The daemon may have ended it.
        stream.close()


def close(stream: Any) -> None:
    """Close the connection behind a stream that nobody reads any more; the SDK's own `close` leaves it open."""
    stop(stream)
    with suppress(OSError):
        stream._response.close()
