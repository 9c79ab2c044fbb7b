"""The only program of the outer sandbox: starts the inner ones, keeps their limits and reports. Standard library only.

It runs as the first user of its own user namespace, with `python -I -S`. Its standard input is a socket to the caller:
the plan comes in, the result goes out; a byte from the caller means stop, and its end means that the caller is dead.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from akarena.sandbox.base import End, Result
from akarena.sandbox.court import DEATH_SECONDS, CourtRoom
from akarena.sandbox.plan import Plan, receive_plan, send_result
from akarena.sandbox.process import Running
from akarena.sandbox.watch import measure

_POLL_SECONDS = 0.05
_POLLS_PER_MEMFD_LOOK = 4
_RESERVED_TASKS = 64


class Launcher:
    """Runs one plan to its end."""

    def __init__(self, plan: Plan, caller: socket.socket) -> None:
        """Take the plan.

        Args:
            plan: What to run.
            caller: The stream to the caller.
        """
        self._plan = plan
        self._caller = caller
        self._running: dict[str, Running] = {}
        self._court: CourtRoom | None = None
        self._polls = 0
        self._next_poll = 0.0

    def run(self) -> Result:
        """Start the main process and serve it until everything is dead."""
        fds: list[int] = []
        if self._plan.judgement:
            control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            fds.append(other.detach())
            self._court = CourtRoom(control, self._plan.processes.keys() - {self._plan.main}, self._start)
        main = self._start(self._plan.main, fds)
        while main.result is None:
            self._step()
        for process in self._running.values():
            process.kill(End.STOPPED)
        end = time.monotonic() + DEATH_SECONDS
        while any(process.result is None for process in self._running.values()) and time.monotonic() < end:
            self._step()
        return main.result

    def _max_tasks(self, name: str) -> int:
        """Give the kernel's limit, which counts a user's tasks in one user namespace: one pool for a judgement.

        The others can't fill the pool of the main process.
        """
        processes = self._plan.processes
        if not self._plan.judgement:
            return processes[name].limits.processes
        pool = sum(process.limits.processes for process in processes.values()) + 4 * len(processes)
        return pool + (_RESERVED_TASKS if name == self._plan.main else 0)

    def _start(self, name: str, fds: Sequence[int]) -> Running:
        process = self._plan.processes[name]
        running = Running(name, process, self._plan, max_tasks=self._max_tasks(name), fds=fds)
        self._running[name] = running
        return running

    def _step(self) -> None:
        """Wait for the next event, then take all that are there."""
        alive = {fd: process for process in self._live() for fd in process.descriptors()}
        control = self._court.socket.fileno() if self._court and self._court.socket else -1
        watched = [*alive, self._caller.fileno(), *([control] if control >= 0 else [])]
        poll = select.poll()
        for fd in watched:
            poll.register(fd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(max(0.0, self._next_event() - time.monotonic()) * 1000 + 1)}
        _reap()
        for fd in ready & set(alive):
            if alive[fd].result is None:
                alive[fd].on_readable(fd)
        if self._caller.fileno() in ready:
            self._hear_caller()
        if self._court and control in ready:
            self._court.serve()
        self._poll_limits()
        if self._court:
            self._court.answer()

    def _live(self) -> list[Running]:
        return [process for process in self._running.values() if process.result is None]

    def _next_event(self) -> float:
        times = [self._next_poll, *(process.deadline for process in self._live())]
        if self._court and self._court.deadline is not None:
            times.append(self._court.deadline)
        return min(times)

    def _poll_limits(self) -> None:
        now = time.monotonic()
        if now < self._next_poll:
            for process in self._live():
                process.check(now, None)
            return
        self._polls += 1
        live = {process.init_pid: process for process in self._live() if process.init_pid}
        usage = measure(live, memfds=self._polls % _POLLS_PER_MEMFD_LOOK == 0)
        for pid, process in live.items():
            process.check(now, usage[pid])
        # A look that takes long must not take the whole core.
        self._next_poll = now + max(_POLL_SECONDS, 10 * (time.monotonic() - now))

    def _hear_caller(self) -> None:
        if not self._caller.recv(1):
            os._exit(1)  # The caller is dead: this ends the pid namespace and everything in it.
        for process in self._live():
            process.kill(End.STOPPED, "stopped by the caller")


def _reap() -> None:
    """Reap every dead child, orphans too: the launcher is the init of its pid namespace."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> None:
    """Read the plan from standard input, run it, write the result."""
    for entry in Path("/proc/self/fd").iterdir():
        # Nothing that was inherited may reach a sandboxed process by chance.
        with suppress(OSError):  # The listing's own descriptor is gone by now.
            os.set_inheritable(int(entry.name), False)
    with socket.socket(fileno=os.dup(0)) as caller:
        plan = receive_plan(caller)
        result = Launcher(plan, caller).run()
        send_result(caller, result)
