"""What an agent leaves for the runner to take, copy, measure and remove with its own rights."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import time
from contextlib import suppress

from .kit import Plan


def _remove(name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name)


def leave(plan: Plan, act: str) -> str:
    """Put something else in the place of a file that will be taken; say what."""
    name = plan.facts["editable"][act]
    _remove(name)
    kind = act.partition(".")[2]
    if kind == "symlink":
        os.symlink(plan.facts["secret"], name)
    elif kind == "symlink_to_process":
        os.symlink("/proc/self/environ", name)
    elif kind == "pipe":
        os.mkfifo(name)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).bind(name)
    elif kind == "folder":
        os.mkdir(name)
        with open(f"{name}/{name}", "w") as file:
            file.write("int main;")
    elif kind == "device":
        # The one device that anyone may make: overlayfs marks deleted files with it.
        os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(0, 0))
    elif kind == "huge":
        with open(name, "wb") as file:
            file.truncate((2 << 30) - 1)
    return f"{kind} as {name}"


def litter(plan: Plan) -> None:
    """Leave what makes removing hard, or dangerous."""
    precious = plan.facts["precious"]
    os.symlink(precious, "a-link-to-a-folder")
    os.symlink(f"{precious}/file", "a-link-to-a-file")
    os.symlink("a-loop", "a-loop")
    os.mkdir("closed")
    os.symlink(precious, "closed/link")
    os.chmod("closed", 0)
    for name in ("new\nline", "tab\t", "-rf *", "\udcff\udcfe", "\x1b[31m", "x" * 255, "$(id)", "a\\b", "\u202e"):
        with suppress(OSError), open(name, "w") as file:
            file.write("x")
    shutil.copy(shutil.which("sh") or "/bin/sh", "set-id-shell")
    os.chmod("set-id-shell", 0o6755)
    with suppress(OSError):
        os.setxattr("set-id-shell", "user.redteam", b"x" * 1000)
    with suppress(OSError):
        os.mknod("no-device", stat.S_IFCHR | 0o666, os.makedev(0, 0))
    os.mkfifo("pipe")
    with open("sparse", "wb") as file:
        file.truncate((2 << 30) - 1)
    # Every folder closed, the sticky bit set: only its owner could remove what is in it.
    os.mkdir("sticky")
    os.chmod("sticky", 0o1777)


def nest(plan: Plan) -> int:
    """Leave folders in folders, deeper than a path may be long, than most programs recurse."""
    depth = plan.facts["depth"]
    for _ in range(depth):
        os.mkdir("d")
        os.chdir("d")
    return int(depth)


_ROOM = (1 << 30) - 1
_FILES = 6
_PATIENCE_SECONDS = 20


def _allocate(name: str, folder: int | None = None) -> int:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder)
    os.posix_fallocate(fd, 0, _ROOM)
    return fd


def fill(plan: Plan) -> None:
    """Take 6 GiB in the workspace, then wait to be stopped."""
    for number in range(_FILES):
        os.close(_allocate(f"large{number}"))
    time.sleep(_PATIENCE_SECONDS)


def fill_hidden(plan: Plan) -> None:
    """The same in folders that are deeper than a path may be long."""
    folder = os.open(".", os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=folder)
        folder = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
    for number in range(_FILES):
        os.close(_allocate(f"large{number}", folder))
    time.sleep(_PATIENCE_SECONDS)


def flood(plan: Plan) -> None:
    """Print more than is kept, on both streams."""
    line = b"flood " * 10_000 + b"\n"
    for _ in range(600):
        os.write(1, line)
        os.write(2, line)
