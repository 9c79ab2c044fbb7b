"""The sandbox of containers: a fresh one for every process, on a Docker daemon of this machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from akarena.errors import InfrastructureError
from akarena.sandbox.base import Assurance, AssuranceLine, Command, Result, Role
from akarena.sandbox.docker.engine import Engine, EngineFacts
from akarena.sandbox.docker.images import Images
from akarena.sandbox.docker.options import LOW_MEMORY_BYTES
from akarena.sandbox.docker.session import Session
from akarena.sandbox.ownership import host_id
from akarena.sandbox.runtime import Python

_ONLY = "only"


class DockerSandbox:
    """Runs processes in containers.

    Args:
        images: The image of every role; without them nothing can run.
    """

    name = "docker"

    def __init__(self, images: Images | None = None) -> None:
        self._chosen = images
        self._engine = Engine()

    @property
    def images(self) -> Images:
        """The image of every role.

        Raises:
            InfrastructureError: None were chosen.
        """
        if self._chosen is None:
            raise InfrastructureError("sandbox docker: no images were chosen (run `akarena build`)")
        return self._chosen

    def usable(self) -> bool:
        """Say whether a daemon of this machine answers and some image of ours was built."""
        from akarena import images

        if self._chosen is None and not any(images.folder().glob("*.json")):
            return False
        try:
            self._engine.facts({})
        except InfrastructureError:
            return False
        return True

    def facts(self) -> EngineFacts:
        """Give what a run records about this sandbox.

        Raises:
            InfrastructureError: The daemon does not answer, or lacks an image.
        """
        return self._engine.facts(self.images.by_role)

    def python(self, role: Role = Role.JUDGE) -> Python:
        """Give the interpreter of a role's image."""
        return Python(self.images.of(role).python)

    def assurance(self) -> tuple[AssuranceLine, ...]:
        """Say for each limit how strictly it is kept.

        Raises:
            InfrastructureError: The daemon does not answer, or can't be used.
        """
        facts = self._engine.facts({})
        uid, _ = host_id()
        hard, absent = Assurance.HARD, Assurance.ABSENT
        swap = "" if facts.swap_is_limited else "; what is swapped out does not count on this machine"
        memory = f"the container's memory limit, at least {LOW_MEMORY_BYTES >> 20} MiB; files on tmpfs count too{swap}"
        cpus = len(os.sched_getaffinity(0))
        return (
            AssuranceLine("wall_seconds", hard, "the container is killed at the deadline, and when its caller dies"),
            AssuranceLine("memory_bytes", hard, memory),
            AssuranceLine("processes", hard, "the container's pids limit: the kernel refuses more, which is no end"),
            AssuranceLine("output_bytes", hard, "bounded buffers in the caller; the daemon keeps no log"),
            AssuranceLine("file_bytes", hard, "RLIMIT_FSIZE"),
            AssuranceLine("tmp_bytes", hard, "size of each tmpfs"),
            AssuranceLine(
                "writable_mounts", absent, f"{facts.storage} has no quota: total size and file count are free"
            ),
            AssuranceLine("cpu", hard, f"the {cpus} CPUs of the caller, all of which may be used"),
            AssuranceLine("network", hard, "network mode none: a network namespace with loopback only"),
            AssuranceLine("files", hard, "the image, read-only, and the mounts"),
            AssuranceLine("processes_visible", hard, "a pid namespace for each container"),
            AssuranceLine("user", hard, f"host user {uid}, no capability, no-new-privileges"),
            AssuranceLine("seccomp", hard, "an allow list of system calls, within Docker's own"),
        )

    def run(self, command: Command, *, cancel: threading.Event | None = None) -> Result:
        """Run one process tree; see `Sandbox.run`."""
        with Session(self._engine.open(), self.images, {_ONLY: command}, _ONLY) as session:
            return session.run(cancel)

    def judge(self, processes: Mapping[str, Command], *, main: str, cancel: threading.Event | None = None) -> Result:
        """Run a judgement; see `Sandbox.judge`."""
        if main not in processes:
            raise ValueError(f"main process {main!r} is not among {sorted(processes)}")
        with Session(self._engine.open(), self.images, processes, main) as session:
            return session.judge(cancel)
