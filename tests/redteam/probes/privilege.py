"""More rights than the agent was given: namespaces, other processes' memory, the kernel's own interfaces, set-id."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import pty
import shutil
import signal
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from .calls import call
from .kit import NotRun, Plan, Stopped, doors, nothing, probe

_NAMESPACES = {
    "time": 0x80,
    "mnt": 0x20000,
    "cgroup": 0x2000000,
    "uts": 0x4000000,
    "ipc": 0x8000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
_REFUSED = (errno.EPERM, errno.ENOSYS)
_PTRACE_ATTACH, _PTRACE_SEIZE = 16, 0x4206
_NONE = ctypes.c_char_p(None)


def _closing(fd: int) -> None:
    os.close(fd)


@probe("privilege.unshare")
def unshare(plan: Plan) -> str:
    return doors(
        {name: partial(_in_child, partial(call, "unshare", flag)) for name, flag in _NAMESPACES.items()},
        *_REFUSED,
    )


def _in_child(action: Callable[[], object]) -> None:
    """Try something in a child, so that success changes nothing for what follows; raises its error here."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        except OSError as error:
            os._exit(error.errno or 255)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code < 0:
        raise OSError(errno.EPERM, f"killed by signal {-code}")
    if code:
        raise OSError(code, os.strerror(code))


@probe("privilege.clone")
def clone(plan: Plan) -> str:
    def make(flag: int) -> None:
        pid = call("clone", flag | signal.SIGCHLD, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)

    def make_3(flag: int) -> None:
        arguments = (ctypes.c_uint64 * 11)(flag, 0, 0, 0, signal.SIGCHLD)
        pid = call("clone3", arguments, ctypes.sizeof(arguments))
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)

    actions: dict[str, Callable[[], object]] = {}
    for name, flag in _NAMESPACES.items():
        if name != "time":  # Below the mask of the exit signal: clone takes it for a part of that.
            actions[f"clone {name}"] = partial(make, flag)
        actions[f"clone3 {name}"] = partial(make_3, flag)
    return doors(actions, *_REFUSED)


@probe("privilege.setns")
def setns(plan: Plan) -> str:
    actions: dict[str, Callable[[], object]] = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name, flag in _NAMESPACES.items():
            path = f"/proc/{pid}/ns/{name}"
            with suppress(OSError):
                fd = os.open(path, os.O_RDONLY)
                actions[path] = partial(call, "setns", fd, flag)
    me = os.pidfd_open(os.getppid())
    actions["a process descriptor"] = lambda: call("setns", me, _NAMESPACES["net"] | _NAMESPACES["mnt"])
    return doors(actions, *_REFUSED)


@probe("privilege.ptrace")
def ptrace(plan: Plan) -> str:
    child = os.fork()
    if child == 0:
        signal.pause()
    others = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()]
    # Seizing does not stop a process as attaching does, so that others can be tried without harm.
    actions: dict[str, Callable[[], object]] = {
        f"seize {pid}": partial(call, "ptrace", _PTRACE_SEIZE, pid, 0, 0) for pid in others[:8]
    }
    actions["attach to a child"] = partial(call, "ptrace", _PTRACE_ATTACH, child, 0, 0)
    try:
        return doors(actions, *_REFUSED, errno.ESRCH)
    finally:
        os.kill(child, signal.SIGKILL)


@probe("privilege.memory")
def memory(plan: Plan) -> str:
    buffer = ctypes.create_string_buffer(8)
    span = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 8)
    parent = os.getppid()
    actions: dict[str, Callable[[], object]] = {
        "process_vm_readv": lambda: call("process_vm_readv", parent, span, 1, span, 1, 0),
        "kcmp": lambda: call("kcmp", os.getpid(), parent, 0, 0, 0),
        "move_pages": lambda: call("move_pages", parent, 0, _NONE, _NONE, _NONE, 0),
        "pidfd_getfd": lambda: _closing(call("pidfd_getfd", os.pidfd_open(parent), 1, 0)),
    }
    return doors(actions, *_REFUSED)


@probe("privilege.kernel_code")
def kernel_code(plan: Plan) -> str:
    image = os.open(sys.executable, os.O_RDONLY)
    attributes = ctypes.create_string_buffer(128)
    events = ctypes.create_string_buffer(struct.pack("=IIQ", 1, 128, 0), 128)
    actions: dict[str, Callable[[], object]] = {
        "init_module": lambda: call("init_module", attributes, 128, b""),
        "finit_module": lambda: call("finit_module", image, b"", 0),
        "delete_module": lambda: call("delete_module", b"no_such_module", 0o4000),
        "kexec_load": lambda: call("kexec_load", 0, 0, _NONE, 0),
        "kexec_file_load": lambda: call("kexec_file_load", image, image, 0, b"", 0),
        "bpf map": lambda: _closing(
            call("bpf", 0, ctypes.create_string_buffer(struct.pack("=IIII", 2, 4, 8, 1), 128), 128)
        ),
        "bpf program": lambda: _closing(call("bpf", 5, attributes, 128)),
        "perf_event_open": lambda: _closing(call("perf_event_open", events, 0, -1, -1, 0)),
        "perf_event_open of all": lambda: _closing(call("perf_event_open", events, -1, 0, -1, 0)),
        "userfaultfd": lambda: _closing(call("userfaultfd", 1)),
        "fanotify_init": lambda: _closing(call("fanotify_init", 0, 0)),
        "io_uring_setup": lambda: _closing(call("io_uring_setup", 8, ctypes.create_string_buffer(120))),
        "memfd_secret": lambda: _closing(call("memfd_secret", 0)),
    }
    return doors(actions, *_REFUSED)


@probe("privilege.machine")
def machine(plan: Plan) -> str:
    now = (ctypes.c_int64 * 2)(int(time.time()), 0)
    tuning = ctypes.create_string_buffer(struct.pack("=Iq", 0x4000, 0), 256)
    actions: dict[str, Callable[[], object]] = {
        "sethostname": lambda: call("sethostname", b"redteam", 7),
        "settimeofday": lambda: call("settimeofday", now, _NONE),
        "clock_settime": lambda: call("clock_settime", 0, now),
        "adjtimex": lambda: call("adjtimex", tuning),
        "reboot": lambda: call("reboot", 0xFEE1DEAD, 672274793, 0, _NONE),
        "swapon": lambda: call("swapon", b"/tmp/none", 0),
        "acct": lambda: call("acct", _NONE),
        "quotactl": lambda: call("quotactl", 0x80000100, _NONE, 0, _NONE),
    }
    if platform.machine() == "x86_64":
        actions["iopl"] = lambda: call("iopl", 3)
        actions["modify_ldt"] = lambda: call("modify_ldt", 1, ctypes.create_string_buffer(16), 16)
    return doors(actions, *_REFUSED)


@probe("privilege.personality")
def personality(plan: Plan) -> str:
    kinds = {"32 bits": 0x8, "addresses from 0": 0x0100000, "reading means executing": 0x0400000}
    return doors(
        {name: partial(call, "personality", value) for name, value in kinds.items()},
        *_REFUSED,
    )


@probe("privilege.other_calls")
def other_calls(plan: Plan) -> str:
    """The 32-bit calls have other numbers, which a filter of 64-bit numbers does not know."""
    if platform.machine() != "x86_64":
        raise NotRun("only x86-64 has a second table of system calls")
    import mmap

    pages = {"mov eax, 20 (getpid); int 0x80": "b814000000cd80c3", "mov eax, 0x40000027; syscall": "b827000040 0f05c3"}
    passed = []
    for name, code in pages.items():
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(bytes.fromhex(code))
        pid = os.fork()
        if pid == 0:
            answer = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
            os._exit(0 if answer > 0 else 1)
        _, status = os.waitpid(pid, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            passed.append(name)
    return nothing(", ".join(passed), "killed, or not implemented")


@probe("privilege.capabilities")
def capabilities(plan: Plan) -> str:
    header = struct.pack("=Ii", 0x20080522, 0)
    everything = struct.pack("=6I", *[0xFFFFFFFF] * 6)
    shutil.copy(shutil.which("true") or "/bin/true", "capable")
    # Version 2 of the attribute, all capabilities, effective.
    attribute = struct.pack("<5I", 0x02000001, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0)
    actions: dict[str, Callable[[], object]] = {
        "capset": lambda: call("capset", header, everything),
        "a file with capabilities": lambda: os.setxattr("capable", "security.capability", attribute),
        "trusted attribute": lambda: os.setxattr("capable", "trusted.x", b"1"),
        "setuid": lambda: os.setresuid(0, 0, 0),
        "setgid": lambda: os.setresgid(0, 0, 0),
        "setgroups": lambda: os.setgroups([0]),
        "chown": lambda: os.chown("capable", 0, 0),
    }
    try:
        return doors(actions, errno.EPERM, errno.EINVAL, errno.EOPNOTSUPP)
    finally:
        os.unlink("capable")


@probe("privilege.set_id_programs")
def set_id_programs(plan: Plan) -> str:
    """Start every set-id program of the image on a terminal and look as whom it runs."""
    folders = {
        os.path.realpath(folder) for folder in ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/libexec", "/bin")
    }
    programs = {
        entry.path
        for folder in folders
        if os.path.isdir(folder)
        for entry in os.scandir(folder)
        if entry.is_file(follow_symlinks=False) and entry.stat().st_mode & 0o6000
    }
    if not programs:
        raise NotRun("the image has no set-id program")
    started = {}
    for program in sorted(programs):
        pid, terminal = pty.fork()
        if pid == 0:
            with suppress(OSError):
                os.execv(program, [program])
            os._exit(127)
        started[pid] = (program, terminal)
    raised: set[str] = set()
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        raised |= {program for pid, (program, _) in started.items() if _is_raised(pid)}
    for pid, (_, terminal) in started.items():
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    with open("/proc/self/status") as file:
        locked = "NoNewPrivs:\t1\n" in file.read()
    if not locked:
        raised.add("new privileges are allowed")
    return nothing(", ".join(sorted(raised)), f"{len(programs)} programs, all as this user; no new privileges")


def _is_raised(pid: int) -> bool:
    with suppress(OSError), open(f"/proc/{pid}/status") as file:
        rows = {line.split(":")[0]: line.split()[1:] for line in file}
        users = rows.get("Uid", []) + rows.get("Gid", [])
        if any(int(user) not in (os.getuid(), os.getgid()) for user in users):
            return True
        return bool(os.geteuid() and int(rows.get("CapEff", ["0"])[0], 16))
    return False


@probe("privilege.terminal")
def terminal(plan: Plan) -> str:
    """Characters put into a terminal's input would be read by the shell behind it."""
    own, other = pty.openpty()
    tty = -1
    with suppress(OSError):
        tty = os.open("/dev/tty", os.O_RDWR)
    actions: dict[str, Callable[[], object]] = {
        "TIOCSTI": lambda: fcntl.ioctl(other, 0x5412, b"x"),
        "TIOCSTI, upper bits": partial(_ioctl, other, 0x1_0000_5412),
        "TIOCLINUX": lambda: fcntl.ioctl(other, 0x541C, b"\2"),
    }
    if tty >= 0:
        return "there is a controlling terminal"
    try:
        return doors(actions, errno.EPERM, errno.EIO)
    finally:
        os.close(own)


def _ioctl(fd: int, request: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ioctl(fd, ctypes.c_ulong(request), ctypes.c_char_p(b"x")) != 0:
        raise OSError(ctypes.get_errno(), "ioctl")


@probe("privilege.chroot")
def chroot(plan: Plan) -> str:
    """The classical way out: another root below, then up from a folder that is kept open."""
    os.makedirs("/tmp/below", exist_ok=True)
    fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.chroot("/tmp/below")
    except PermissionError as error:
        raise Stopped(str(error.strerror)) from None
    os.fchdir(fd)
    return "another root"
