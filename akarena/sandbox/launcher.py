"""The only program of the outer sandbox: starts the inner ones, keeps their limits and reports. Standard library only.

It runs as the first user of its own user namespace, with `python -I -S`. Its standard input is a socket to the caller:
the plan comes in, the result goes out; a byte from the caller means stop, and its end means that the caller is dead.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akarena.sandbox.base import End, Result
from akarena.sandbox.inner import memory_file
from akarena.sandbox.plan import Plan, receive_plan, result_fields, send_result
from akarena.sandbox.process import Running
from akarena.sandbox.watch import measure

_POLL_SECONDS = 0.05
_POLLS_PER_MEMFD_LOOK = 4
_DEATH_SECONDS = 15.0
_MAX_REQUEST_BYTES = 1 << 16
_MAX_FDS = 16
_RESERVED_TASKS = 64


@dataclass
class _Waiter:
    """The main process waits for the end of another one; at most one such request is open."""

    name: str
    deadline: float


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
        self._control: socket.socket | None = None
        self._waiter: _Waiter | None = None
        self._polls = 0
        self._next_poll = 0.0

    def run(self) -> Result:
        """Start the main process and serve it until everything is dead."""
        fds: list[int] = []
        if self._plan.judgement:
            self._control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            fds.append(other.detach())
        main = self._start(self._plan.main, fds)
        while main.result is None:
            self._step()
        for process in self._running.values():
            process.kill(End.STOPPED)
        end = time.monotonic() + _DEATH_SECONDS
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
        watched = [*alive, self._caller.fileno(), *([self._control.fileno()] if self._control else [])]
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
        if self._control and self._control.fileno() in ready:
            self._serve(self._control)
        self._poll_limits()
        self._answer_waiter()

    def _live(self) -> list[Running]:
        return [process for process in self._running.values() if process.result is None]

    def _next_event(self) -> float:
        times = [self._next_poll, *(process.deadline for process in self._live())]
        if self._waiter:
            times.append(self._waiter.deadline)
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

    def _serve(self, control: socket.socket) -> None:
        fds: list[int] = []
        try:
            data, fds, _, _ = socket.recv_fds(control, _MAX_REQUEST_BYTES, _MAX_FDS, socket.MSG_CMSG_CLOEXEC)
            if not data:
                self._close_control()
                return
            request = json.loads(data)
            name = str(request["name"])
            if request["do"] == "spawn":
                self._spawn(name, fds)
                fds = []
            elif name not in self._running or name == self._plan.main:
                raise ValueError(f"process {name!r} was not started")
            elif request["do"] == "kill":
                self._running[name].kill(End.STOPPED, "killed by the main process")
                self._waiter = _Waiter(name, time.monotonic() + _DEATH_SECONDS)
            elif request["do"] == "wait":
                self._waiter = _Waiter(name, time.monotonic() + float(request["timeout_seconds"]))
            else:
                raise ValueError("the request is unknown")
        except ConnectionError:
            self._close_control()
        except (ValueError, KeyError, TypeError, OSError) as error:
            self._reply({"error": f"{type(error).__name__}: {error}"[:1000]}, [])
        finally:
            for fd in fds:
                os.close(fd)

    def _spawn(self, name: str, fds: Sequence[int]) -> None:
        try:
            if name not in self._plan.processes or name == self._plan.main:
                raise ValueError(f"process {name!r} is not in the plan")
            if name in self._running and self._running[name].result is None:
                raise ValueError(f"process {name!r} is still running")
        except ValueError:
            for fd in fds:
                os.close(fd)
            raise
        kept, given = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with kept:
            self._start(name, [given.detach(), *fds])
            self._reply({}, [kept.fileno()])

    def _answer_waiter(self) -> None:
        waiter = self._waiter
        if waiter is None:
            return
        result = self._running[waiter.name].result
        if result is not None:
            self._waiter = None
            outputs = [memory_file(result.stdout), memory_file(result.stderr)]
            self._reply({"exit": result_fields(result)}, outputs)
            for fd in outputs:
                os.close(fd)
        elif time.monotonic() >= waiter.deadline:
            self._waiter = None
            self._reply({}, [])

    def _reply(self, reply: dict[str, Any], fds: Sequence[int]) -> None:
        if self._control:
            with suppress(OSError):  # A main process that does not read its answer harms only itself.
                socket.send_fds(self._control, [json.dumps(reply).encode()], list(fds), socket.MSG_DONTWAIT)

    def _close_control(self) -> None:
        if self._control:
            self._control.close()
            self._control = None


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
