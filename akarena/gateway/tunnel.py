"""The tunnel, for agents with a protocol of their own: bytes to one of a few hosts, to port 443, and nowhere else.

What goes through is encrypted from end to end: it is counted, not read. Only CONNECT is understood.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from akarena.gateway.addresses import check_public, look_up
from akarena.gateway.audit import AuditLog
from akarena.gateway.budget import Ledger
from akarena.gateway.entry import Entry
from akarena.gateway.hello import read_hello
from akarena.gateway.inspection import printable
from akarena.gateway.refusal import Denial, error_body, refused, upstream_error
from akarena.gateway.services import HOST, Style
from akarena.gateway.settings import Settings
from akarena.records.audit import RefusalReason

_HEAD_SECONDS = 20.0
_CONNECT_SECONDS = 30.0
_IDLE_SECONDS = 900.0
_HEAD_BYTES = 16 << 10
_PIECE_BYTES = 64 << 10
_MAX_CONNECTIONS = 64
_PORT = 443
_REQUEST_LINE = re.compile(rb"([A-Z]{1,20}) ([!-~]{1,300}) HTTP/1\.1")
_HEADER_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}:[ \t!-~\x80-\xff]*")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Resolve = Callable[[str], Awaitable[list[str]]]
Dial = Callable[[str], Awaitable[Streams]]


async def dial(address: str) -> Streams:
    """Connect to an address, which is not looked up again."""
    return await asyncio.open_connection(address, _PORT)


@dataclass(frozen=True)
class Network:
    """The gateway's ways to the network, so that tests can replace them.

    Attributes:
        resolve: Gives the addresses of a host.
        dial: Connects to an address.
        idle_seconds: A tunnel that carries nothing for so long is closed.
    """

    resolve: Resolve = look_up
    dial: Dial = dial
    idle_seconds: float = _IDLE_SECONDS


class Tunnel:
    """Serves the tunnels of one trial.

    Args:
        settings: What is allowed.
        audit: Where each tunnel is written down.
        ledger: The budgets.
        network: The ways out.
        fail: Called when a tunnel can't be written down: nothing may pass any more.
    """

    def __init__(
        self, settings: Settings, audit: AuditLog, ledger: Ledger, network: Network, fail: Callable[[], None]
    ) -> None:
        self._service = settings.service
        self._audit = audit
        self._ledger = ledger
        self._network = network
        self._fail = fail
        self._connections = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of the agent, to its end."""
        if self._connections >= _MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._connections += 1
        entry = Entry(self._service.name, "", "")
        try:
            await self._serve(reader, writer, entry)
            entry.complete = True
        except Denial as denial:
            entry.deny(denial, answered=entry.status is None)
            if entry.status == denial.status:
                writer.write(_error(denial))
        except (OSError, EOFError):
            entry.detail = "a side closed the connection early"
        except asyncio.CancelledError:
            entry.detail = "the trial ended"
            raise
        finally:
            self._connections -= 1
            self._write(entry)
            with suppress(OSError):
                writer.close()

    def _write(self, entry: Entry) -> None:
        try:
            self._audit.write(entry.record(), charged=False)
        except Exception:
            self._fail()
            raise

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, entry: Entry) -> None:
        host = await self._read_request(reader, entry)
        async with self._ledger.time_limit(), self._ledger.slots:
            reservation = await self._ledger.reserve(0, 0)
            try:
                # The agent speaks first in TLS, so nothing is connected before it has said whom it wants to reach.
                entry.status = 200
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                hello = await self._read_hello(reader, host)
                addresses = await self._network.resolve(host)
                check_public(host, addresses)
                await self._carry((reader, writer), await self._connect(host, addresses), hello, entry)
            finally:
                reservation.settle(None)
                await self._ledger.release(reservation)

    async def _read_request(self, reader: asyncio.StreamReader, entry: Entry) -> str:
        """Read a CONNECT; give the host, which is one of the service's."""
        malformed = refused(RefusalReason.MALFORMED_HTTP, "this is not well-formed HTTP/1.1")
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            raise refused(RefusalReason.TOO_SLOW, f"the request took longer than {_HEAD_SECONDS:g} s") from None
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            raise malformed from None
        first, *headers = head[:-4].split(b"\r\n")
        match = _REQUEST_LINE.fullmatch(first)
        if match is None or not all(_HEADER_LINE.fullmatch(line) for line in headers):
            raise malformed
        entry.method, entry.path = match[1].decode("ascii"), match[2].decode("ascii")
        host, _, port = entry.path.rpartition(":")
        if entry.method != "CONNECT":
            raise refused(RefusalReason.ROUTE, "only CONNECT is served here")
        if not HOST.fullmatch(host) or host not in self._service.hosts or port != str(_PORT):
            raise refused(RefusalReason.HOST, f"{printable(entry.path, 100)} is not on the gateway's list")
        return host

    async def _read_hello(self, reader: asyncio.StreamReader, host: str) -> bytes:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                raw, name = await read_hello(reader)
        except TimeoutError:
            raise refused(RefusalReason.TOO_SLOW, "the tunnel was opened and not used") from None
        if name != host:
            raise refused(RefusalReason.SERVER_NAME, f"a tunnel to {host} asks for {printable(name, 100)}")
        return raw

    async def _connect(self, host: str, addresses: list[str]) -> Streams:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                for address in addresses:
                    with suppress(OSError):
                        return await self._network.dial(address)
        except TimeoutError:
            pass
        raise upstream_error(f"{host} can't be reached")

    async def _carry(self, agent: Streams, service: Streams, hello: bytes, entry: Entry) -> None:
        def sent(size: int) -> None:
            entry.bytes_up += size
            self._ledger.send(size)

        def received(size: int) -> None:
            entry.bytes_down += size
            self._ledger.receive(size)

        clock = _IdleClock(self._network.idle_seconds)
        try:
            sent(len(hello))
            service[1].write(hello)
            async with asyncio.TaskGroup() as tasks:
                both = (
                    tasks.create_task(_pump(agent[0], service[1], sent, clock)),
                    tasks.create_task(_pump(service[0], agent[1], received, clock)),
                )
                watch = tasks.create_task(clock.run())
                await asyncio.wait(both)
                watch.cancel()
        except ExceptionGroup as group:
            denials = (error for error in group.exceptions if isinstance(error, Denial))
            raise next(denials, group.exceptions[0]) from None
        finally:
            service[1].transport.abort()


class _IdleClock:
    """Ends a tunnel that carries nothing."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.touched = True

    async def run(self) -> None:
        while self.touched:
            self.touched = False
            await asyncio.sleep(self._seconds)
        raise upstream_error(f"the tunnel carried nothing for {self._seconds:g} s", 504)


async def _pump(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, count: Callable[[int], None], clock: _IdleClock
) -> None:
    while piece := await source.read(_PIECE_BYTES):
        clock.touched = True
        count(len(piece))
        sink.write(piece)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()


def _error(denial: Denial) -> bytes:
    body = error_body(Style.TUNNEL, denial)
    head = f"HTTP/1.1 {denial.status} Refused\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


@asynccontextmanager
async def serve_tunnel(
    settings: Settings, audit: AuditLog, ledger: Ledger, fail: Callable[[], None], network: Network | None = None
) -> AsyncIterator[None]:
    """Listen as long as the context is open; see `akarena.gateway.server.serve`."""
    tunnel = Tunnel(settings, audit, ledger, network or Network(), fail)
    running: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(tunnel.handle(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    server = await asyncio.start_unix_server(accept, settings.socket, limit=_HEAD_BYTES)
    try:
        yield
    finally:
        server.close()
        for task in tuple(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
