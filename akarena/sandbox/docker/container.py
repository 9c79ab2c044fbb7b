"""One running process tree in a container of its own: start, output, death."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from docker.errors import APIError, DockerException
from requests import RequestException
from urllib3.exceptions import HTTPError

from akarena.errors import AkarenaError, InfrastructureError
from akarena.images.daemon import reason, told
from akarena.sandbox.base import Command, End, Result
from akarena.sandbox.capture import Capture
from akarena.sandbox.docker import streams
from akarena.sandbox.docker.handoff import Handoff
from akarena.sandbox.docker.owner import remove_container

if TYPE_CHECKING:
    from docker import APIClient

_KILLED_CODE = 128 + signal.SIGKILL
_SHELL_SIGNALS = range(129, 129 + signal.NSIG)
_JOIN_SECONDS = 30.0
_CAUSE_SECONDS = 0.3
_FAILURES = (AkarenaError, DockerException, RequestException, HTTPError, OSError, KeyError)


class Container:
    """A member of a judgement, or a lone process. A thread of its own follows it to its end.

    Attributes:
        result: How it ended, set by that thread; None while anything of it runs.
        fault: What broke in that thread, if anything did.
        deadline: On the monotonic clock, once its program runs.
        killed_at: Likewise, when it was first asked to die.
    """

    def __init__(self, api: APIClient, command: Command, handoff: Handoff, changed: Callable[[], None]) -> None:
        """Make a container that is not started.

        Args:
            api: The daemon.
            command: What it runs.
            handoff: Its folder.
            changed: Called from the thread when `result` or `fault` is set.
        """
        self.result: Result | None = None
        self.fault: InfrastructureError | None = None
        self.deadline: float | None = None
        self.killed_at: float | None = None
        self.id = ""
        self._api = api
        self._command = command
        self._handoff = handoff
        self._changed = changed
        self._captures = (Capture(command.limits.output_bytes), Capture(command.limits.output_bytes))
        self._out_of_memory = threading.Event()
        self._reason: End | None = None
        self._note = ""
        self._not_started: str | None = None
        self._started = 0.0
        self._is_started = threading.Event()
        self._is_dead = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, options: dict[str, Any], fds: Sequence[int]) -> None:
        """Create the container and start its program.

        Args:
            options: For its creation.
            fds: What the program gets as file descriptors 3, 4 and so on; closed here.

        Raises:
            InfrastructureError: Docker refuses, or the first program does not come up.
        """
        frames: Any = None
        try:
            with told(f"a container of the image {options['image']}"):
                self.id = self._api.create_container(**options)["Id"]
                # Before the start, so that no output can be missed.
                frames = self._api.attach(self.id, stdout=True, stderr=True, stream=True, demux=True)
                self._api.start(self.id)
            self._started = time.monotonic()
            self._thread = threading.Thread(target=self._follow, args=(frames,), daemon=True)
            self._thread.start()
            self._not_started = self._handoff.give(self._command, fds, self._is_dead.is_set)
            self._started = time.monotonic()
            self.deadline = self._started + self._command.limits.wall_seconds
        except InfrastructureError as error:
            self._is_started.set()
            raise self._explained(error) from None
        finally:
            self._is_started.set()
            if frames is not None and self._thread is None:
                streams.close(frames)
            for fd in fds:
                os.close(fd)
            self._handoff.close()

    def _explained(self, error: InfrastructureError) -> InfrastructureError:
        """Add what the first program said, when it died of it."""
        if self._thread and self._is_dead.is_set():
            self._thread.join(_JOIN_SECONDS)
            said = reason(self._captures[1].value().decode(errors="replace"))
            return InfrastructureError(f"{error}: {said}") if said else error
        return error

    def note_out_of_memory(self) -> None:
        """Take the kernel's word that a process of the tree was killed for its memory; all of it shall die."""
        self._out_of_memory.set()
        self.kill(End.OUT_OF_MEMORY)

    def kill(self, reason: End, detail: str = "") -> None:
        """Kill the whole tree; `result` follows.

        Raises:
            InfrastructureError: Docker does not do it.
        """
        if self.result is not None or self._reason is not None:
            return
        self._reason, self._note, self.killed_at = reason, detail, time.monotonic()
        with told("a container can't be killed"):
            try:
                self._api.kill(self.id, signal.SIGKILL)
            except APIError as error:
                if error.status_code not in (404, 409):  # It has just ended.
                    raise

    def check(self, now: float) -> None:
        """Hold it to its time."""
        if self.deadline is not None and now >= self.deadline:
            self.kill(End.TIMEOUT, f"over {self._command.limits.wall_seconds:g} s")

    def join(self) -> None:
        """Wait until the thread is done with the container, which is removed then."""
        if self._thread:
            self._thread.join(_JOIN_SECONDS)

    def _follow(self, frames: Any) -> None:
        """Take all output, await the end, and clean up."""
        try:
            for pieces in frames:
                for capture, data in zip(self._captures, pieces, strict=True):
                    if data:
                        capture.add(data)
            # Output may end long before the program does.
            code = self._api.wait(self.id)["StatusCode"]
            ended = time.monotonic()
            self._is_dead.set()
            self._is_started.wait()
            self.result = self._make_result(code, ended, oom=self._ran_out_of_memory(code))
            self._changed()
            remove_container(self._api, self.id)
        except _FAILURES as error:
            self.fault = InfrastructureError(f"the Docker daemon failed: {reason(error)}")
            self._is_dead.set()
            self._changed()
        finally:
            streams.close(frames)

    def _ran_out_of_memory(self, code: int) -> bool:
        if self._out_of_memory.is_set() or self._api.inspect_container(self.id)["State"]["OOMKilled"]:
            return True
        # The daemon hears of a death and of its cause on different ways: the cause may be late.
        return code == _KILLED_CODE and self._reason is None and self._out_of_memory.wait(_CAUSE_SECONDS)

    def _make_result(self, code: int, ended: float, *, oom: bool) -> Result:
        end, exit_code, number, detail = self._classify(code, oom)
        stdout, stderr = self._captures
        return Result(
            end=end,
            exit_code=exit_code,
            signal=number,
            stdout=stdout.value(),
            stderr=stderr.value(),
            dropped_bytes=stdout.dropped_bytes + stderr.dropped_bytes,
            wall_seconds=ended - self._started,
            detail=detail,
        )

    def _classify(self, code: int, oom: bool) -> tuple[End, int | None, int | None, str]:
        limits = self._command.limits
        if self._not_started is not None:
            return End.FAILED_TO_START, None, None, self._not_started
        if oom:
            return End.OUT_OF_MEMORY, None, signal.SIGKILL, f"over {limits.memory_bytes} bytes"
        if self._reason is not None and code == _KILLED_CODE:
            return self._reason, None, signal.SIGKILL, self._note
        if code not in _SHELL_SIGNALS:
            return End.EXITED, code, None, ""
        number = code - 128
        if number == signal.SIGXFSZ:
            return End.DISK_FULL, None, number, f"a file over {limits.file_bytes} bytes"
        return End.SIGNALLED, None, number, ""
