"""What is planted on the host before a raid, and what is looked for there afterwards."""

from __future__ import annotations

import os
import secrets
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import psutil

from tests.redteam.catalogue import DOCKER

KINDS = ("host", "oracle", "tolerances", "solution", "run", "other", "earlier", "key")
_CAP_SYS_RESOURCE = 1 << 24
_WATCHED = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/dev/mqueue")


def new_mark(kind: str) -> str:
    """Make the beginning of a secret, which no other text holds."""
    return f"rt{kind}{secrets.token_hex(4)}"


@dataclass(frozen=True)
class Secrets:
    """One secret of each kind. Agents are told the marks alone."""

    marks: dict[str, str] = field(default_factory=lambda: {kind: new_mark(kind) for kind in KINDS})
    tails: dict[str, str] = field(default_factory=lambda: {kind: secrets.token_hex(8) for kind in KINDS})

    def value(self, kind: str) -> str:
        """Give the whole secret."""
        return f"{self.marks[kind]}-{self.tails[kind]}"


@dataclass(frozen=True)
class Traces:
    """Names under which a trial leaves things that another one could find."""

    name: str = field(default_factory=lambda: f"redteam{secrets.token_hex(6)}")
    key: int = field(default_factory=lambda: secrets.randbelow(1 << 30) + 1)
    port: int = field(default_factory=lambda: 20000 + secrets.randbelow(10000))

    def facts(self, prefix: str) -> dict[str, object]:
        """Give them as facts of a plan."""
        return {f"{prefix}_name": self.name, f"{prefix}_key": self.key, f"{prefix}_port": self.port}

    def left(self) -> list[str]:
        """Say what of them is on the host."""
        found = [
            str(path) for folder in (*_WATCHED, str(Path.home())) for path in [Path(folder, self.name)] if path.exists()
        ]
        for kind in ("msg", "sem", "shm"):
            with suppress(FileNotFoundError):
                rows = Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]
                found += [f"System V {kind}" for row in rows if int(row.split()[0]) == self.key]
        for table in ("/proc/keys", "/proc/net/unix"):
            with suppress(OSError):
                found += [table] if self.name in Path(table).read_text() else []
        return found


class Listeners:
    """A TCP server and an abstract unix socket of the host, which count who comes."""

    def __init__(self) -> None:
        self.calls = 0
        self.abstract = f"redteam-{secrets.token_hex(6)}"
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._unix.bind("\0" + self.abstract)
        self._unix.listen(8)
        self._threads = [
            threading.Thread(target=self._serve, args=(one,), daemon=True) for one in (self._tcp, self._unix)
        ]

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return int(self._tcp.getsockname()[1])

    def __enter__(self) -> Listeners:
        """Listen."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        for one in (self._tcp, self._unix):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.close()
            self.calls += 1


def addresses() -> list[str]:
    """Give this machine's addresses that another network namespace could reach."""
    found = [one.address for many in psutil.net_if_addrs().values() for one in many if one.family in _FAMILIES]
    return sorted({one for one in found if "%" not in one and not one.startswith("127.") and one != "::1"})[:6]


_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def marked(mark: str) -> set[str]:
    """Give the marks of processes that run on this machine, looked for in arguments and environments."""
    found: set[str] = set()
    for process in psutil.process_iter():
        texts: list[str] = []
        with suppress(psutil.Error):
            texts += process.cmdline()
            texts += process.environ().values()
        found |= {text for text in texts if text.startswith(f"{mark}-outlive.")}
    return found


def starter_has_resources(sandbox: str) -> bool:
    """Say whether whoever starts a sandbox has CAP_SYS_RESOURCE: this process, or Docker's daemon (True if unseen)."""
    processes = [os.getpid()]
    if sandbox == DOCKER:
        processes = [one.pid for one in psutil.process_iter(["name"]) if one.info["name"] == "dockerd"]
    for process in processes:
        with suppress(OSError):
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
            held = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
            return bool(held & _CAP_SYS_RESOURCE)
    return True


def plant_precious(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Make a folder that clearing up must not touch, and give what `facts_of` says of it."""
    (folder / "inner").mkdir(parents=True)
    (folder / "file").write_text("precious")
    (folder / "inner" / "file").write_text("precious")
    (folder / "inner").chmod(0o711)
    (folder / "file").chmod(0o640)
    return facts_of(folder)


def facts_of(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Give mode, owner and size of everything in a folder."""
    every = [folder, *sorted(folder.rglob("*"))]
    return {
        str(path): (facts.st_mode, facts.st_uid, facts.st_size * stat.S_ISREG(facts.st_mode))
        for path in every
        for facts in [path.lstat()]
    }


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Set variables for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
