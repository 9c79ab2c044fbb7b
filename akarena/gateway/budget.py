"""What a trial may use: reserved before a request is sent, settled when its answer has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from akarena.gateway.refusal import out_of_budget
from akarena.gateway.settings import Budgets
from akarena.records.trial import Tokens


@dataclass
class Reservation:
    """What one running request holds of the budgets.

    Attributes:
        held: Tokens that are held back for it.
        used: Tokens that it used; None as long as the service has not said, and then all that is held counts as used.
    """

    held: int
    used: int | None = None

    def settle(self, tokens: Tokens | None) -> None:
        """Put what was really used in place of what is held.

        Args:
            tokens: As the service counted them; None where it charges none.
        """
        self.used = 0 if tokens is None else total(tokens)


def total(tokens: Tokens) -> int:
    """Give the tokens that count against a budget; reasoning is part of the output."""
    return tokens.input + tokens.cache_read + tokens.cache_write + tokens.output


class Ledger:
    """The account of one trial. For one event loop.

    Attributes:
        slots: Held by each request that is read or answered, so that few bodies are in memory at a time.

    Args:
        budgets: The limits.
    """

    def __init__(self, budgets: Budgets) -> None:
        self.deadline = time.monotonic() + budgets.seconds
        self.requests = 0
        self.tokens = 0
        self.bytes_up = 0
        self.bytes_down = 0
        self._budgets = budgets
        self._held_tokens = 0
        self._changed = asyncio.Condition()
        self.slots = asyncio.Semaphore(budgets.concurrent)

    @property
    def seconds_left(self) -> float:
        """Time until everything is cut; below 0 afterwards."""
        return self.deadline - time.monotonic()

    async def reserve(self, tokens: int, upload_bytes: int) -> Reservation:
        """Take one request's share, or wait until running requests have left enough tokens.

        Every reservation must be given back by `release`. To be called within `time_limit`.

        Raises:
            Denial: A budget does not hold it, even when all that is running used nothing.
        """
        async with self._changed:
            while not self._fits(tokens, upload_bytes):
                await self._changed.wait()
            self.requests += 1
            self.bytes_up += upload_bytes
            self._held_tokens += tokens
        return Reservation(tokens)

    async def release(self, reservation: Reservation) -> None:
        """End a request."""
        async with self._changed:
            self._held_tokens -= reservation.held
            self.tokens += reservation.held if reservation.used is None else reservation.used
            self._changed.notify_all()

    def receive(self, size: int) -> None:
        """Count bytes that came back.

        Raises:
            Denial: They are more than the budget holds.
        """
        self.bytes_down += size
        if self.bytes_down > self._budgets.download_bytes:
            raise out_of_budget(f"the trial's budget of {self._budgets.download_bytes} bytes downwards is used up")

    def send(self, size: int) -> None:
        """Count bytes that go up a tunnel.

        Raises:
            Denial: They are more than the budget holds.
        """
        self.bytes_up += size
        if self.bytes_up > self._budgets.upload_bytes:
            raise out_of_budget(f"the trial's budget of {self._budgets.upload_bytes} bytes upwards is used up")

    @asynccontextmanager
    async def time_limit(self) -> AsyncIterator[None]:
        """Cut what runs inside when the trial's time is over.

        Raises:
            Denial: It is over.
        """
        try:
            async with asyncio.timeout(max(0.0, self.seconds_left)) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._time_is_up() from None

    def _fits(self, tokens: int, upload_bytes: int) -> bool:
        """Say whether a request can start now; raise where it never can."""
        limits = self._budgets
        if self.requests + 1 > limits.requests:
            raise out_of_budget(f"the trial's budget of {limits.requests} requests is used up")
        if self.bytes_up + upload_bytes > limits.upload_bytes:
            raise out_of_budget(f"the trial's budget of {limits.upload_bytes} bytes upwards is used up")
        if self.bytes_down >= limits.download_bytes:
            raise out_of_budget(f"the trial's budget of {limits.download_bytes} bytes downwards is used up")
        if self.tokens + tokens > limits.tokens:
            detail = f"of the trial's budget of {limits.tokens} tokens, {max(0, limits.tokens - self.tokens)} are left"
            raise out_of_budget(f"{detail}, and this request could use {tokens}")
        return self.tokens + self._held_tokens + tokens <= limits.tokens

    def _time_is_up(self) -> Exception:
        return out_of_budget(f"the trial's time at the service, {self._budgets.seconds:g} s, is over")
