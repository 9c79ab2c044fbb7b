"""The command line of the outer sandbox, in which only the launcher runs.

Its root holds the interpreter, bubblewrap, the launcher's modules and every mount source under a number. Where the
caller is root there is one more layer around it: root's own bubblewrap binds the sources, which another user may be
unable to reach by path, then `drop` becomes the user of the sandbox, who builds the outer sandbox from that layer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from akarena.errors import InfrastructureError
from akarena.sandbox.base import Command, Mount
from akarena.sandbox.ownership import SANDBOX_ID, device_group
from akarena.sandbox.runtime import find_bubblewrap, interpreter, interpreter_mounts

STAGE = "/stage"
SCRATCH = "/scratch"
_MODULES = "/launcher"
_MODULE_NAMES = ("base", "capture", "court", "drop", "inner", "launcher", "plan", "process", "watch")
_LOW_SIZE_BYTES = 1 << 20


@dataclass
class _Bind:
    source: Path
    target: str
    writable: bool = False
    device: bool = False


def _parents(targets: Iterable[str]) -> list[str]:
    found = {str(parent) for target in targets for parent in PurePosixPath(target).parents}
    return sorted(found - {"/"}, key=lambda folder: (folder.count("/"), folder))


@dataclass
class Outer:
    """What to execute for one plan.

    Attributes:
        sources: Where each mount source lies inside, by host path.
        fds: Open descriptors of every host path, inherited by the first bubblewrap; close them after the start.
    """

    sources: dict[str, str] = field(default_factory=dict)
    fds: list[int] = field(default_factory=list)
    _binds: list[_Bind] = field(default_factory=list)
    _scratch_bytes: dict[str, int] = field(default_factory=dict)
    _groups: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, commands: Iterable[Command]) -> Outer:
        """Open what the commands need.

        Raises:
            InfrastructureError: A mount source does not exist, or bubblewrap is missing.
        """
        outer = cls()
        try:
            outer._add_runtime()
            for command in commands:
                for mount in command.mounts:
                    outer._add_source(mount)
                for scratch in command.scratch:
                    size = command.limits.tmp_bytes if scratch.writable else _LOW_SIZE_BYTES
                    outer._scratch_bytes[scratch.name] = max(size, outer._scratch_bytes.get(scratch.name, 0))
        except BaseException:
            outer.close()
            raise
        return outer

    def close(self) -> None:
        """Close the descriptors."""
        for fd in self.fds:
            os.close(fd)
        self.fds.clear()

    def _add_runtime(self) -> None:
        for mount in interpreter_mounts():
            self._binds.append(_Bind(mount.source, mount.target))
        for folder in find_bubblewrap()[1]:
            self._binds.append(_Bind(folder, str(folder)))
        for name in _MODULE_NAMES:
            # Without any __init__.py: the package must not import what is not there.
            path = Path(__file__).with_name(f"{name}.py")
            self._binds.append(_Bind(path, f"{_MODULES}/akarena/sandbox/{name}.py"))

    def _add_source(self, mount: Mount) -> None:
        key = str(mount.source)
        if key not in self.sources:
            self.sources[key] = f"{STAGE}/{len(self.sources)}"
            self._binds.append(_Bind(mount.source, self.sources[key]))
        bind = next(bind for bind in self._binds if bind.target == self.sources[key])
        bind.writable |= mount.writable
        bind.device |= mount.device
        if mount.device and (group := device_group(mount.source)):
            self._groups.add(group)

    def _first_layer(self) -> list[str]:
        """Bind host paths by descriptor: bubblewrap refuses if the path leads elsewhere by then."""
        options: list[str] = []
        for folder in _parents(bind.target for bind in self._binds):
            options += ["--perms", "0755", "--dir", folder]
        for bind in self._binds:
            try:
                fd = os.open(bind.source, os.O_PATH | os.O_CLOEXEC)
            except OSError as error:
                raise InfrastructureError(f"mount source {bind.source} can't be opened: {error.strerror}") from error
            self.fds.append(fd)
            if bind.device:
                options += ["--dev-bind", str(bind.source), bind.target]
            else:
                options += ["--bind-fd" if bind.writable else "--ro-bind-fd", str(fd), bind.target]
        return options

    def _second_layer(self) -> list[str]:
        options: list[str] = []
        for bind in self._binds:
            kind = "--dev-bind" if bind.device else "--bind" if bind.writable else "--ro-bind"
            options += [kind, bind.target, bind.target]
        return options

    def _sandbox(self, binds: list[str], status_fd: int) -> list[str]:
        options = ["--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL"]
        options += ["--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        # The launcher is the init of its pid namespace and reaps: no dead process is left for the host's init.
        options += [
            "--as-pid-1",
            "--die-with-parent",
            "--new-session",
            "--clearenv",
            "--json-status-fd",
            str(status_fd),
        ]
        options += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--dir", "/tmp", *binds]
        for name, size in self._scratch_bytes.items():
            size = max(size, _LOW_SIZE_BYTES)
            options += ["--perms", "0700", "--size", str(size), "--tmpfs", f"{SCRATCH}/{name}"]
        return [str(find_bubblewrap()[0]), *options, "--remount-ro", "/", "--", *_python("launcher")]

    def command_line(self, status_fd: int, *, as_root: bool) -> list[str]:
        """Build the command line.

        Args:
            status_fd: Where the outer bubblewrap writes its status.
            as_root: The caller is root.
        """
        first = self._first_layer()
        if not as_root:
            return self._sandbox(first, status_fd)
        groups = ",".join(str(group) for group in sorted(self._groups))
        layer = [str(find_bubblewrap()[0]), "--die-with-parent", "--clearenv", *first]
        # Root's procfs, whole: the kernel lets a user namespace mount its own only where that is visible.
        layer += [
            "--dev-bind",
            "/proc",
            "/proc",
            "--dev",
            "/dev",
            "--perms",
            "1777",
            "--dir",
            "/tmp",
            "--remount-ro",
            "/",
        ]
        drop = [*_python("drop"), str(SANDBOX_ID), groups]
        return [*layer, "--", *drop, *self._sandbox(self._second_layer(), status_fd)]


def _python(module: str) -> list[str]:
    code = f"import sys; sys.path.insert(0, {_MODULES!r}); from akarena.sandbox.{module} import main; main()"
    return [str(interpreter()), "-I", "-S", "-c", code]
