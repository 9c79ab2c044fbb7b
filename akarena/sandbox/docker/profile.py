"""The system-call filter for Docker: an allow list, less whatever the deny list of `akarena.sandbox.seccomp` names.

An allow list, because it takes the place of Docker's own, which is one: nothing is allowed here that Docker's default
profile refuses a container without capabilities, and nothing that the deny list refuses.
"""

from __future__ import annotations

import errno
import json
import platform
from collections.abc import Iterator
from functools import cache
from typing import Any

from akarena.errors import InfrastructureError
from akarena.sandbox.seccomp import (
    MACHINES,
    NAMESPACE_FLAGS,
    NOT_IMPLEMENTED,
    PERSONALITIES,
    SOCKET_FAMILIES,
    TERMINAL_IOCTLS,
)

_WORD_BITS = 32
_WORD = (1 << _WORD_BITS) - 1
_ADDR_NO_RANDOMIZE = 0x0040000
"""Refused by Docker's profile, so here too."""
_NAMES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}

_FILES = """
    access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64
    fallocate fchdir fchmod fchmodat fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fremovexattr
    fsetxattr fstat fstatfs fsync ftruncate futimesat getcwd getdents getdents64 getxattr inotify_add_watch inotify_init
    inotify_init1 inotify_rm_watch lchown lgetxattr link linkat listxattr llistxattr lremovexattr lseek lsetxattr lstat
    mkdir mkdirat mknod mknodat newfstatat open openat openat2 pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev
    pwritev2 read readahead readlink readlinkat readv removexattr rename renameat renameat2 rmdir sendfile setxattr
    splice stat statfs statx symlink symlinkat sync sync_file_range syncfs tee truncate umask unlink unlinkat utime
    utimensat utimes vmsplice write writev
"""
_MEMORY = """
    brk madvise membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect mremap msync munlock munlockall
    munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages
"""
_PROCESSES = """
    arch_prctl capget capset execve execveat exit exit_group fork get_robust_list getcpu getegid geteuid getgid
    getgroups getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit getrusage getsid gettid getuid
    ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self pidfd_open
    pidfd_send_signal prctl prlimit64 rseq sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr
    sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
    sched_setscheduler sched_yield seccomp set_robust_list set_tid_address setfsgid setfsuid setgid setgroups setpgid
    setpriority setregid setresgid setresuid setreuid setrlimit setsid setuid sysinfo tgkill times tkill uname vfork
    wait4 waitid
"""
_SIGNALS_AND_TIME = """
    alarm clock_getres clock_gettime clock_nanosleep getitimer gettimeofday nanosleep pause restart_syscall rt_sigaction
    rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo setitimer
    sigaltstack signalfd signalfd4 time timer_create timer_delete timer_getoverrun timer_gettime timer_settime
    timerfd_create timerfd_gettime timerfd_settime
"""
_WAITING_AND_TALKING = """
    accept accept4 bind connect epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd
    eventfd2 futex futex_waitv getpeername getrandom getsockname getsockopt io_cancel io_destroy io_getevents
    io_pgetevents io_setup io_submit listen mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink poll
    ppoll pselect6 recvfrom recvmmsg recvmsg select semctl semget semop semtimedop sendmmsg sendmsg sendto setsockopt
    shutdown
"""
ALLOWED = frozenset(f"{_FILES}{_MEMORY}{_PROCESSES}{_SIGNALS_AND_TIME}{_WAITING_AND_TALKING}".split())
"""The calls that are allowed whatever their arguments are, by name; one that a machine lacks is passed over."""


def all_words_but(*refused: int) -> Iterator[tuple[int, int]]:
    """Describe every 32-bit value but some, as pairs of mask and value: it is one of them if `value == word & mask`.

    Docker's filter compares 64 bits, of which the kernel ignores the upper half for many arguments: a test for
    inequality could be passed by a value with upper bits set. Masks have no such gap.
    """
    prefixes = [(0, 0)]
    for bit in reversed(range(_WORD_BITS)):
        grown = []
        for mask, value in prefixes:
            longer = mask | 1 << bit
            for choice in (value, value | 1 << bit):
                if any(number & longer == choice for number in refused):
                    grown.append((longer, choice))
                else:
                    yield longer, choice
        prefixes = grown


def _allow(name: str, index: int, mask: int, value: int) -> dict[str, Any]:
    test = {"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
    return {"names": [name], "action": "SCMP_ACT_ALLOW", "args": [test]}


@cache
def profile(machine_name: str | None = None) -> str:
    """Build the filter in Docker's form.

    Args:
        machine_name: As `platform.machine()` gives it; this machine's where None.

    Raises:
        InfrastructureError: No table exists for this architecture.
    """
    name = machine_name or platform.machine()
    if name not in MACHINES or name not in _NAMES:
        raise InfrastructureError(f"no system-call filter for the architecture {name} (known: {', '.join(MACHINES)})")
    rules: list[dict[str, Any]] = [
        {"names": sorted(ALLOWED - MACHINES[name].calls.keys()), "action": "SCMP_ACT_ALLOW"},
        {"names": sorted(NOT_IMPLEMENTED), "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS},
        _allow("clone", 0, NAMESPACE_FLAGS, 0),
    ]
    rules += [_allow(call, 0, _WORD, family) for call in ("socket", "socketpair") for family in SOCKET_FAMILIES]
    rules += [_allow("personality", 0, _WORD, value) for value in PERSONALITIES if value != _ADDR_NO_RANDOMIZE]
    rules += [_allow("ioctl", 1, mask, value) for mask, value in all_words_but(*TERMINAL_IOCTLS)]
    # Calls of another architecture kill the process: no other one is named.
    return json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "architectures": [_NAMES[name]], "syscalls": rules})
