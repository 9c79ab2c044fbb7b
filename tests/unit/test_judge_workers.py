"""The judge's side of a worker, against peers that do not keep to the protocol."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from akarena.judge.arena import HostMemory
from akarena.judge.job import SideJob
from akarena.judge.workers import NotCapturableError, Worker, WorkerFaultError
from akarena.records.evaluation import FailReason
from akarena.sandbox.base import End, Result
from akarena.sandbox.control import Control
from akarena.targets.base import EntryKind
from akarena.worker import wire
from akarena.worker.wire import Command, Status

Peer = Callable[[socket.socket, Command, int], None]
"""What the worker does with a request that is not its start."""


def ended(end: End, exit_code: int | None = None, signal: int | None = None) -> Result:
    return Result(end, exit_code, signal, b"printed \xff", b"", 0, 0.1, "")


@dataclass
class Launcher(Control):
    """Stands for the launcher: its processes are threads of the test."""

    peer: Peer
    end: Result = field(default_factory=lambda: ended(End.STOPPED))
    killed: int = 0
    threads: list[threading.Thread] = field(default_factory=list)

    def spawn(self, name: str, extra_fds: object = ()) -> socket.socket:
        ours, theirs = socket.socketpair()
        thread = threading.Thread(target=self._serve, args=(theirs,))
        thread.start()
        self.threads.append(thread)
        return ours

    def _serve(self, sock: socket.socket) -> None:
        with sock:
            try:
                while True:
                    command, number, _ = wire.receive_request(sock)
                    if command is Command.ATTACH:
                        sock.recv(1)
                    if command in (Command.ATTACH, Command.LOAD):
                        wire.send_answer(sock, Status.DONE, number)
                    else:
                        self.peer(sock, command, number)
            except (wire.PeerGoneError, OSError):
                return

    def kill(self, name: str) -> Result:
        self.killed += 1
        return self.end

    def wait(self, name: str, timeout_seconds: float) -> Result | None:
        return self.end


def fault_of(peer: Peer, end: Result | None = None, seconds: float = 1.0) -> tuple[WorkerFaultError, Launcher]:
    launcher = Launcher(peer, end or ended(End.STOPPED))
    memory = HostMemory(1 << 12)
    worker = Worker(launcher, "candidate", SideJob(kind=EntryKind.NATIVE, path="/k.so", entry="f"), "float8_e4m3fn")
    worker.start(memory, 5.0)
    with pytest.raises(WorkerFaultError) as caught:
        worker.call(0, 1, seconds)
    worker.stop()
    memory.close()
    for thread in launcher.threads:
        thread.join(5)
    return caught.value, launcher


def answer(status: Status, code: int = 0) -> Peer:
    return lambda sock, command, number: wire.send_answer(sock, status, number, code)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status.RETURNED_ERROR, FailReason.RETURNED_ERROR),
        (Status.RAISED, FailReason.RETURNED_ERROR),
        (Status.DEVICE_ERROR, FailReason.DEVICE_FAULT),
        (Status.ENTRY_NOT_FOUND, FailReason.ENTRY_NOT_FOUND),
        (Status.NOT_CAPTURABLE, FailReason.PROTOCOL_BROKEN),
        (Status.NOT_HERE, FailReason.PROTOCOL_BROKEN),
    ],
)
def test_a_status_becomes_a_reason(status: Status, reason: FailReason) -> None:
    fault, launcher = fault_of(answer(status, 801))
    assert fault.reason is reason
    assert launcher.killed == 1
    if status is Status.RETURNED_ERROR:
        assert "the entry returned 801" in fault.evidence
    assert "printed \N{REPLACEMENT CHARACTER}" in fault.evidence


def forged(sock: socket.socket, command: Command, number: int) -> None:
    wire.send_answer(sock, Status.DONE, number ^ 1)


def garbage(sock: socket.socket, command: Command, number: int) -> None:
    sock.sendall(b"{'verdict': 'won', 'time': 0}" * 10)


@pytest.mark.parametrize("peer", [forged, garbage])
def test_what_is_no_answer_breaks_the_protocol(peer: Peer) -> None:
    fault, launcher = fault_of(peer)
    assert fault.reason is FailReason.PROTOCOL_BROKEN
    assert launcher.killed == 1


def silent(sock: socket.socket, command: Command, number: int) -> None:
    sock.settimeout(5)
    sock.recv(1)


def dripping(sock: socket.socket, command: Command, number: int) -> None:
    for _ in range(wire.ANSWER_BYTES - 1):
        sock.sendall(b"A")
        time.sleep(0.1)


@pytest.mark.parametrize("peer", [silent, dripping])
def test_a_worker_has_its_time_and_no_more(peer: Peer) -> None:
    began = time.monotonic()
    fault, launcher = fault_of(peer, seconds=0.3)
    assert fault.reason is FailReason.TIMEOUT
    assert launcher.killed == 1
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("end", "reason", "text"),
    [
        (ended(End.EXITED, exit_code=3), FailReason.CRASH, "exit code 3"),
        (ended(End.EXITED, signal=11), FailReason.CRASH, "signal 11"),
        (ended(End.OUT_OF_MEMORY, signal=9), FailReason.OUT_OF_MEMORY, "signal 9"),
        (ended(End.TOO_MANY_PROCESSES, signal=9), FailReason.TOO_MANY_PROCESSES, "signal 9"),
        (ended(End.TIMEOUT, signal=9), FailReason.TIMEOUT, "signal 9"),
    ],
)
def test_a_dead_worker_is_told_by_how_it_ended(end: Result, reason: FailReason, text: str) -> None:
    fault, _ = fault_of(lambda sock, command, number: sock.shutdown(socket.SHUT_RDWR), end)
    assert fault.reason is reason
    assert text in fault.evidence


def test_a_worker_is_started_again_after_a_fault() -> None:
    calls: list[Command] = []

    def first_fails(sock: socket.socket, command: Command, number: int) -> None:
        calls.append(command)
        wire.send_answer(sock, Status.RETURNED_ERROR if len(calls) == 1 else Status.DONE, number)

    launcher = Launcher(first_fails)
    memory = HostMemory(1 << 12)
    worker = Worker(launcher, "candidate", SideJob(kind=EntryKind.NATIVE, path="/k.so", entry="f"), "float8_e4m3fn")
    worker.start(memory, 5.0)
    with pytest.raises(WorkerFaultError):
        worker.call(0, 1, 1.0)
    worker.start(memory, 5.0)
    assert worker.call(0, 1, 1.0) > 0
    assert len(launcher.threads) == 2
    worker.stop()
    worker.stop()
    assert launcher.killed == 2
    memory.close()


def test_what_cannot_be_captured_is_no_fault() -> None:
    launcher = Launcher(answer(Status.NOT_CAPTURABLE))
    memory = HostMemory(1 << 12)
    worker = Worker(launcher, "candidate", SideJob(kind=EntryKind.NATIVE, path="/k.so", entry="f"), "float8_e4m3fn")
    worker.start(memory, 5.0)
    with pytest.raises(NotCapturableError):
        worker.capture(4, 1.0)
    assert launcher.killed == 0
    worker.stop()
    memory.close()
