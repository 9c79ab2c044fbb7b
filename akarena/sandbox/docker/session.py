"""One `run` or `judge` from start to end: its containers, its scratch volumes, its control socket."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from akarena.errors import InfrastructureError
from akarena.images.daemon import told
from akarena.sandbox.base import Command, End, Result
from akarena.sandbox.court import DEATH_SECONDS, CourtRoom
from akarena.sandbox.docker.container import Container
from akarena.sandbox.docker.handoff import Handoff
from akarena.sandbox.docker.images import Images
from akarena.sandbox.docker.options import create_options, tmpfs_bytes
from akarena.sandbox.docker.owner import OWNER_LABEL, RUN_LABEL, own_label, remove_containers, remove_labelled
from akarena.sandbox.docker.watch import OutOfMemoryWatch
from akarena.sandbox.ownership import host_id
from akarena.temporary import OwnedFolder

if TYPE_CHECKING:
    from docker import APIClient

_CANCEL_POLL_SECONDS = 0.05
_KILL_SECONDS = 60.0


class Session:
    """Everything of one call, as a context manager: nothing of it is left when it is closed."""

    def __init__(self, api: APIClient, images: Images, processes: Mapping[str, Command], main: str) -> None:
        """Prepare.

        Args:
            api: The daemon; used by this session alone.
            images: By role.
            processes: What may run, by name.
            main: What runs first.
        """
        self._api = api
        self._images = images
        self._processes = processes
        self._main = main
        self._run = secrets.token_hex(8)
        self._label = f"{RUN_LABEL}={self._run}"
        self._labels = {RUN_LABEL: self._run, OWNER_LABEL: own_label()}
        self._volumes: dict[str, str] = {}
        self._containers: list[Container] = []
        self._court: CourtRoom | None = None
        self._folder: OwnedFolder | None = None
        self._watch: OutOfMemoryWatch | None = None
        self._wake_reader, self._wake_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def __enter__(self) -> Session:
        """Make the folder of handoffs and the scratch volumes."""
        try:
            self._folder = OwnedFolder("docker")
            self._watch = OutOfMemoryWatch(self._api, self._label, self._out_of_memory)
            self._make_volumes()
        except BaseException:
            self._clean()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill and remove everything."""
        self._clean()

    def _clean(self) -> None:
        try:
            if self._court:
                self._court.close()
            with told("containers can't be removed"):
                if any(container.result is None for container in self._containers):
                    remove_containers(self._api, self._label)
                for container in self._containers:
                    container.join()
                # Once more: a volume is free only when no container is left, and an interrupted creation left no name.
                remove_labelled(self._api, self._label)
        finally:
            if self._watch:
                self._watch.close()
            self._api.close()
            if self._folder:
                self._folder.cleanup()
            os.close(self._wake_reader)
            os.close(self._wake_writer)

    def _make_volumes(self) -> None:
        uid, gid = host_id()
        sizes: dict[str, int] = {}
        for command in self._processes.values():
            for scratch in command.scratch:
                size = tmpfs_bytes(command.limits) if scratch.writable else 1
                sizes[scratch.name] = max(size, sizes.get(scratch.name, 0))
        for number, (name, size) in enumerate(sizes.items()):
            options = {
                "type": "tmpfs",
                "device": "tmpfs",
                "o": f"size={size},mode=0700,uid={uid},gid={gid},nosuid,nodev",
            }
            self._volumes[name] = f"akarena-{self._run}-{number}"
            with told("a scratch volume can't be made"):
                self._api.create_volume(self._volumes[name], driver="local", driver_opts=options, labels=self._labels)

    def run(self, cancel: threading.Event | None) -> Result:
        """Run the main process to its end, without any other."""
        return self._until_end(self._start(self._main, []), cancel)

    def judge(self, cancel: threading.Event | None) -> Result:
        """Run the main process to its end, and the others as it asks for them."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._court = CourtRoom(ours, self._processes.keys() - {self._main}, self._start)
        main = self._start(self._main, [theirs.detach()])
        result = self._until_end(main, cancel)
        self._court.close()
        for container in self._containers:
            container.kill(End.STOPPED)
        return result

    def _start(self, name: str, fds: Sequence[int]) -> Container:
        command = self._processes[name]
        assert self._folder is not None
        with contextlib.ExitStack() as unless_started:
            for fd in fds:
                unless_started.callback(os.close, fd)
            handoff = Handoff(Path(self._folder.name) / str(len(self._containers)), host_id()[0])
            unless_started.callback(handoff.close)
            image = self._images.of(command.role)
            # The main container lives longest: without it a volume would end with the first one that uses it.
            held = self._volumes if name == self._main else {}
            options = create_options(
                *(self._api, image, command, handoff, self._labels, self._volumes, held),
                is_judge=self._court is not None and name == self._main,
            )
            unless_started.pop_all()
        container = Container(self._api, command, handoff, self._wake)
        self._containers.append(container)
        container.start(options, fds)
        return container

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):  # Full means that the loop will wake; closed, that it has.
            os.write(self._wake_writer, b"x")

    def _out_of_memory(self, container_id: str) -> None:
        for container in self._containers:
            if container.id == container_id:
                container.note_out_of_memory()

    def _until_end(self, main: Container, cancel: threading.Event | None) -> Result:
        stopped_at: float | None = None
        while main.result is None:
            self._wait(cancel)
            now = time.monotonic()
            for container in self._live():
                if container.fault:
                    raise container.fault
                container.check(now)
            if cancel is not None and cancel.is_set() and stopped_at is None:
                stopped_at = now
                for container in self._live():
                    container.kill(End.STOPPED, "stopped by the caller")
            if self._court:
                self._court.answer()
            if self._overdue(main, now):
                raise InfrastructureError("a container that was killed does not end")
        return main.result

    def _overdue(self, main: Container, now: float) -> bool:
        return main.killed_at is not None and now > main.killed_at + _KILL_SECONDS

    def _live(self) -> list[Container]:
        return [container for container in self._containers if container.result is None]

    def _wait(self, cancel: threading.Event | None) -> None:
        """Wait for the next event, and take a request of the main process."""
        running = [container for container in self._live() if container.killed_at is None]
        times = [container.deadline for container in running if container.deadline is not None]
        if self._court and self._court.deadline is not None:
            times.append(self._court.deadline)
        control = self._court.socket if self._court else None
        watched: list[int | socket.socket] = [self._wake_reader, *([control] if control else [])]
        timeout = max(0.0, min(times, default=time.monotonic() + DEATH_SECONDS) - time.monotonic())
        if cancel is not None:
            timeout = min(timeout, _CANCEL_POLL_SECONDS)
        ready, _, _ = select.select(watched, [], [], timeout)
        if self._wake_reader in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_reader, 4096)
        if self._court and control in ready:
            self._court.serve()
