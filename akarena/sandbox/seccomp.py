"""The system-call filter of every sandboxed process: a deny list, as a classic BPF program.

A deny list, because compilers, Python, torch and GPU runtimes use most of the ordinary calls. It removes what an
unprivileged process in a container has no honest use for and what widens the kernel's attack surface. Refused calls
give EPERM; calls for which libraries carry a fallback give ENOSYS, so that the fallback is taken.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from akarena.errors import InfrastructureError

_LOAD_WORD, _RETURN = 0x20, 0x06
_JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16
_X32_BIT = 0x40000000

NAMESPACE_FLAGS = 0x7E020080
"""CLONE_NEW{TIME,NS,CGROUP,UTS,IPC,USER,PID,NET}."""
SOCKET_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. The rest is refused: AF_VSOCK ignores network namespaces."""
TERMINAL_IOCTLS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX put characters into a terminal's input."""
PERSONALITIES = (0x0, 0x0040000, 0xFFFFFFFF)
"""Linux, ADDR_NO_RANDOMIZE, and the value that only reads."""


@dataclass(frozen=True)
class Machine:
    """One architecture: the kernel's audit number and the numbers of the calls named here."""

    audit: int
    calls: Mapping[str, int]


# Calls above 423 have the same number everywhere.
_COMMON = {
    "pidfd_getfd": 438,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
    "process_mrelease": 448,
    "open_tree_attr": 467,
}
_X86_64 = {
    "ioctl": 16,
    "shmget": 29,
    "socket": 41,
    "socketpair": 53,
    "clone": 56,
    "ptrace": 101,
    "syslog": 103,
    "uselib": 134,
    "personality": 135,
    "ustat": 136,
    "sysfs": 139,
    "vhangup": 153,
    "modify_ldt": 154,
    "pivot_root": 155,
    "_sysctl": 156,
    "adjtimex": 159,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "sethostname": 170,
    "setdomainname": 171,
    "iopl": 172,
    "ioperm": 173,
    "create_module": 174,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "nfsservctl": 180,
    "lookup_dcookie": 212,
    "clock_settime": 227,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "migrate_pages": 256,
    "unshare": 272,
    "move_pages": 279,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "open_by_handle_at": 304,
    "clock_adjtime": 305,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}
_AARCH64 = {
    "lookup_dcookie": 18,
    "ioctl": 29,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "nfsservctl": 42,
    "chroot": 51,
    "vhangup": 58,
    "quotactl": 60,
    "acct": 89,
    "personality": 92,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "clock_settime": 112,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "sethostname": 161,
    "setdomainname": 162,
    "settimeofday": 170,
    "adjtimex": 171,
    "shmget": 194,
    "socket": 198,
    "socketpair": 199,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "clone": 220,
    "swapon": 224,
    "swapoff": 225,
    "migrate_pages": 238,
    "move_pages": 239,
    "perf_event_open": 241,
    "fanotify_init": 262,
    "open_by_handle_at": 265,
    "clock_adjtime": 266,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}
MACHINES: Mapping[str, Machine] = {
    "x86_64": Machine(0xC000003E, {**_X86_64, **_COMMON}),
    "aarch64": Machine(0xC00000B7, {**_AARCH64, **_COMMON}),
}
BY_ARGUMENT = frozenset({"clone", "ioctl", "socket", "socketpair", "personality"})
# No limit of ours counts System V shared memory or secret memory, and the flags of clone3 are behind a pointer.
NOT_IMPLEMENTED = frozenset(
    {"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_secret", "shmget"}
)


def _statement(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _load_argument(index: int) -> bytes:
    # The low half of a 64-bit argument on little-endian machines; the kernel ignores the high half of these arguments.
    return _statement(_LOAD_WORD, _ARGUMENTS_OFFSET + 8 * index)


def _refuse(error: int) -> bytes:
    return _statement(_RETURN, _ERRNO | error)


def _when_call(number: int, body: list[bytes]) -> list[bytes]:
    return [_statement(_JUMP_EQUAL, number, 0, len(body)), *body]


def _unless_one_of(argument: int, values: tuple[int, ...], error: int) -> list[bytes]:
    tests = [_statement(_JUMP_EQUAL, value, len(values) - at) for at, value in enumerate(values)]
    return [_load_argument(argument), *tests, _refuse(error), _statement(_RETURN, _ALLOW)]


def program(machine_name: str | None = None) -> bytes:
    """Build the filter as an array of `struct sock_filter`, the form that bubblewrap and the kernel read.

    Args:
        machine_name: As `platform.machine()` gives it; this machine's where None.

    Raises:
        InfrastructureError: No table exists for this architecture.
    """
    name = machine_name or platform.machine()
    machine = MACHINES.get(name)
    if machine is None:
        raise InfrastructureError(f"no system-call filter for the architecture {name} (known: {', '.join(MACHINES)})")
    calls = machine.calls
    code = [
        _statement(_LOAD_WORD, _ARCHITECTURE_OFFSET),
        _statement(_JUMP_EQUAL, machine.audit, 1, 0),
        _statement(_RETURN, _KILL),
        _statement(_LOAD_WORD, _NUMBER_OFFSET),
        # The x32 calls share the architecture number and would pass every comparison below.
        _statement(_JUMP_GREATER_EQUAL, _X32_BIT, 0, 1),
        _statement(_RETURN, _KILL),
    ]
    for call in sorted(set(calls) - BY_ARGUMENT):
        code += _when_call(calls[call], [_refuse(errno.ENOSYS if call in NOT_IMPLEMENTED else errno.EPERM)])
    flags = [_load_argument(0), _statement(_JUMP_ANY_BIT, NAMESPACE_FLAGS, 0, 1), _refuse(errno.EPERM)]
    code += _when_call(calls["clone"], [*flags, _statement(_RETURN, _ALLOW)])
    for call in ("socket", "socketpair"):
        code += _when_call(calls[call], _unless_one_of(0, SOCKET_FAMILIES, errno.EAFNOSUPPORT))
    code += _when_call(calls["personality"], _unless_one_of(0, PERSONALITIES, errno.EPERM))
    terminal = [_load_argument(1)]
    for request in TERMINAL_IOCTLS:
        terminal += _when_call(request, [_refuse(errno.EPERM)])
    code += _when_call(calls["ioctl"], [*terminal, _statement(_RETURN, _ALLOW)])
    code.append(_statement(_RETURN, _ALLOW))
    return b"".join(code)
