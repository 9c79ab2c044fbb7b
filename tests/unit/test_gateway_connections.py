"""Connections that are slow, idle or too many, with the limits of the server made short."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from akarena.gateway import Budgets, find, proxy, server
from akarena.gateway.audit import AuditLog
from akarena.gateway.budget import Ledger
from akarena.gateway.settings import Settings

HEAD = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n"


def serve(folder: Path, talk: Callable[[str], Awaitable[None]]) -> None:
    """Run the server in this process; no service is behind it."""
    settings = Settings(find("anthropic").at("http://127.0.0.1:9"), str(folder / "s"), str(folder / "a"), (), Budgets())

    async def main() -> None:
        with AuditLog(folder / "a") as audit:
            async with server.serve(settings, None, audit, Ledger(settings.budgets), lambda: None):
                await asyncio.wait_for(talk(settings.socket), 10)

    asyncio.run(main())


async def ended(reader: asyncio.StreamReader) -> bytes:
    """Read to the end; a reset is one too."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


@pytest.mark.parametrize("first", [b"", b"POST /v1", HEAD])
def test_a_head_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bytes) -> None:
    monkeypatch.setattr(server, "_IDLE_SECONDS", 0.3)

    async def talk(path: str) -> None:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(first)
        end = asyncio.create_task(ended(reader))
        for _ in range(100):
            if end.done():
                break
            # A byte now and then does not extend the time.
            if first == HEAD and not writer.is_closing():
                writer.write(b"X-A: b\r\n"[:1])
            await asyncio.sleep(0.05)
        assert end.done()
        assert b"200" not in end.result()
        writer.close()

    serve(tmp_path, talk)


def test_a_body_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "_BODY_SECONDS", 0.2)

    async def talk(path: str) -> None:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        answer = await ended(reader)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"the body took longer than 0.2 s" in answer
        writer.close()

    serve(tmp_path, talk)
    assert b'"too_slow"' in (tmp_path / "a").read_bytes()


def test_too_many_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MAX_CONNECTIONS", 5)

    async def talk(path: str) -> None:
        held = [await asyncio.open_unix_connection(path) for _ in range(5)]
        await asyncio.sleep(0.05)
        reader, writer = await asyncio.open_unix_connection(path)
        assert await ended(reader) == b"", "closed at once"
        writer.close()
        held[0][1].write(HEAD.replace(b"/v1/models", b"/v1/nothing") + b"\r\n")
        assert (await held[0][0].readline()).startswith(b"HTTP/1.1 403 ")
        for _, open_writer in held:
            open_writer.close()

    serve(tmp_path, talk)
