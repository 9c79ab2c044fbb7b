"""What an agent leaves for the runner to take, copy, measure and remove with its own rights."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from contextlib import suppress

from .kit import Plan

_KERNEL = "kernel.hip"


def leave(plan: Plan) -> str:
    """Put something else in the place of the candidate; say what."""
    kind = plan.act.partition(".")[2]
    os.unlink(_KERNEL)
    if kind == "symlink":
        os.symlink(plan.facts["secret"], _KERNEL)
    elif kind == "symlink_to_process":
        os.symlink("/proc/self/environ", _KERNEL)
    elif kind == "pipe":
        os.mkfifo(_KERNEL)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).bind(_KERNEL)
    elif kind == "folder":
        os.mkdir(_KERNEL)
        with open(f"{_KERNEL}/{_KERNEL}", "w") as file:
            file.write("int main;")
    elif kind == "device":
        # The one device that anyone may make: overlayfs marks deleted files with it.
        os.mknod(_KERNEL, stat.S_IFCHR | 0o666, os.makedev(0, 0))
    elif kind == "huge":
        with open(_KERNEL, "wb") as file:
            file.truncate((2 << 30) - 1)
    elif kind == "unreadable":
        with open(_KERNEL, "w") as file:
            file.write(f'#include "{plan.facts["secret"]}"\n')
        os.chmod(_KERNEL, 0)
    return kind


def litter(plan: Plan) -> None:
    """Leave what makes removing hard, or dangerous."""
    os.unlink(_KERNEL)
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
    os.unlink(_KERNEL)
    depth = plan.facts["depth"]
    for _ in range(depth):
        os.mkdir("d")
        os.chdir("d")
    return int(depth)


def fill(plan: Plan) -> None:
    """Write into the workspace until it is stopped, or a bound is reached that is beyond what is allowed."""
    os.unlink(_KERNEL)
    for number in range(6):
        fd = os.open(f"large{number}", os.O_WRONLY | os.O_CREAT, 0o600)
        os.posix_fallocate(fd, 0, (1 << 30) - 1)
        os.close(fd)


def crowd(plan: Plan) -> None:
    """Make files in the workspace until it is stopped, or a bound is reached that is beyond what is allowed."""
    os.unlink(_KERNEL)
    for number in range(56_000):
        if number % 5000 == 0:
            os.mkdir(f"folder{number}")
            folder = f"folder{number}"
        os.close(os.open(f"{folder}/{number}", os.O_WRONLY | os.O_CREAT, 0o600))


def flood(plan: Plan) -> None:
    """Print more than is kept, on both streams."""
    os.unlink(_KERNEL)
    line = b"flood " * 10_000 + b"\n"
    for _ in range(600):
        os.write(1, line)
        os.write(2, line)
