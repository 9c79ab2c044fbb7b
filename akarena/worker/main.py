"""The loop of a worker: take a request, do it, answer with a status.

Started as ``python -I -c '... main()'`` with the socket as descriptor 3 and its settings in the environment.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
import traceback
from typing import Any

from akarena.worker import memory, wire
from akarena.worker.entries import (
    EagerEntry,
    Entry,
    EntryError,
    EntryMissingError,
    NativeEntry,
    NotCapturableError,
    TritonEntry,
)
from akarena.worker.runtime import DeviceRuntimeError, Runtime
from akarena.worker.wire import Command, Status

CHANNEL = 3
_SCRATCH_BYTES = 4096
_AWAKE_SECONDS = 0.01
"""How long after a sign of life a worker looks for the next request without sleeping."""


class _Worker:
    """State of one worker: its arena and its kernel."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._runtime: Runtime | None = None
        library = os.environ.get("AKARENA_RUNTIME_LIBRARY")
        if library:
            self._runtime = Runtime(library, os.environ["AKARENA_RUNTIME_PREFIX"])
            self._runtime.set_device()
            self._scratch = self._runtime.allocate(_SCRATCH_BYTES)
        if os.environ.get("AKARENA_PRELOAD"):
            # Seconds that would otherwise be spent while the judge waits; no kernel is loaded yet.
            importlib.import_module(os.environ["AKARENA_PRELOAD"])
        self._arena: memory.Arena | None = None
        self._entry: Entry | None = None
        self._guarded = False

    def attach(self, payload: dict[str, Any]) -> None:
        if self._runtime is None:
            self._arena = memory.attach_host(self._sock, payload)
        else:
            self._arena = memory.attach_device(self._runtime, payload)

    def load(self, payload: dict[str, Any]) -> None:
        kind, path, name = payload["kind"], payload["path"], payload["entry"]
        if kind == "native":
            self._entry = NativeEntry(path, name, self._runtime)
            return
        factory = TritonEntry if kind == "triton" else EagerEntry
        self._entry = factory(path, name, self._runtime, payload["fp8"])

    def prepare(self, payload: dict[str, Any]) -> None:
        assert self._arena is not None
        assert self._entry is not None
        if self._guarded:
            self._arena.unguard()
        self._entry.prepare(self._arena, payload["arguments"], payload["sets"])
        self._guarded = bool(payload["guards"])
        self._arena.guard(payload["guards"])

    def do(self, command: Command, payload: dict[str, Any]) -> None:
        """Carry out one request."""
        match command:
            case Command.ATTACH:
                self.attach(payload)
            case Command.LOAD:
                self.load(payload)
            case Command.PREPARE:
                self.prepare(payload)
            case Command.CALL:
                self._ready.call(payload["index"], payload["order_seed"])
            case Command.CAPTURE:
                self._ready.capture(payload["sets"])
            case Command.REPLAY:
                self._ready.replay(payload["which"])
            case Command.PLAIN:
                self._ready.plain(payload["order"])
            case Command.CHAIN:
                self._ready.chain(payload["orders"])
            case Command.WAKE:
                self.wake()
            case Command.ECHO | Command.EXIT:
                pass

    def wake(self) -> None:
        """Make the device turn to this process, by a trifle of work of our own."""
        if self._runtime is not None:
            self._runtime.clear(self._scratch, _SCRATCH_BYTES)

    @property
    def _ready(self) -> Entry:
        assert self._entry is not None
        return self._entry


def main() -> None:
    """Serve the judge until it says exit or is gone."""
    sock = socket.socket(fileno=CHANNEL)
    worker = _Worker(sock)
    # A collection in the middle of a timed replay would cost milliseconds.
    gc.disable()
    awake_seconds = 0.0
    while True:
        try:
            command, number, payload = wire.receive_request(sock, awake_seconds)
        except wire.PeerGoneError:
            return
        status, code = Status.DONE, 0
        try:
            worker.do(command, payload)
        except EntryError as error:
            status, code = Status.RETURNED_ERROR, error.code
        except EntryMissingError:
            status = Status.ENTRY_NOT_FOUND
        except NotCapturableError as error:
            print(f"not captured: {error}", flush=True)
            status = Status.NOT_CAPTURABLE
        except DeviceRuntimeError as error:
            print(error, flush=True)
            status, code = Status.DEVICE_ERROR, error.code
        except Exception:
            traceback.print_exc()
            status = Status.LOAD_FAILED if command is Command.LOAD else Status.RAISED
        wire.send_answer(sock, status, number, code)
        awake_seconds = _AWAKE_SECONDS if command in (Command.ECHO, Command.WAKE) else 0.0
        if command is Command.EXIT:
            return
