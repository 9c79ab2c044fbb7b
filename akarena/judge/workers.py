"""A worker as the judge sees it: started, asked, timed, and dead when it must be."""

from __future__ import annotations

import math
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from akarena.judge.arena import Memory
from akarena.judge.job import SideJob
from akarena.records.evaluation import FailReason
from akarena.sandbox.base import End
from akarena.sandbox.control import Control, Exit
from akarena.worker import wire
from akarena.worker.wire import Command, Status

_EVIDENCE_BYTES = 3000
_TIMED = frozenset({Command.WAKE, Command.REPLAY, Command.PLAIN, Command.ECHO})
_AWAKE_SECONDS = 0.5
"""How long the answer to a timed request is awaited without sleeping; more than a replay takes."""
_FAULT_OF_STATUS = {
    Status.LOAD_FAILED: FailReason.LOAD_FAILED,
    Status.ENTRY_NOT_FOUND: FailReason.ENTRY_NOT_FOUND,
    Status.RETURNED_ERROR: FailReason.RETURNED_ERROR,
    Status.RAISED: FailReason.RETURNED_ERROR,
    Status.DEVICE_ERROR: FailReason.DEVICE_FAULT,
}
_FAULT_OF_END = {
    End.TIMEOUT: FailReason.TIMEOUT,
    End.OUT_OF_MEMORY: FailReason.OUT_OF_MEMORY,
    End.TOO_MANY_PROCESSES: FailReason.TOO_MANY_PROCESSES,
}


@dataclass(eq=False)
class WorkerFaultError(Exception):
    """The worker did not do what it was asked; it is dead by now.

    Attributes:
        reason: What happened, in the words of a gate.
        evidence: What the worker's own output says, for a person.
    """

    reason: FailReason
    evidence: str

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.evidence}"


class NotCapturableError(Exception):
    """The worker's kernel cannot be recorded into a graph; the worker lives."""


class Worker:
    """One worker process.

    Args:
        control: The launcher.
        name: Name of the process in the plan.
        side: What it loads.
        fp8: torch's dtype for ``fp8``.
        allowance_seconds: Time that all its answers together may take.
    """

    def __init__(
        self, control: Control, name: str, side: SideJob, fp8: str, allowance_seconds: float = math.inf
    ) -> None:
        self._control = control
        self._name = name
        self._side = side
        self._fp8 = fp8
        self._allowance_seconds = allowance_seconds
        self._left_seconds = allowance_seconds
        self._socket: socket.socket | None = None
        self._loaded = False
        self.log = ""

    @property
    def running(self) -> bool:
        """Whether there is a process, as far as is known here."""
        return self._socket is not None

    def adopt(self, channel: socket.socket) -> None:
        """Take over a process that was started ahead and waits without a kernel."""
        self._socket = channel

    def start(self, memory: Memory, timeout_seconds: float) -> None:
        """Start the process if needed, hand the arena over and load the kernel; nothing to do where that was done.

        Raises:
            WorkerFaultError: The kernel cannot be loaded.
        """
        if self._socket is None:
            self._socket = self._control.spawn(self._name)
        elif self._loaded:
            return
        self._loaded = False
        # Memory is handed over before the kernel is loaded, so nothing of it can see the handle in flight.
        payload, descriptor = memory.handover()
        number = self._send(Command.ATTACH, payload)
        if descriptor is not None:
            socket.send_fds(self._socket, [b"\0"], [descriptor])
        self._receive(Command.ATTACH, number, timeout_seconds)
        self._ask(
            Command.LOAD,
            {"kind": self._side.kind.value, "path": self._side.path, "entry": self._side.entry, "fp8": self._fp8},
            timeout_seconds,
        )
        self._loaded = True

    def prepare(self, bindings: dict[str, Any], timeout_seconds: float) -> None:
        """Bind the arguments of the calls to come."""
        self._ask(Command.PREPARE, bindings, timeout_seconds)

    def call(self, index: int, order_seed: int, timeout_seconds: float) -> float:
        """Run one call to its end; returns the seconds that it took as seen from here."""
        return self._ask(Command.CALL, {"index": index, "order_seed": order_seed}, timeout_seconds)

    def capture(self, sets: int, timeout_seconds: float) -> None:
        """Record each call into a graph of its own.

        Raises:
            NotCapturableError: The kernel does something that a graph cannot hold.
        """
        self._ask(Command.CAPTURE, {"sets": sets}, timeout_seconds)

    def replay(self, timeout_seconds: float, meanwhile: Callable[[], None] | None = None, which: int = 0) -> float:
        """Replay a chain to its end, while something else is done here; returns seconds on the judge's clock."""
        return self._ask(Command.REPLAY, {"which": which}, timeout_seconds, meanwhile)

    def chain(self, orders: Sequence[Sequence[int]], timeout_seconds: float) -> None:
        """Put recorded calls, in each of these orders, into what replays run.

        Raises:
            NotCapturableError: The recorded calls cannot be parts of one graph.
        """
        self._ask(Command.CHAIN, {"orders": [list(order) for order in orders]}, timeout_seconds)

    def plain(self, order: Sequence[int], timeout_seconds: float, meanwhile: Callable[[], None] | None = None) -> float:
        """Run calls in this order without a graph; otherwise as :meth:`replay`."""
        return self._ask(Command.PLAIN, {"order": list(order)}, timeout_seconds, meanwhile)

    def wake(self, timeout_seconds: float) -> float:
        """Let the device turn to the worker's process; returns seconds on the judge's clock."""
        return self._ask(Command.WAKE, None, timeout_seconds)

    def echo(self, timeout_seconds: float) -> float:
        """Send an empty request; returns seconds on the judge's clock."""
        return self._ask(Command.ECHO, None, timeout_seconds)

    def stop(self) -> None:
        """Kill the process with all its children, and keep what it printed."""
        if self._socket is None:
            return
        self._socket.close()
        self._socket = None
        self._keep(self._control.kill(self._name))

    def _keep(self, ended: Exit) -> None:
        text = (ended.stdout + ended.stderr).decode(errors="replace")
        self.log = text[-_EVIDENCE_BYTES:]

    def _send(self, command: Command, payload: Mapping[str, Any] | None) -> int:
        assert self._socket is not None
        number = secrets.randbits(63)
        try:
            wire.send_request(self._socket, command, number, None if payload is None else dict(payload))
        except OSError:
            raise self._dead() from None
        return number

    def _receive(self, command: Command, number: int, timeout_seconds: float) -> None:
        assert self._socket is not None
        started = time.perf_counter()
        try:
            data = wire.receive_exactly(
                self._socket,
                wire.ANSWER_BYTES,
                min(timeout_seconds, self._left_seconds),
                _AWAKE_SECONDS if command in _TIMED else 0.0,
            )
        except TimeoutError:
            said = f"no answer within {timeout_seconds:.0f} s"
            if self._left_seconds < timeout_seconds:
                said = f"its calls together took the {self._allowance_seconds:.0f} s that a candidate has"
            raise self._fault(FailReason.TIMEOUT, said) from None
        except (wire.PeerGoneError, OSError):
            raise self._dead() from None
        self._left_seconds = max(self._left_seconds - (time.perf_counter() - started), 1e-3)
        try:
            status, code = wire.parse_answer(data, number)
        except wire.WireError as error:
            raise self._fault(FailReason.PROTOCOL_BROKEN, str(error)) from None
        if status is Status.NOT_CAPTURABLE and command in (Command.CAPTURE, Command.CHAIN):
            raise NotCapturableError
        if status is not Status.DONE:
            reason = _FAULT_OF_STATUS.get(status, FailReason.PROTOCOL_BROKEN)
            said = f"the entry returned {code}" if status is Status.RETURNED_ERROR else status.name.lower()
            raise self._fault(reason, said)

    def _ask(
        self,
        command: Command,
        payload: Mapping[str, Any] | None,
        timeout_seconds: float,
        meanwhile: Callable[[], None] | None = None,
    ) -> float:
        started = time.perf_counter()
        number = self._send(command, payload)
        if meanwhile is not None:
            meanwhile()
        self._receive(command, number, timeout_seconds)
        return time.perf_counter() - started

    def _fault(self, reason: FailReason, said: str) -> WorkerFaultError:
        self.stop()
        return WorkerFaultError(reason, f"{said}\n{self.log}".strip())

    def _dead(self) -> WorkerFaultError:
        """Say why a process that closed its channel is dead."""
        assert self._socket is not None
        self._socket.close()
        self._socket = None
        ended = self._control.wait(self._name, 2.0) or self._control.kill(self._name)
        self._keep(ended)
        reason = _FAULT_OF_END.get(ended.end, FailReason.CRASH)
        how = f"signal {ended.signal}" if ended.signal else f"exit code {ended.exit_code}"
        said = ended.detail or f"the process ended with {how}"
        return WorkerFaultError(reason, f"{said}\n{self.log}".strip())
