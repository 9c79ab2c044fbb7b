"""The HTTP side of the reverse proxy: a server on a unix socket that trusts nothing of what comes in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from akarena.gateway.audit import AuditLog
from akarena.gateway.budget import Ledger
from akarena.gateway.proxy import Proxy
from akarena.gateway.settings import Settings

_MAX_CONNECTIONS = 256
_IDLE_SECONDS = 60.0
"""Time for a request's head, and between two requests."""
_LINE_BYTES = 16 << 10
_MAX_HEADERS = 100
_SILENT = logging.Logger("akarena.gateway", logging.CRITICAL + 1)
"""Log messages of the server could quote headers."""


class _Connection(web.RequestHandler):
    """One connection of the agent. What is no HTTP is answered in the API's form and written down like the rest."""

    __slots__ = ("_proxy",)

    def __init__(self, manager: _Server, **settings: Any) -> None:
        super().__init__(manager, **settings)
        self._proxy = manager.proxy

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection, unless there are too many."""
        super().connection_made(transport)
        if self._manager is not None and len(self._manager.connections) > _MAX_CONNECTIONS:
            self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that can't be read; failures of the handling itself don't come here."""
        return self._proxy.malformed()


class _Server(web.Server):
    def __init__(self, proxy: Proxy, **settings: Any) -> None:
        super().__init__(proxy.handle, handler_cancellation=True, **settings)
        self.proxy = proxy
        self._settings = settings

    def __call__(self) -> web.RequestHandler:
        """Make the handler of a new connection."""
        return _Connection(self, loop=self._loop, **self._settings)


@asynccontextmanager
async def serve(
    settings: Settings, key: str | None, audit: AuditLog, ledger: Ledger, fail: Callable[[], None]
) -> AsyncIterator[None]:
    """Listen as long as the context is open.

    Args:
        settings: What is allowed, and where to listen.
        key: The real key; None where the service needs none.
        audit: Where requests are written down.
        ledger: The budgets.
        fail: Called when a request can't be written down.
    """
    connector = aiohttp.TCPConnector(limit=settings.budgets.concurrent)
    cookies = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=connector, cookie_jar=cookies, trust_env=False) as client:
        server = _Server(
            Proxy(settings, key, audit, ledger, client, fail),
            keepalive_timeout=_IDLE_SECONDS,
            lingering_time=2.0,
            auto_decompress=False,
            max_line_size=_LINE_BYTES,
            max_field_size=_LINE_BYTES,
            max_headers=_MAX_HEADERS,
            tcp_keepalive=False,
            access_log=None,
            logger=_SILENT,
        )
        runner = web.ServerRunner(server, handle_signals=False)
        await runner.setup()
        try:
            await web.UnixSite(runner, settings.socket, backlog=128).start()
            yield
        finally:
            server.pre_shutdown()
            await server.shutdown(timeout=0.2)
            await runner.cleanup()
