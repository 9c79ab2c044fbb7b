"""The tunnel: where it leads, what its first message must say, and what is counted."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akarena import schemas
from akarena.gateway import Budgets, Service, Style
from akarena.gateway.addresses import check_public, is_public
from akarena.gateway.audit import AuditLog
from akarena.gateway.budget import Ledger
from akarena.gateway.hello import server_name
from akarena.gateway.refusal import Denial
from akarena.gateway.settings import Settings
from akarena.gateway.tunnel import Network, Streams, serve_tunnel
from akarena.records import AuditRecord
from akarena.records.audit import RefusalReason, Verdict

HOST = "api2.example.com"
SERVICE = Service("vendor", Style.TUNNEL, hosts=(HOST, "other.example.com"))
CONNECT = f"CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}:443\r\n\r\n".encode()


def client_hello(host: str | None) -> bytes:
    """The first bytes of a real TLS client."""
    context = ssl.create_default_context()
    context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing, server_hostname=host)
    with suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


HELLO = client_hello(HOST)


def message(extensions: bytes) -> bytes:
    """A ClientHello with these extensions and little else."""
    body = b"\x03\x03" + bytes(32) + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00"
    body += len(extensions).to_bytes(2, "big") + extensions
    return b"\x01" + len(body).to_bytes(3, "big") + body


def name_extension(*names: bytes) -> bytes:
    entries = b"".join(b"\x00" + len(name).to_bytes(2, "big") + name for name in names)
    data = len(entries).to_bytes(2, "big") + entries
    return b"\x00\x00" + len(data).to_bytes(2, "big") + data


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "104.18.0.1", "52.95.110.1", "2606:4700::1111", "2a00:1450:4001:80b::200e"],
)
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "168.63.129.16",
        "100.64.0.1",
        "100.100.100.200",
        "0.0.0.0",
        "0.1.2.3",
        "192.0.0.8",
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "192.88.99.1",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001::1",
        "2001:db8::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "100::1",
        "localhost",
        "0x7f000001",
        "2130706433",
        "127.1",
        "",
    ],
)
def test_other_addresses(address: str) -> None:
    assert not is_public(address)
    with pytest.raises(Denial, match="not public"):
        check_public(HOST, ["8.8.8.8", address])


def test_no_address_is_not_public() -> None:
    with pytest.raises(Denial):
        check_public(HOST, [])


class TestHello:
    def test_a_real_client(self) -> None:
        assert server_name(HELLO[5:]) == HOST

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (message(b""), "does not name one server"),
            (message(name_extension()), "does not name one server"),
            (message(name_extension(b"a.example", b"b.example")), "does not name one server"),
            (message(name_extension(b"\xff")), "does not name one server"),
            (message(name_extension(b"a.example") * 2), "an extension twice"),
            (message(name_extension(b"a.example") + b"\xfe\x0d\x00\x01\x00"), "encrypted ClientHello"),
            (message(b"\x00\x00\x00\x06\x00\x04\x01\x00\x01a"), "of an unknown kind"),
            (message(name_extension(b"a.example"))[:-1], "cut short"),
            (message(name_extension(b"a.example")) + b"x", "bytes behind it"),
            (b"\x02" + message(name_extension(b"a.example"))[1:], "no ClientHello"),
            (b"", "cut short"),
        ],
    )
    def test_others(self, data: bytes, words: str) -> None:
        with pytest.raises(Denial, match=words):
            server_name(data)

    @settings(max_examples=200, deadline=None)
    @given(st.binary(max_size=200), st.integers(0, 400))
    def test_any_bytes_are_read_or_refused(self, noise: bytes, place: int) -> None:
        base = HELLO[5:]
        with suppress(Denial):
            server_name(base[:place] + noise + base[place + len(noise) :])


@dataclass
class Outside:
    """The network as the gateway finds it, replaced: a service that echoes, and records of what was asked."""

    addresses: list[str] = field(default_factory=lambda: ["203.0.114.7"])
    resolved: list[str] = field(default_factory=list)
    dialled: list[str] = field(default_factory=list)
    received: bytes = b""
    port: int = 0
    unreachable: tuple[str, ...] = ()

    async def resolve(self, host: str) -> list[str]:
        self.resolved.append(host)
        return self.addresses

    async def dial(self, address: str) -> Streams:
        self.dialled.append(address)
        if address in self.unreachable:
            raise ConnectionRefusedError
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65536):
                self.received += piece
                writer.write(piece)
                await writer.drain()
            writer.write(b"bye")
        writer.close()


@dataclass(frozen=True)
class Outcome:
    answer: bytes
    records: list[AuditRecord]


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]


def say(data: bytes, *, end: bool = True) -> Talk:
    """Send bytes, end the sending side, and read all that comes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        with suppress(OSError):
            writer.write(data)
            if end:
                writer.write_eof()
            return await reader.read()
        return b""

    return talk


@pytest.fixture
def outside() -> Outside:
    return Outside()


def run(folder: Path, outside: Outside, talk: Talk, *, idle: float = 60.0, **budgets: float) -> Outcome:
    """Serve one tunnel service, and one client."""
    settings = Settings(SERVICE, str(folder / "s"), str(folder / "audit"), (), Budgets(**budgets))  # type: ignore[arg-type]

    async def main() -> bytes:
        server = await asyncio.start_server(outside.serve, "127.0.0.1", 0)
        outside.port = server.sockets[0].getsockname()[1]
        network = Network(outside.resolve, outside.dial, idle)
        with AuditLog(folder / "audit") as audit:
            async with serve_tunnel(settings, audit, Ledger(settings.budgets), lambda: None, network):
                reader, writer = await asyncio.open_unix_connection(settings.socket)
                answer = await asyncio.wait_for(talk(reader, writer), 10)
                writer.close()
                await asyncio.sleep(0.02)
        server.close()
        return answer

    answer = asyncio.run(main())
    lines = (folder / "audit").read_bytes().splitlines()
    return Outcome(answer, [schemas.parse(AuditRecord, line, "audit") for line in lines])


OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class TestTunnel:
    def test_bytes_go_both_ways_and_are_counted(self, tmp_path: Path, outside: Outside) -> None:
        data = HELLO + bytes(range(256)) * 4000
        outcome = run(tmp_path, outside, say(CONNECT + data))
        assert outcome.answer == OPENED + data + b"bye"
        assert outside.received == data
        (record,) = outcome.records
        assert (record.method, record.path, record.status) == ("CONNECT", f"{HOST}:443", 200)
        assert (record.bytes_up, record.bytes_down) == (len(data), len(data) + 3)
        assert (record.verdict, record.tokens, record.complete) == (Verdict.ALLOWED, None, True)

    def test_the_very_address_that_was_checked(self, tmp_path: Path, outside: Outside) -> None:
        outside.addresses = ["203.0.114.7", "203.0.114.8"]
        outside.unreachable = ("203.0.114.7",)
        run(tmp_path, outside, say(CONNECT + HELLO))
        assert (outside.resolved, outside.dialled) == ([HOST], ["203.0.114.7", "203.0.114.8"])

    @pytest.mark.parametrize("bad", ["127.0.0.1", "::ffff:8.8.8.8", "169.254.169.254"])
    def test_one_private_address_is_enough(self, tmp_path: Path, outside: Outside, bad: str) -> None:
        outside.addresses = ["8.8.8.8", bad]
        outcome = run(tmp_path, outside, say(CONNECT + HELLO))
        assert (outcome.answer, outside.dialled) == (OPENED, [])
        assert outcome.records[0].reason is RefusalReason.PRIVATE_ADDRESS
        assert bad not in outcome.records[0].detail

    @pytest.mark.parametrize(
        "target",
        [
            "evil.example.com:443",
            f"{HOST}:80",
            f"{HOST}:0443",
            f"{HOST}",
            f"{HOST}.:443",
            f"x.{HOST}:443",
            f"{HOST.upper()}:443",
            "127.0.0.1:443",
            "[::1]:443",
            f"{HOST}@evil.example:443",
            f"http://{HOST}:443/",
        ],
    )
    def test_hosts_and_port_are_exact(self, tmp_path: Path, outside: Outside, target: str) -> None:
        outcome = run(tmp_path, outside, say(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode() + HELLO))
        assert outcome.answer.startswith(b"HTTP/1.1 403 ")
        assert (outside.resolved, outcome.records[0].reason) == ([], RefusalReason.HOST)

    @pytest.mark.parametrize(
        "head",
        [
            b"CONNECT api2.example.com:443 HTTP/1.0\r\n\r\n",
            b"CONNECT  api2.example.com:443 HTTP/1.1\r\n\r\n",
            b"CONNECT api2.example.com:443 HTTP/1.1\nX: y\r\n\r\n",
            b"CONNECT api2.example.com:443 HTTP/1.1\r\nX y\r\n\r\n",
            b"CONNECT api2.example.com:443 HTTP/1.1\r\n X: y\r\n\r\n",
            b"CONNECT api2.example.com:443 HTTP/1.1\r\nX: \x00\r\n\r\n",
            b"CONNECT api2.example.com:443 HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
            b"\x16\x03\x01" + bytes(50),
            b"",
        ],
    )
    def test_odd_heads(self, tmp_path: Path, outside: Outside, head: bytes) -> None:
        outcome = run(tmp_path, outside, say(head))
        assert outcome.answer.startswith(b"HTTP/1.1 400 ")
        assert outcome.records[0].reason is RefusalReason.MALFORMED_HTTP

    def test_other_methods(self, tmp_path: Path, outside: Outside) -> None:
        outcome = run(tmp_path, outside, say(b"GET http://api2.example.com/ HTTP/1.1\r\n\r\n"))
        assert outcome.records[0].reason is RefusalReason.ROUTE

    @pytest.mark.parametrize(
        "first",
        [client_hello("other.example.com"), client_hello(None), b"GET / HTTP/1.1\r\n\r\n", b"SSH-2.0-x\r\n\r\n\r\n"],
    )
    def test_the_first_message_asks_for_the_host(self, tmp_path: Path, outside: Outside, first: bytes) -> None:
        outcome = run(tmp_path, outside, say(CONNECT + first))
        assert (outcome.answer, outside.dialled) == (OPENED, [])
        assert outcome.records[0].reason is RefusalReason.SERVER_NAME

    def test_a_hello_in_pieces(self, tmp_path: Path, outside: Outside) -> None:
        body = HELLO[5:]
        pieces = [body[start : start + 200] for start in range(0, len(body), 200)]
        split = b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece for piece in pieces)
        outcome = run(tmp_path, outside, say(CONNECT + split))
        assert outcome.answer == OPENED + split + b"bye"

    def test_idle(self, tmp_path: Path, outside: Outside) -> None:
        outcome = run(tmp_path, outside, say(CONNECT + HELLO, end=False), idle=0.1)
        assert outcome.answer == OPENED + HELLO
        assert (outcome.records[0].verdict, outcome.records[0].complete) == (Verdict.UPSTREAM_ERROR, False)

    @pytest.mark.parametrize(
        ("budgets", "words"),
        [
            ({"upload_bytes": 5000}, "5000 bytes upwards"),
            ({"download_bytes": 5000}, "5000 bytes downwards"),
            ({"seconds": 0.3}, "0.3 s, is over"),
        ],
    )
    def test_budgets(self, tmp_path: Path, outside: Outside, budgets: dict[str, float], words: str) -> None:
        outcome = run(tmp_path, outside, say(CONNECT + HELLO + bytes(20_000), end="seconds" not in budgets), **budgets)
        assert outcome.answer.startswith(OPENED)
        assert outcome.records[0].verdict is Verdict.OUT_OF_BUDGET
        assert words in outcome.records[0].detail

    def test_a_service_that_is_not_there(self, tmp_path: Path, outside: Outside) -> None:
        outside.unreachable = tuple(outside.addresses)
        outcome = run(tmp_path, outside, say(CONNECT + HELLO))
        assert outcome.records[0].detail == f"{HOST} can't be reached"
