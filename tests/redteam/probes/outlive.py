"""Processes that want to live on when the agent has ended. Each is known from outside by a mark in its environment."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from .kit import Plan, Stopped, nothing, probe


def start(plan: Plan) -> dict[str, str]:
    """Start one process of each kind, and say which are alive. Each has its mark among its arguments."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); from probes import outlive; outlive.live(*sys.argv[2:4])"
    program = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in KINDS:
        arguments = (program, name, plan.facts["check"], f"{plan.facts['mark']}-{name}")
        subprocess.Popen([sys.executable, "-c", code, *arguments], stdin=subprocess.DEVNULL)
    time.sleep(1.5)
    lines = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            lines.append(file.read().decode(errors="replace").split("\0"))
    marks = {name: f"{plan.facts['mark']}-{name}" for name in KINDS}
    return {name: "alive" if any(mark in line for line in lines) else "dead" for name, mark in marks.items()}


def live(name: str, check: str) -> None:
    """Live as one kind, in a process that was executed for it."""
    KINDS[name](check)


def _forever() -> None:
    while True:
        signal.pause()


def _detach() -> None:
    for _ in range(2):
        if os.fork():
            os._exit(0)
        os.setsid()
    os.chdir("/")


def _double_fork(check: str) -> None:
    _detach()
    _forever()


def _no_descriptors(check: str) -> None:
    _detach()
    os.closerange(0, 4096)
    _forever()


def _deaf(check: str) -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.CDLL(None).prctl(4, 0)  # Not dumpable.
    _detach()
    while True:
        time.sleep(60)


def _stopped(check: str) -> None:
    _detach()
    os.kill(os.getpid(), signal.SIGSTOP)
    _forever()


def _fork_chain(check: str) -> None:
    """A process that is always another one: whoever looks for it is late."""
    os.setsid()
    while True:
        time.sleep(0.02)
        if os.fork():
            os._exit(0)


def _timer(check: str) -> None:
    _detach()
    signal.signal(signal.SIGALRM, lambda *_: os.close(os.open("/tmp/timer-fired", os.O_CREAT | os.O_WRONLY)))
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
    _forever()


def _watcher(check: str) -> None:
    """Waits for the files of later trials, in its workspace and above."""
    os.setsid()
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init()
    for folder in (b".", b"..", b"/tmp", b"/"):
        libc.inotify_add_watch(fd, folder, 0xFFF)
    while True:
        select.select([fd], [], [])
        os.read(fd, 65536)


def _connections(check: str) -> None:
    """Keeps connections to the runner and requests in its queue, with descriptors of the workspace on their way."""
    os.setsid()
    held: list[socket.socket] = []
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(6):
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stream.setblocking(False)
        with suppress(OSError):
            stream.connect(check)
            if held:
                socket.send_fds(stream, [b"c"], [folder])
        held.append(stream)
    _forever()


def _blocked(check: str) -> None:
    """Waits in the kernel for the other end of a pipe."""
    os.setsid()
    with suppress(FileExistsError):
        os.mkfifo("/tmp/blocked")
    os.open("/tmp/blocked", os.O_WRONLY)


KINDS: dict[str, Callable[[str], None]] = {
    "outlive.double_fork": _double_fork,
    "outlive.no_descriptors": _no_descriptors,
    "outlive.deaf": _deaf,
    "outlive.stopped": _stopped,
    "outlive.fork_chain": _fork_chain,
    "outlive.timer": _timer,
    "outlive.watcher": _watcher,
    "outlive.connections": _connections,
    "outlive.blocked": _blocked,
}


@probe("outlive.scheduler")
def scheduler(plan: Plan) -> str:
    """Programs that run something later, and the folders where they look."""
    told = []
    found: list[str] = []
    for argv in (["crontab", "-"], ["at", "now"], ["systemd-run", "--user", "sleep", "1"], ["batch"]):
        path = shutil.which(argv[0])
        if path is None:
            told.append(f"no {argv[0]}")
            continue
        done = subprocess.run(
            [path, *argv[1:]], input=b"* * * * * true\n", capture_output=True, timeout=10, check=False
        )
        (told if done.returncode else found).append(f"{argv[0]}: {done.returncode}")
    for folder in ("/etc/cron.d", "/var/spool/cron/crontabs", "/var/spool/at", "/etc/systemd/system", "/etc/init.d"):
        try:
            os.close(os.open(f"{folder}/redteam", os.O_WRONLY | os.O_CREAT, 0o700))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EACCES, errno.EROFS, errno.EPERM):
                raise
        else:
            found.append(folder)
    return nothing(", ".join(found), ", ".join(told))


@probe("outlive.reparent")
def reparent(plan: Plan) -> str:
    """An orphan falls to the first process of its namespace, never to one outside."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            time.sleep(0.2)
            os.write(writer, str(os.getppid()).encode())
        os._exit(0)
    os.close(writer)
    os.wait()
    parent = int(os.read(reader, 20))
    with suppress(FileNotFoundError):
        number = os.stat("/proc/1/ns/pid").st_ino
        if os.stat("/proc/self/ns/pid").st_ino != number:
            return "the first process is in another namespace"
    if parent != 1 and not os.path.exists(f"/proc/{parent}"):
        return f"an orphan's parent is {parent}, which is not here"
    raise Stopped(f"an orphan's parent is {parent}, in the same namespace")
