"""Asks the service: once, and again while it has no room."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from akarena.gateway.backoff import Patience
from akarena.gateway.budget import Ledger, Reservation
from akarena.gateway.entry import Entry

_CONNECT_SECONDS = 30.0
SILENCE_SECONDS = 600.0
"""A service that sends nothing for so long is given up."""


class Upstream:
    """The way to the service.

    Args:
        client: Sends requests.
        patience: How long it asks again.
        ledger: Knows the time that is left.
    """

    def __init__(self, client: aiohttp.ClientSession, patience: Patience, ledger: Ledger) -> None:
        self._client = client
        self._patience = patience
        self._ledger = ledger

    @asynccontextmanager
    async def ask(
        self,
        method: str,
        url: URL,
        body: bytes,
        headers: Mapping[str, str],
        entry: Entry,
        reservation: Reservation,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request until the service has room for it, or patience or time is over; give its last answer.

        Args:
            method: HTTP method.
            url: Where to.
            body: May be empty.
            headers: All that are sent.
            entry: Gets the number of retries.
            reservation: Held all the time; an agent that goes away during a pause has used nothing.
        """
        limits = aiohttp.ClientTimeout(total=None, connect=_CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
        waited = 0.0
        while True:
            async with self._client.request(
                method, url, data=body or None, headers=headers, allow_redirects=False, timeout=limits
            ) as answer:
                pause = self._patience.pause(answer.status, answer.headers, entry.retries, waited)
                if pause is None or pause >= self._ledger.seconds_left:
                    yield answer
                    return
            reservation.settle(None)
            await asyncio.sleep(pause)
            reservation.reopen()
            waited += pause
            entry.retries += 1
