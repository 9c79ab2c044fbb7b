"""Other trials: one that runs at the same time, one that ended before, and runs from earlier."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from .calls import call, has
from .kit import NotRun, Plan, doors, nothing, probe
from .network import connect, connect_unix

_GONE = (errno.ENOENT, errno.ENOSYS, errno.ECONNREFUSED, errno.EPERM, errno.EACCES)
_CREATE = 0o1000


def leave(plan: Plan) -> list[object]:
    """Leave what another trial could find: as the other trial, or as the one before."""
    secret, key, name = plan.facts["leaves"], plan.facts["leaves_key"], plan.facts["leaves_name"]
    for folder in ("/tmp", "/dev/shm", os.environ.get("HOME", "/tmp"), ".", "/var/tmp", "/run"):
        with suppress(OSError), open(f"{folder}/{name}", "w") as file:
            file.write(secret)
    held: list[object] = []
    with suppress(OSError):
        queue = call("msgget", key, 0o666 | _CREATE)
        call("msgsnd", queue, ctypes.c_char_p(b"\1\0\0\0\0\0\0\0" + secret.encode()), len(secret), 0)
    with suppress(OSError):
        call("semget", key, 1, 0o666 | _CREATE)
    with suppress(OSError):
        call("shmget", key, 4096, 0o666 | _CREATE)
    with suppress(OSError):
        held.append(call("mq_open", name.encode(), os.O_RDWR | os.O_CREAT, 0o666, ctypes.c_char_p(None)))
    with suppress(OSError):
        call("add_key", b"user", name.encode(), secret.encode(), len(secret), -4)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("\0" + name)
    listener.listen()
    server = socket.create_server(("127.0.0.1", plan.facts["leaves_port"]))
    return [*held, listener, server]


def _traces(key: int, name: str, port: int) -> dict[str, Callable[[], object]]:
    actions: dict[str, Callable[[], object]] = {
        "message queue": lambda: call("msgget", key, 0),
        "semaphores": lambda: call("semget", key, 0, 0),
        "POSIX message queue": lambda: call("mq_open", name.encode(), os.O_RDONLY, 0, ctypes.c_char_p(None)),
        "abstract socket": lambda: connect_unix("\0" + name),
        "loopback port": lambda: connect("127.0.0.1", port),
    }
    if has("shmget"):
        actions["shared memory"] = lambda: call("shmget", key, 0, 0)
    for folder in ("/tmp", "/dev/shm", "/var/tmp", "/run", "/dev/mqueue", os.environ.get("HOME", "/tmp"), "."):
        actions[f"{folder}/"] = partial(os.stat, f"{folder}/{name}")
    return actions


@probe("trials.concurrent")
def concurrent(plan: Plan) -> str:
    facts = plan.facts
    return doors(_traces(facts["other_key"], facts["other_name"], facts["other_port"]), *_GONE)


@probe("trials.concurrent_files")
def concurrent_files(plan: Plan) -> str:
    return nothing(", ".join(plan.swept.get("other", ())), "not in any file, environment or memory that can be read")


@probe("trials.earlier")
def earlier(plan: Plan) -> str:
    facts = plan.facts
    return doors(_traces(facts["earlier_key"], facts["earlier_name"], facts["earlier_port"]), *_GONE)


@probe("trials.earlier_files")
def earlier_files(plan: Plan) -> str:
    return nothing(", ".join(plan.swept.get("earlier", ())), "not in any file, environment or memory that can be read")


@probe("trials.earlier_run")
def earlier_run(plan: Plan) -> str:
    return nothing(", ".join(plan.swept.get("run", ())), "not in any file, environment or memory that can be read")


@probe("trials.keyring")
def keyring(plan: Plan) -> str:
    def read(path: str) -> str:
        with open(path) as file:
            text = file.read()
        if plan.facts["other_name"] not in text and plan.facts["earlier_name"] not in text:
            raise OSError(errno.ENOENT, "nothing of another trial")
        return path

    actions: dict[str, Callable[[], object]] = {
        "add_key": lambda: call("add_key", b"user", b"redteam", b"x", 1, -4),
        "request_key": lambda: call(
            "request_key", b"user", plan.facts["other_name"].encode(), ctypes.c_char_p(None), 0
        ),
        "user keyring": lambda: call("keyctl", 0, -4, 0),
        "session keyring": lambda: call("keyctl", 1, ctypes.c_char_p(None)),
        "/proc/keys": lambda: read("/proc/keys"),
    }
    return doors(actions, errno.EPERM, errno.ENOSYS, errno.EACCES, errno.ENOENT)


@probe("trials.cgroups")
def cgroups(plan: Plan) -> str:
    root = "/sys/fs/cgroup"
    actions: dict[str, Callable[[], object]] = {
        "a new group": lambda: os.mkdir(f"{root}/redteam"),
        "cgroup.procs": lambda: os.close(os.open(f"{root}/cgroup.procs", os.O_WRONLY)),
        "memory.max": lambda: os.close(os.open(f"{root}/memory.max", os.O_WRONLY)),
        "pids of version 1": lambda: os.close(os.open(f"{root}/pids/cgroup.procs", os.O_WRONLY)),
    }
    return doors(actions, errno.ENOENT, errno.EROFS, errno.EACCES, errno.EPERM)


@probe("trials.sysfs")
def sysfs(plan: Plan) -> str:
    names = "power/state kernel/uevent_helper kernel/mm/transparent_hugepage/enabled module/kernel/parameters/panic "
    names += "kernel/profiling devices/system/cpu/cpu1/online bus/pci/rescan block fs/bpf"
    actions: dict[str, Callable[[], object]] = {
        f"/sys/{name}": partial(os.open, f"/sys/{name}", os.O_WRONLY) for name in names.split()
    }
    return doors(actions, errno.ENOENT, errno.EROFS, errno.EACCES, errno.EPERM)


@probe("trials.signals")
def signals(plan: Plan) -> str:
    """Processes of the host: the caller of the run, and the gateway."""
    pid = plan.facts["pid"]
    if not plan.roots and len([name for name in os.listdir("/proc") if name.isdigit()]) > 500:
        raise NotRun("so many processes here that one may have the same number")
    actions: dict[str, Callable[[], object]] = {
        "signal": lambda: os.kill(pid, 0),
        "group": lambda: os.killpg(pid, 0),
        "pidfd": lambda: os.close(os.pidfd_open(pid)),
        "priority": lambda: os.getpriority(os.PRIO_PROCESS, pid),
        "affinity": lambda: os.sched_getaffinity(pid),
        "/proc": lambda: os.listdir(f"/proc/{pid}/task"),
    }
    return doors(actions, errno.ESRCH, errno.ENOENT)
