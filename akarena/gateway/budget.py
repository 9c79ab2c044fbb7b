"""What a trial may use: reserved before a request is sent, settled when its answer has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from akarena.costs import cost_of, most_of
from akarena.gateway.refusal import out_of_budget
from akarena.gateway.settings import Budgets
from akarena.records.trial import Tokens

_NOTHING = Tokens(input=0, output=0, cache_read=0, cache_write=0, reasoning=0)


@dataclass(eq=False)
class Reservation:
    """What one running request holds of the budgets.

    Attributes:
        held: Tokens that are held back for it.
        held_usd: Dollars that are held back for it; 0 where there are no prices.
        used: Tokens that it used; None as long as the service has not said, and then all that is held counts as used.
    """

    held: int
    held_usd: float = 0.0
    used: Tokens | None = None

    def settle(self, tokens: Tokens | None) -> None:
        """Put what was really used in place of what is held.

        Args:
            tokens: As the service counted them; None where it charges none.
        """
        self.used = _NOTHING if tokens is None else tokens

    def reopen(self) -> None:
        """Take back that it is settled: the request is sent again."""
        self.used = None


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
        self.usd = 0.0
        self.bytes_up = 0
        self.bytes_down = 0
        self._budgets = budgets
        self._running: list[Reservation] = []
        self._changed = asyncio.Condition()
        self.slots = asyncio.Semaphore(budgets.concurrent)

    @property
    def seconds_left(self) -> float:
        """Time until everything is cut; below 0 afterwards."""
        return self.deadline - time.monotonic()

    async def reserve(self, tokens: int, upload_bytes: int, answer_tokens: int = 0) -> Reservation:
        """Take one request's share, or wait until running requests have left enough tokens and dollars.

        Every reservation must be given back by `release`. To be called within `time_limit`.

        Args:
            tokens: What prompt and answer could use.
            upload_bytes: Size of the body.
            answer_tokens: The answer's part of the tokens.

        Raises:
            Denial: A budget does not hold it, even when all that is running used nothing.
        """
        async with self._changed:
            while not self._fits(tokens, upload_bytes, answer_tokens):
                await self._changed.wait()
            self.requests += 1
            self.bytes_up += upload_bytes
            reservation = Reservation(tokens, self._most_usd(tokens, answer_tokens))
            self._running.append(reservation)
        return reservation

    async def release(self, reservation: Reservation) -> None:
        """End a request."""
        async with self._changed:
            self._running.remove(reservation)
            used, prices = reservation.used, self._budgets.prices
            self.tokens += reservation.held if used is None else total(used)
            if prices is not None:
                self.usd += reservation.held_usd if used is None else cost_of(used, prices)
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

    def _most_usd(self, tokens: int, answer_tokens: int) -> float:
        prices = self._budgets.prices
        return 0.0 if prices is None else most_of(tokens - answer_tokens, answer_tokens, prices)

    def _fits(self, tokens: int, upload_bytes: int, answer_tokens: int) -> bool:
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
        usd = self._most_usd(tokens, answer_tokens)
        if limits.usd is not None and self.usd + usd > limits.usd:
            left = max(0.0, limits.usd - self.usd)
            detail = f"of the trial's budget of {limits.usd:g} dollars, {left:.4g} are left"
            raise out_of_budget(f"{detail}, and this request could cost {usd:.4g}")
        # Summed up anew each time: a running difference of dollars would not come back to zero exactly.
        held, held_usd = sum(one.held for one in self._running), sum(one.held_usd for one in self._running)
        fits = self.tokens + held + tokens <= limits.tokens
        return fits and (limits.usd is None or self.usd + held_usd + usd <= limits.usd)

    def _time_is_up(self) -> Exception:
        return out_of_budget(f"the trial's time at the service, {self._budgets.seconds:g} s, is over")
