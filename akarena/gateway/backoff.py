"""When a request that the service had no room for is asked again, and after how long."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

BUSY = frozenset({429, 503, 529})
"""Statuses by which a service says: not now."""

_JITTER = 0.25
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")


@dataclass(frozen=True)
class Patience:
    """How long the gateway goes on asking for one request.

    Attributes:
        retries: How often it asks again.
        seconds: Most that all pauses of a request take together.
        first_seconds: The first pause where the service names none; each further one is twice as long.
        pause_seconds: The longest single pause, also where the service asks for a longer one.
    """

    retries: int = 5
    seconds: float = 120.0
    first_seconds: float = 2.0
    pause_seconds: float = 60.0

    def pause(self, status: int, headers: Mapping[str, str], retries: int, waited: float) -> float | None:
        """Say how long to wait before asking again; None where the answer is to be passed on.

        A random part keeps requests that were turned away together from coming back together. It only adds to what the
        service asks for.

        Args:
            status: Of the service's answer.
            headers: Of the service's answer, looked up without regard to case.
            retries: How often it was asked again already.
            waited: Seconds that this request has waited already.
        """
        if status not in BUSY or retries >= self.retries or headers.get("x-should-retry") == "false":
            return None
        named = _named_seconds(headers)
        if named is None:
            seconds = self.first_seconds * 2**retries * random.uniform(1 - _JITTER, 1)
        else:
            seconds = named + self.first_seconds * random.uniform(0, _JITTER)
        seconds = min(seconds, self.pause_seconds)
        return seconds if waited + seconds <= self.seconds else None


def _named_seconds(headers: Mapping[str, str]) -> float | None:
    """Read the pause that the service names; None where it names none, or a date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if _NUMBER.fullmatch(value):
            return float(value) * unit
    return None
