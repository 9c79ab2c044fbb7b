"""The embedded sandbox: bubblewrap from its wheel, with no daemon and no image."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from akarena.errors import InfrastructureError
from akarena.sandbox.base import Assurance, AssuranceLine, Command, Result
from akarena.sandbox.cgroup import Groups, find_base
from akarena.sandbox.outer import SCRATCH, Outer
from akarena.sandbox.ownership import host_id
from akarena.sandbox.plan import Plan, receive_result, stage
from akarena.sandbox.runtime import find_bubblewrap
from akarena.sandbox.seccomp import program

_CANCEL_POLL_SECONDS = 0.05
_STOP_SECONDS = 30.0
_GRACE_SECONDS = 60.0
_ONLY = "only"


class Bubblewrap:
    """Runs processes under an outer bubblewrap whose only program is our launcher."""

    name = "bubblewrap"

    def assurance(self) -> tuple[AssuranceLine, ...]:
        """Say for each limit how strictly it is kept."""
        uid, _ = host_id()
        hard, polled, absent = Assurance.HARD, Assurance.POLLED, Assurance.ABSENT
        polls = "the launcher adds up /proc every 50 ms, memfds every 200 ms"
        shared = "RLIMIT_NPROC; in a judgement one pool, and polled for each process"
        grouped = find_base() is not None
        return (
            AssuranceLine("wall_seconds", hard, "the init of its pid namespace is killed at the deadline"),
            AssuranceLine("memory_bytes", hard if grouped else polled, "memory.max of a cgroup" if grouped else polls),
            AssuranceLine("processes", hard, "pids.max of a cgroup" if grouped else shared),
            AssuranceLine("output_bytes", hard, "bounded buffers in the launcher"),
            AssuranceLine("file_bytes", hard, "RLIMIT_FSIZE"),
            AssuranceLine("tmp_bytes", hard, "size of each tmpfs"),
            AssuranceLine("writable_mounts", absent, "total size and file count are not limited here"),
            AssuranceLine("cpu", absent, "all cores may be used"),
            AssuranceLine("network", hard, "a network namespace with loopback only"),
            AssuranceLine("files", hard, "a mount namespace with an empty read-only root and the mounts"),
            AssuranceLine("processes_visible", hard, "a pid namespace for each process tree"),
            AssuranceLine("user", hard, f"host user {uid}, no capability, no-new-privileges"),
            AssuranceLine("seccomp", hard, "a deny list of system calls"),
        )

    def run(self, command: Command, *, cancel: threading.Event | None = None) -> Result:
        """Run one process tree; see `Sandbox.run`."""
        return self._execute({_ONLY: command}, _ONLY, judgement=False, cancel=cancel)

    def judge(self, processes: Mapping[str, Command], *, main: str, cancel: threading.Event | None = None) -> Result:
        """Run a judgement; see `Sandbox.judge`."""
        if main not in processes:
            raise ValueError(f"main process {main!r} is not among {sorted(processes)}")
        return self._execute(processes, main, judgement=True, cancel=cancel)

    def _execute(
        self, processes: Mapping[str, Command], main: str, *, judgement: bool, cancel: threading.Event | None
    ) -> Result:
        outer = Outer.of(processes.values())
        base = find_base()
        groups = Groups(base) if base else None
        try:
            staged = {}
            for name, command in processes.items():
                fds: tuple[int, ...] = ()
                if groups:
                    group = groups.make(command.limits)
                    fds = (group.procs_fd, group.events_fd)
                staged[name] = stage(command, outer.sources, SCRATCH, fds)
            plan = Plan(staged, main, judgement, str(find_bubblewrap()[0]), program())
            longest = processes[main].limits.wall_seconds + _GRACE_SECONDS
            return _Session(outer).execute(plan, cancel, longest)
        except OSError as error:
            raise InfrastructureError(f"the sandbox can't be set up: {error}") from error
        finally:
            outer.close()
            if groups:
                groups.remove()


class _Session:
    """One outer sandbox from start to end."""

    def __init__(self, outer: Outer) -> None:
        self._outer = outer

    def execute(self, plan: Plan, cancel: threading.Event | None, longest_seconds: float) -> Result:
        ours, theirs = socket.socketpair()
        status_reader, status_writer = os.pipe()
        with ours, tempfile.TemporaryFile() as messages:
            try:
                command_line = self._outer.command_line(status_writer, as_root=os.geteuid() == 0)
                group_fds = [fd for staged in plan.processes.values() for fd in staged.group_fds]
                process = subprocess.Popen(
                    command_line,
                    stdin=theirs.fileno(),
                    stdout=messages,
                    stderr=messages,
                    env={},
                    cwd="/",
                    pass_fds=[*self._outer.fds, *group_fds, status_writer],
                    start_new_session=True,
                )
            finally:
                theirs.close()
                os.close(status_writer)
                self._outer.close()
            try:
                return self._talk(ours, plan, cancel, longest_seconds)
            except (EOFError, OSError) as error:
                raise InfrastructureError(f"the sandbox failed: {_explain(_text(messages)) or error}") from error
            finally:
                # Without its caller the launcher ends, and with it everything else.
                ours.close()
                _end(process, status_reader)
                os.close(status_reader)

    def _talk(
        self, stream: socket.socket, plan: Plan, cancel: threading.Event | None, longest_seconds: float
    ) -> Result:
        stream.sendall(plan.dump())
        end = time.monotonic() + longest_seconds
        stopped = False
        while not select.select([stream], [], [], _CANCEL_POLL_SECONDS)[0]:
            if not stopped and cancel is not None and cancel.is_set():
                stopped, end = True, time.monotonic() + _STOP_SECONDS
                stream.sendall(b"s")
            if time.monotonic() > end:
                raise EOFError("it does not end")
        stream.settimeout(_STOP_SECONDS)
        return receive_result(stream)


def _text(file: IO[bytes]) -> str:
    """Give the last line: bubblewrap's message, or the error under a traceback of the launcher."""
    file.seek(0)
    lines = file.read()[-2000:].decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _end(process: subprocess.Popen[bytes], status_fd: int) -> None:
    """Wait until the outer sandbox is gone, its namespaces included."""
    try:
        process.wait(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    # Where bubblewrap's monitor was killed, the init of the pid namespace outlives it by a moment.
    first = os.read(status_fd, 4096).split(b"\n")[0]
    pid = first.partition(b'"child-pid": ')[2].partition(b",")[0].strip(b" }")
    if pid.isdigit():
        with suppress(ProcessLookupError):
            pidfd = os.pidfd_open(int(pid))
            try:
                select.select([pidfd], [], [], _STOP_SECONDS)
            finally:
                os.close(pidfd)


_SWITCHES = (
    ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
)


def _explain(message: str, sysctls: Path = Path("/proc/sys")) -> str:
    """Add to bubblewrap's message the setting of this machine that is the likely cause."""
    if "amespace" not in message and "uid map" not in message and "ermission" not in message:
        return message
    for name, value, remedy in _SWITCHES:
        with suppress(OSError):
            if (sysctls / name).read_text().strip() == value:
                setting = name.replace("/", ".")
                return f"{message} (user namespaces are off: {setting} is {value}; as root run `sysctl -w {remedy}`)"
    return f"{message} (in a container, allow user namespaces and mounts: its seccomp or AppArmor profile forbids them)"
