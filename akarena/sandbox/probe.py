"""Looks around inside a sandbox and prints one JSON object of facts. Standard library only; see `preflight`."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CLONE_NEWUSER = 0x10000000
_AF_VSOCK = 40
_SECONDS = 2.0
_PORT = 443
_NAME = "example.com"
_UNREACHED = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPERM, errno.EACCES)
"""What a connection gives where there is no way at all. A refusal or silence means that packets left."""
_ROOTS = ("/x", "/etc/x", "/usr/x", "/dev/x", "/home/x", "/var/x", "/opt/x")
_EMPTY = ("/tmp", "/dev/shm", os.environ.get("HOME", "/home/user"))


def _status(key: str) -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(key + ":"))


def _refused(action: Callable[[], object]) -> str | None:
    try:
        action()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _is_reached(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as stream:
            stream.settimeout(_SECONDS)
            stream.connect((address, _PORT))
    except OSError as error:
        return error.errno not in _UNREACHED
    return True


def _is_connected(port: int) -> bool:
    with socket.socket() as stream:
        stream.settimeout(_SECONDS)
        return stream.connect_ex(("127.0.0.1", port)) == 0


def _resolved() -> str:
    try:
        return str(socket.getaddrinfo(_NAME, _PORT)[0][4][0])
    except OSError:
        return ""


def _entries(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) and os.access(folder, os.R_OK) else []  # noqa: PTH112, PTH208


def _identities(folder: str) -> dict[str, list[int]]:
    """Give device and inode of every entry: an image may have a folder of the same name as one outside."""
    facts = {name: Path(folder, name).lstat() for name in _entries(folder)}
    return {name: [fact.st_dev, fact.st_ino] for name, fact in facts.items()}


def look(questions: dict[str, Any]) -> dict[str, Any]:
    """Answer the caller's questions.

    Args:
        questions: Its `home` folder, `pid`, a `port` on which it listens, and what must not be there: `addresses`,
            `sockets`, `hidden` paths.
    """
    Path("/preflight/made").touch()
    return {
        "users": sorted({*os.getresuid(), *os.getresgid(), *os.getgroups()}),
        "capabilities": {key: _status(key) for key in ("CapInh", "CapPrm", "CapEff", "CapAmb")},
        "no_new_privileges": _status("NoNewPrivs"),
        "seccomp": _status("Seccomp"),
        "interfaces": [name for _, name in socket.if_nameindex()],
        "tried": len(questions["addresses"]),
        "reached": [address for address in questions["addresses"] if _is_reached(address)],
        "resolved": _resolved(),
        "loopback": _is_connected(questions["port"]),
        "vsock": _refused(lambda: socket.socket(_AF_VSOCK, socket.SOCK_STREAM)),
        "sockets": [path for path in questions["sockets"] if Path(path).exists()],
        "tried_to_write": len(_ROOTS),
        "writable": [path for path in _ROOTS if not _refused(Path(path).touch)],
        "home": _identities(questions["home"]),
        "seen": [path for path in questions["hidden"] if Path(path).exists()],
        "left": [f"{folder}/{name}" for folder in _EMPTY for name in _entries(folder)],
        "pids": [name for name in _entries("/proc") if name.isdigit()],
        "signal": _refused(lambda: os.kill(questions["pid"], 0)),
        "user_namespace": ctypes.CDLL(None).unshare(_CLONE_NEWUSER),
    }


if __name__ == "__main__":
    print(json.dumps(look(json.loads(sys.argv[1]))))
