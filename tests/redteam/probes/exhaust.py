"""Using up what the host has. All bounded: nothing here takes more than its own sandbox allows."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from .calls import call
from .kit import Plan, Stopped, doors, nothing, probe

_MOST_PROCESSES = 1024
_MOST_FILES = 4096
_MOST_BYTES = 2 << 30
_GIB = 1 << 30


@probe("exhaust.processes")
def processes(plan: Plan) -> str:
    """A fork bomb that stops a little above the limit. Of a shell, whose processes are small."""
    pipe = "/tmp/never-written"
    os.mkfifo(pipe)
    most = _MOST_PROCESSES + 64
    code = f"i=0; while [ $i -lt {most} ]; do (read x) <{pipe} & i=$((i+1)); done"
    with open("/tmp/bomb", "w+") as told:
        bomb = subprocess.Popen(["sh", "-c", code], stdout=told, stderr=told, process_group=0)
        try:
            # The shell waits for nothing: where it can't fork it ends with an error.
            failed = bomb.wait(15)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(bomb.pid, signal.SIGKILL)
        told.seek(0)
        said = told.read().strip().splitlines()
    if failed == 0:
        return f"{most} processes"
    raise Stopped(said[-1] if said else f"exit code {failed}")


@probe("exhaust.threads")
def threads(plan: Plan) -> str:
    stop = threading.Event()
    started = 0
    threading.stack_size(32 << 10)
    try:
        while started < _MOST_PROCESSES + 64:
            threading.Thread(target=stop.wait, daemon=True).start()
            started += 1
    except RuntimeError as error:
        seen = str(error)
    else:
        return f"{started} threads"
    finally:
        stop.set()
    raise Stopped(f"{seen} after {started} threads")


@probe("exhaust.descriptors")
def descriptors(plan: Plan) -> str:
    held: list[int] = []
    try:
        while len(held) <= _MOST_FILES:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        raise Stopped(f"{error.strerror} after {len(held)}") from None
    return f"{len(held)} open files"


@probe("exhaust.limits")
def limits(plan: Plan) -> str:
    kinds = {
        "processes": resource.RLIMIT_NPROC,
        "open files": resource.RLIMIT_NOFILE,
        "file size": resource.RLIMIT_FSIZE,
        "core files": resource.RLIMIT_CORE,
        "message queues": resource.RLIMIT_MSGQUEUE,
    }

    def raise_limit(kind: int) -> None:
        hard = resource.getrlimit(kind)[1]
        if hard == resource.RLIM_INFINITY:
            # The container's own limit holds instead, which `exhaust.processes` tries.
            raise OSError(errno.EPERM, "without a limit of this kind")
        try:
            resource.setrlimit(kind, (hard + 1, hard + 1))
        except ValueError:
            raise OSError(errno.EPERM, "not allowed to raise maximum limit") from None

    actions: dict[str, Callable[[], object]] = {name: partial(raise_limit, kind) for name, kind in kinds.items()}
    return doors(actions, errno.EPERM)


@probe("exhaust.file_size")
def file_size(plan: Plan) -> str:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    fd = os.open("large", os.O_RDWR | os.O_CREAT, 0o600)
    memory = os.memfd_create("large")
    actions: dict[str, Callable[[], object]] = {
        "a sparse file": lambda: os.ftruncate(fd, _MOST_BYTES + 1),
        "a write at the end": lambda: os.pwrite(fd, b"x", _MOST_BYTES + 1),
        "an allocation": lambda: os.posix_fallocate(fd, 0, _MOST_BYTES + 1),
        "a memfd": lambda: os.ftruncate(memory, _MOST_BYTES + 1),
    }
    try:
        return doors(actions, errno.EFBIG)
    finally:
        os.unlink("large")


@probe("exhaust.tmpfs")
def tmpfs(plan: Plan) -> str:
    for folder in ("/tmp", "/dev/shm", os.environ["HOME"]):
        facts = os.statvfs(folder)
        if facts.f_blocks * facts.f_frsize > _MOST_BYTES:
            return f"{folder} holds {facts.f_blocks * facts.f_frsize} bytes"
    names = [f"/tmp/full{number}" for number in range(2)]
    try:
        for number, name in enumerate(names):
            fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
            os.posix_fallocate(fd, 0, _GIB + number * 4096)
            os.close(fd)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.ENOMEM):
            raise
        raise Stopped(f"{error.strerror} at {_MOST_BYTES >> 30} GiB; the others are as large") from None
    finally:
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(name)
    return "more than 2 GiB in /tmp"


@probe("exhaust.shared_memory")
def shared_memory(plan: Plan) -> str:
    """Memory that belongs to no process: nothing would free it."""
    name = b"redteam-large"
    actions: dict[str, Callable[[], object]] = {
        "System V": lambda: call("shmget", 0, 1 << 20, 0o1600),
        "POSIX message queue": lambda: call("mq_open", name, os.O_RDWR | os.O_CREAT, 0o600, ctypes.c_char_p(None)),
    }
    return doors(actions, errno.ENOSYS, errno.EMFILE, errno.EPERM)


@probe("exhaust.priority")
def priority(plan: Plan) -> str:
    actions: dict[str, Callable[[], object]] = {
        "nice": lambda: os.setpriority(os.PRIO_PROCESS, 0, -20),
        "real time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
        "real-time input and output": lambda: call("ioprio_set", 1, 0, 1 << 13),
        "locked memory": lambda: resource.setrlimit(resource.RLIMIT_RTPRIO, (99, 99)),
    }
    try:
        return doors(actions, errno.EACCES, errno.EPERM)
    except ValueError as error:
        raise Stopped(f"not permitted; {error}") from None


@probe("exhaust.first_to_die")
def first_to_die(plan: Plan) -> str:
    """When the machine runs out of memory, the kernel shall choose the agent, whatever the agent says."""
    with open("/proc/self/oom_score_adj") as file:
        before = int(file.read())
    for value in (before - 1, 0, -1000):
        with suppress(PermissionError), open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(value))
    with open("/proc/self/oom_score_adj") as file:
        after = int(file.read())
    return nothing(f"the score fell from {before} to {after}" if after < before else "", f"the score stays {after}")


@probe("exhaust.gateway")
def gateway(plan: Plan) -> str:
    """Hold many connections to the gateway half open, send endless heads and bodies; it must still answer."""
    from . import web

    where = web.address()
    if where is None:
        raise Stopped("there is no gateway")
    held = []
    began = time.monotonic()
    with suppress(OSError):
        for _ in range(300):
            stream = socket.create_connection(where, 2)
            stream.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\n")
            held.append(stream)
    large = web.exchange(
        web.request("POST", "/v1/messages", b"{" + b" " * (1 << 20), Content_Length=str(1 << 34)), seconds=3
    )
    head = web.exchange(b"GET /v1/models HTTP/1.1\r\n" + b"X: " + b"y" * (1 << 20) + b"\r\n\r\n", seconds=3)
    for stream in held:
        stream.close()
    answer = b""
    while web.status(answer) != 200 and time.monotonic() < began + 15:
        with suppress(OSError):
            answer = web.ask(web.talk())
    if web.status(answer) != 200 or web.status(large) == 200 or web.status(head) == 200:
        return f"the gateway answers {web.status(answer)}, {web.status(large)}, {web.status(head)}"
    raise Stopped(f"it answers on after {len(held)} half requests; too large: {web.status(large)}, {web.status(head)}")
