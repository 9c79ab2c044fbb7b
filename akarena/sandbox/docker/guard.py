"""Removes the containers of a process that was killed: a small process of its own that waits for that."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from akarena import paths
from akarena.errors import InfrastructureError
from akarena.images import daemon
from akarena.sandbox.docker.owner import OWNER_LABEL, own_label, remove_labelled

# Nothing is imported before it is needed, so that waiting costs next to nothing.
_CODE = "import sys; sys.stdin.buffer.read(); from akarena.sandbox.docker import guard; guard.clean_after(sys.argv[1])"
_PASSED_ON = ("DOCKER_HOST", "HOME", "LD_LIBRARY_PATH", "PATH")
_guarded: set[int] = set()
"""The processes, this one or the ones it was forked from, that have a guard."""


def start() -> None:
    """Give this process a guard, once. It ends with the process, however that ends."""
    if os.getpid() in _guarded:
        return
    _guarded.add(os.getpid())
    # The guard reads until the last writer, this process, is gone; nobody ever writes.
    reader, _ = os.pipe()
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    search = [str(paths.package().parent), *filter(None, sys.path)]
    os.posix_spawn(
        sys.executable,
        [sys.executable, "-P", "-c", _CODE, own_label()],
        {**kept, "PYTHONPATH": os.pathsep.join(search)},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, reader, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ],
        setsid=True,
    )
    os.close(reader)


def clean_after(label: str) -> None:
    """Remove what an owner left; it is dead by now."""
    with suppress(InfrastructureError):  # The next run sweeps, or no daemon is left that could hold anything.
        client = daemon.connect()
        try:
            with daemon.told("the guard"):
                remove_labelled(client.api, f"{OWNER_LABEL}={label}")
        finally:
            client.close()
