"""The gateway process: settings on standard input, the key in the environment, totals on standard output.

It ends when standard input does, so it does not outlive its caller however that one ends.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from pathlib import Path

from akarena.gateway.audit import AuditLog
from akarena.gateway.budget import Ledger
from akarena.gateway.server import serve
from akarena.gateway.services import Style
from akarena.gateway.settings import Settings, Totals
from akarena.gateway.tunnel import serve_tunnel

READY = b"ready\n"
"""Written once the socket listens."""

_PR_SET_DUMPABLE = 4


def main() -> int:
    """Serve until standard input ends."""
    # Other processes of the same user can't read the memory or the environment of an undumpable one.
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        print("prctl failed", file=sys.stderr)
        return 1
    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = Settings.from_json(sys.stdin.buffer.readline())
    variable = settings.service.key_variable
    key = os.environ.pop(variable) if variable and settings.service.style is not Style.TUNNEL else None
    totals = asyncio.run(_serve(settings, key))
    if totals is None:
        print("a request could not be written down; the audit file may be full", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(totals.to_json())
    sys.stdout.buffer.flush()
    return 0


async def _serve(settings: Settings, key: str | None) -> Totals | None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    failed = False

    def fail() -> None:
        nonlocal failed
        failed = True
        stop.set()

    def read() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            stop.set()

    loop.add_reader(0, read)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    ledger = Ledger(settings.budgets)
    with AuditLog(Path(settings.audit)) as audit:
        if settings.service.style is Style.TUNNEL:
            context = serve_tunnel(settings, audit, ledger, fail)
        else:
            context = serve(settings, key, audit, ledger, fail)
        async with context:
            os.write(1, READY)
            await stop.wait()
        totals = audit.totals(ledger.requests, inspectable=settings.service.inspectable)
    return None if failed else totals


if __name__ == "__main__":
    sys.exit(main())
