"""One running process tree as the launcher sees it: start, output, limits, death. Standard library only."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from akarena.sandbox.base import JUDGE_OPEN_FILES, MAX_OPEN_FILES, End, Result
from akarena.sandbox.capture import Capture
from akarena.sandbox.inner import Descriptors, arguments, closing_options, encode, lift, memory_file
from akarena.sandbox.plan import Plan, Process
from akarena.sandbox.watch import Usage

_SETUP_SECONDS = 20.0
_READ_BYTES = 1 << 16
_PIPE_BYTES = 1 << 18
_KILLED_CODE = 128 + signal.SIGKILL
_OWN_TASKS = 1  # bubblewrap's init inside the pid namespace.
_SHELL_SIGNALS = range(129, 129 + signal.NSIG)
_FULL_BYTES = 1 << 16


def _pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    return lift(reader), lift(writer)


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        with suppress(OSError):
            os.close(fd)


class Running:
    """A started process tree. The launcher calls `on_readable` for its descriptors and `check` now and then."""

    def __init__(self, name: str, process: Process, plan: Plan, *, max_tasks: int, fds: Sequence[int]) -> None:
        """Start it.

        Args:
            name: Its name in the plan.
            process: What to run.
            plan: The plan it belongs to.
            max_tasks: The kernel's limit on processes and threads of its user.
            fds: What it gets as file descriptors 3, 4 and so on; closed here.
        """
        self.name = name
        self.limits = process.limits
        self.result: Result | None = None
        self._reason: End | None = None
        self._notes: list[str] = []
        self._captures = {
            "stdout": Capture(process.limits.output_bytes),
            "stderr": Capture(process.limits.output_bytes),
        }
        self._started = time.monotonic()
        self.deadline = self._started + process.limits.wall_seconds
        self._status = bytearray()
        self.init_pid = 0
        self._init_pidfd = -1
        self._monitor_dead = False
        self._own_user = not plan.judgement
        self._is_judge = plan.judgement and name == plan.main
        self._group_fds = process.group_fds
        self._earlier_kills = 0
        stdout, child_stdout = _pipe()
        stderr, child_stderr = _pipe()
        self._status_fd, child_status = _pipe()
        child_block, block = _pipe()
        os.set_blocking(child_block, True)
        self._outputs = {stdout: "stdout", stderr: "stderr"}
        for fd in self._outputs:
            with suppress(OSError):  # Above the user's pipe quota: a smaller pipe works too.
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        given = [lift(fd) for fd in fds]
        null = lift(os.open(os.devnull, os.O_RDONLY))
        temporary = [child_stdout, child_stderr, child_status, child_block, null, *given]
        try:
            table = Descriptors()
            for number, fd in enumerate([null, child_stdout, child_stderr, *given]):
                table.give(fd, number)
            command_line = self._command_line(process, plan, table, temporary, child_block, child_status)
            self._monitor_pid = os.posix_spawn(
                plan.bwrap,
                command_line,
                {},
                file_actions=table.file_actions(),
                setsigmask=[],
                setsigdef=[
                    number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)
                ],
            )
        finally:
            _close(temporary)
        self._monitor_pidfd = os.pidfd_open(self._monitor_pid)
        try:
            self._prepare(max_tasks)
        except (ProcessLookupError, FileNotFoundError):
            pass  # bubblewrap failed and is gone: its status says so.
        except OSError as error:
            self.kill(End.FAILED_TO_START, f"its limits could not be set: {error}")
        finally:
            # bubblewrap starts the program when a byte arrives or this end is closed.
            os.close(block)

    def _command_line(
        self, process: Process, plan: Plan, table: Descriptors, temporary: list[int], block: int, status: int
    ) -> list[str]:
        options, files = arguments(process, own_user=self._own_user)
        for target, content in files.items():
            temporary.append(lift(memory_file(content)))
            options += ["--ro-bind-data", table.give_high(temporary[-1]), target]
        options += closing_options(process)
        temporary.append(lift(memory_file(plan.seccomp)))
        options += ["--seccomp", table.give_high(temporary[-1])]
        options += ["--block-fd", table.give_high(block), "--json-status-fd", table.give_high(status)]
        temporary.append(lift(memory_file(encode(options))))
        return [plan.bwrap, "--args", table.give_high(temporary[-1]), "--", *process.argv]

    def _open_files(self) -> int:
        highest = resource.prlimit(self.init_pid, resource.RLIMIT_NOFILE)[1]
        judge = JUDGE_OPEN_FILES if highest == resource.RLIM_INFINITY else min(JUDGE_OPEN_FILES, highest)
        return judge if self._is_judge else judge * MAX_OPEN_FILES // JUDGE_OPEN_FILES

    def _prepare(self, max_tasks: int) -> None:
        """Set the limits on bubblewrap's child while it is held before the program starts."""
        end = time.monotonic() + _SETUP_SECONDS
        while not self.init_pid and select.select([self._status_fd], [], [], max(0.0, end - time.monotonic()))[0]:
            if not self._read_status():
                break
        if not self.init_pid:
            self._kill_tree()
            return
        self._init_pidfd = os.pidfd_open(self.init_pid)
        limits = (
            (resource.RLIMIT_NPROC, max_tasks + _OWN_TASKS),
            (resource.RLIMIT_FSIZE, self.limits.file_bytes),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NOFILE, self._open_files()),
            (resource.RLIMIT_MSGQUEUE, 0),
        )
        for kind, value in limits:
            highest = resource.prlimit(self.init_pid, kind)[1]
            value = value if highest == resource.RLIM_INFINITY else min(value, highest)
            resource.prlimit(self.init_pid, kind, (value, value))
        # If the whole machine runs out of memory, the kernel shall choose this tree.
        with suppress(PermissionError):
            Path(f"/proc/{self.init_pid}/oom_score_adj").write_text("1000")
        if self._group_fds:
            self._earlier_kills = self._out_of_memory_kills()
            os.write(self._group_fds[0], str(self.init_pid).encode())

    def descriptors(self) -> list[int]:
        """Give the descriptors to watch for reading."""
        pidfds = [] if self._monitor_dead else [self._monitor_pidfd]
        return [*self._outputs, *pidfds, *([self._init_pidfd] if self._monitor_dead and self._init_pidfd >= 0 else [])]

    def on_readable(self, fd: int) -> None:
        """Take output, or notice a death."""
        if fd in self._outputs:
            self._pump(fd)
        elif fd == self._monitor_pidfd and not self._monitor_dead:
            self._monitor_dead = True
            # The program ended; what it left behind must not live on.
            self._kill_tree()
            if self._init_pidfd < 0:
                self._finish()
        elif fd == self._init_pidfd:
            self._finish()

    def _pump(self, fd: int) -> bool:
        try:
            data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            del self._outputs[fd]
            os.close(fd)
            return False
        self._captures[self._outputs[fd]].add(data)
        return True

    def _read_status(self) -> bool:
        try:
            data = os.read(self._status_fd, _READ_BYTES)
        except BlockingIOError:
            return False
        self._status += data
        self.init_pid = self._status_value("child-pid") or 0
        return bool(data)

    def _status_value(self, key: str) -> int | None:
        for line in self._status.split(b"\n"):
            with suppress(ValueError):
                value = json.loads(line).get(key)
                if isinstance(value, int):
                    return value
        return None

    def check(self, now: float, usage: Usage | None) -> None:
        """Hold the tree to its limits.

        Args:
            now: The monotonic clock.
            usage: What it uses, where that was measured.
        """
        if now >= self.deadline:
            self.kill(End.TIMEOUT, f"over {self.limits.wall_seconds:g} s")
        elif usage and usage.memory_bytes > self.limits.memory_bytes:
            self.kill(End.OUT_OF_MEMORY, f"{usage.memory_bytes} bytes in use, {self.limits.memory_bytes} allowed")
        elif usage and usage.tasks > self.limits.processes + _OWN_TASKS:
            self.kill(End.TOO_MANY_PROCESSES, f"{usage.tasks} processes and threads, {self.limits.processes} allowed")
        elif usage and not self._notes and self._tmpfs_is_full():
            self._notes.append("a tmpfs was full")

    def _tmpfs_is_full(self) -> bool:
        for folder in ("tmp", "home/user", "dev/shm"):
            with suppress(OSError):
                space = os.statvfs(f"/proc/{self.init_pid}/root/{folder}")
                if space.f_bavail * space.f_frsize < _FULL_BYTES:
                    return True
        return False

    def kill(self, reason: End, detail: str = "") -> None:
        """Kill the whole tree; its end arrives through `on_readable`."""
        if self.result is None and self._reason is None:
            self._reason = reason
            self._notes[:0] = [detail] if detail else []
            self._kill_tree()

    def _out_of_memory_kills(self) -> int:
        """Count what the kernel has killed in the control group for its memory limit."""
        lines = os.pread(self._group_fds[1], 4096, 0).decode().splitlines() if self._group_fds else []
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def _kill_tree(self) -> None:
        # The init of the pid namespace takes everything with it; bubblewrap's monitor then ends by itself.
        target = self._init_pidfd if self._init_pidfd >= 0 else self._monitor_pidfd
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(target, signal.SIGKILL)

    def _finish(self) -> None:
        for fd in list(self._outputs):
            # Every writer is dead, unless a descriptor was handed to another process: take what is there.
            while self._pump(fd):
                pass
        while self._read_status():
            pass
        _close([*self._outputs, self._status_fd, self._monitor_pidfd, self._init_pidfd])
        self._outputs.clear()
        code = self._status_value("exit-code")
        end, exit_code, number = self._classify(code)
        captures = self._captures
        stderr = captures["stderr"].value()
        if end is End.FAILED_TO_START:
            self._notes.append(stderr.decode(errors="replace").strip()[-500:] or "bubblewrap ended without a message")
        elif end is End.EXITED and exit_code == 0:
            self._notes.clear()
        self.result = Result(
            end=end,
            exit_code=exit_code,
            signal=number,
            stdout=captures["stdout"].value(),
            stderr=stderr,
            dropped_bytes=sum(capture.dropped_bytes for capture in captures.values()),
            wall_seconds=time.monotonic() - self._started,
            detail="; ".join(self._notes),
        )

    def _classify(self, code: int | None) -> tuple[End, int | None, int | None]:
        if self._reason is not None and code in (None, _KILLED_CODE):
            return self._reason, None, signal.SIGKILL
        if code in (None, _KILLED_CODE) and self._out_of_memory_kills() > self._earlier_kills:
            self._notes = [f"over {self.limits.memory_bytes} bytes"]
            return End.OUT_OF_MEMORY, None, signal.SIGKILL
        if code is None:
            return End.FAILED_TO_START, None, None
        if self._reason is not None:
            self._notes.clear()  # It had ended by itself just before.
        if code not in _SHELL_SIGNALS:
            return End.EXITED, code, None
        number = code - 128
        if number == signal.SIGXFSZ:
            self._notes.append(f"a file over {self.limits.file_bytes} bytes")
            return End.DISK_FULL, None, number
        return End.SIGNALLED, None, number
