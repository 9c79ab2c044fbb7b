"""The host's files: by path, by mounts, by handles, by other processes, by devices."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Callable
from functools import partial

from .calls import call
from .kit import NotRun, Plan, Stopped, doors, nothing, probe

_REFUSED = (errno.EPERM, errno.EACCES, errno.ENOENT, errno.EROFS, errno.ENOSYS)
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_AT_FDCWD = -100
_OPEN_TREE_CLONE = 1
_RUNNERS = ("akarena-work-", "akarena-agent-", "akarena-gateway-", "akarena-check-", "akarena-docker-")


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(40).decode(errors="replace")


def _open(path: str, flags: int = os.O_RDONLY) -> None:
    os.close(os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC))


@probe("files.by_path")
def by_path(plan: Plan) -> str:
    secret = plan.facts["secret"]
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    up = "../" * 40
    ways = (secret, f"/proc/1/root{secret}", f"/proc/self/root{secret}", f"/proc/1/cwd/{up}{secret}", f"/..{secret}")
    actions: dict[str, Callable[[], object]] = {path: partial(_read, path) for path in ways}
    actions["above the workspace"] = lambda: os.close(os.open(f"{up}{secret}", os.O_RDONLY, dir_fd=fd))
    for name in ("/etc/shadow", "/etc/machine-id", "/root/.bashrc", "/var/log", "/boot", "/home/user/../../root/.ssh"):
        actions[name] = partial(_open, name)
    # An image has some of these of its own; what counts is that they are not the host's.
    ours = {name: number for name, number in plan.facts["inodes"].items() if name in actions}
    opened, seen = [], "nothing of the host's"
    for name, action in actions.items():
        try:
            action()
        except OSError as error:
            if error.errno not in _REFUSED and error.errno != errno.ENOTDIR:
                raise
            seen = str(error.strerror)
        else:
            if name not in ours or os.stat(name).st_ino == ours[name]:
                opened.append(name)
    return nothing(", ".join(opened), seen)


@probe("files.secrets")
def secrets(plan: Plan) -> str:
    return nothing(", ".join(plan.swept.get("host", ())), "not in anything that can be read")


@probe("files.mount")
def mount(plan: Plan) -> str:
    os.makedirs("/tmp/there", exist_ok=True)
    there, here, none = b"/tmp/there", b"/", ctypes.c_char_p(None)
    actions: dict[str, Callable[[], object]] = {
        "tmpfs": lambda: call("mount", b"x", there, b"tmpfs", 0, none),
        "proc": lambda: call("mount", b"x", there, b"proc", 0, none),
        "sysfs": lambda: call("mount", b"x", there, b"sysfs", 0, none),
        "cgroup2": lambda: call("mount", b"x", there, b"cgroup2", 0, none),
        "mqueue": lambda: call("mount", b"x", there, b"mqueue", 0, none),
        "debugfs": lambda: call("mount", b"x", there, b"debugfs", 0, none),
        "overlay": lambda: call("mount", b"x", there, b"overlay", 0, b"lowerdir=/,upperdir=/tmp,workdir=/tmp"),
        "bind": lambda: call("mount", here, there, none, _MS_BIND | _MS_REC, none),
        "remount": lambda: call("mount", none, b"/", none, _MS_REMOUNT | _MS_BIND, none),
        "propagation": lambda: call("mount", none, b"/", none, _MS_REC | _MS_PRIVATE, none),
        "umount": lambda: call("umount2", b"/tmp", _MNT_DETACH),
        "umount of proc": lambda: call("umount2", b"/proc", _MNT_DETACH),
        "pivot_root": lambda: call("pivot_root", b"/tmp", b"/tmp/there"),
        "chroot": lambda: call("chroot", b"/tmp"),
        "fsopen": lambda: os.close(call("fsopen", b"tmpfs", 0)),
        "open_tree": lambda: os.close(call("open_tree", _AT_FDCWD, b"/", _OPEN_TREE_CLONE)),
        "move_mount": lambda: call("move_mount", _AT_FDCWD, b"/tmp", _AT_FDCWD, there, 0),
        "fspick": lambda: os.close(call("fspick", _AT_FDCWD, b"/", 0)),
        "mount_setattr": lambda: call("mount_setattr", _AT_FDCWD, b"/", 0, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32),
    }
    return doors(actions, errno.EPERM, errno.ENOSYS)


@probe("files.handles")
def handles(plan: Plan) -> str:
    """A handle names an inode of a whole file system, whatever of it is mounted here."""
    handle = ctypes.create_string_buffer(136)
    ctypes.c_uint32.from_buffer(handle).value = 128
    number = ctypes.c_int()

    def named(path: bytes) -> int:
        ctypes.c_uint32.from_buffer(handle).value = 128
        return call("name_to_handle_at", _AT_FDCWD, path, handle, ctypes.byref(number), 0)

    try:
        named(b".")
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        # The root of most file systems, as ext4 writes it: inode 2, generation 0.
        ctypes.c_uint32.from_buffer(handle).value = 8
    fd = os.open(".", os.O_RDONLY)
    return doors({"open_by_handle_at": lambda: call("open_by_handle_at", fd, handle, os.O_RDONLY)}, errno.EPERM)


@probe("files.processes")
def processes(plan: Plan) -> str:
    """Look for a root, a folder or an open file of another process that is not this sandbox's own."""
    own = {name: os.stat(f"/proc/self/{name}") for name in ("root",)}
    pipes = {os.readlink(f"/proc/self/fd/{fd}") for fd in (1, 2)}
    found, looked = [], 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) in (os.getpid(), os.getppid()):
            continue
        try:
            root = os.stat(f"/proc/{pid}/root")
            links = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ESRCH):
                raise
            continue
        looked += 1
        if (root.st_dev, root.st_ino) != (own["root"].st_dev, own["root"].st_ino):
            found.append(f"/proc/{pid}/root")
        for fd, link in links.items():
            if link.startswith("pipe:") and link not in pipes and _opens(f"/proc/{pid}/fd/{fd}", os.O_WRONLY):
                found.append(f"/proc/{pid}/fd/{fd} is {link}")
            if link.startswith("/") and not _is_ours(f"/proc/{pid}/fd/{fd}", link):
                found.append(f"/proc/{pid}/fd/{fd} is {link}")
    return nothing(", ".join(found), f"{looked} other processes, all with this root and no file from elsewhere")


def _opens(path: str, flags: int) -> bool:
    try:
        _open(path, flags)
    except OSError:
        return False
    return True


def _is_ours(descriptor: str, link: str) -> bool:
    try:
        held = os.stat(descriptor)
        named = os.stat(link)
    except OSError:
        # A deleted file of this sandbox's own tmpfs has no name any more.
        return link.startswith(("/tmp/", "/dev/shm/", "/memfd:", "/home/user/", "/workspace/")) or not _opens(
            descriptor, os.O_RDONLY
        )
    return (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)


@probe("files.read_only")
def read_only(plan: Plan) -> str:
    def make(folder: str) -> None:
        path = f"{folder}/redteam"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))

    folders = ("/", "/usr", "/usr/bin", "/usr/lib", "/etc", "/opt", "/root", "/var", "/akarena", "/dev", "/run", "/sys")
    actions: dict[str, Callable[[], object]] = {
        f"{folder}/": partial(make, folder) for folder in folders if os.path.isdir(folder)
    }
    for path in ("/etc/passwd", "/etc/hosts", "/akarena/prompt.md", "/akarena/check", "/akarena/forwarder.py"):
        if os.path.exists(path):
            actions[path] = partial(_open, path, os.O_WRONLY)
            actions[f"mode of {path}"] = partial(os.chmod, path, 0o666)
    actions["/akarena/check.sock"] = lambda: os.unlink("/akarena/check.sock")
    return doors(actions, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.EBUSY)


@probe("files.hard_links")
def hard_links(plan: Plan) -> str:
    actions: dict[str, Callable[[], object]] = {
        path: partial(os.link, path, f"linked-{abs(hash(path))}", follow_symlinks=False)
        for path in ("/etc/passwd", "/usr/bin/env", "/akarena/prompt.md", "/proc/self/exe", "/proc/self/fd/0")
        if os.path.lexists(path)
    }
    return doors(actions, errno.EXDEV, errno.EPERM)


@probe("files.make_devices")
def make_devices(plan: Plan) -> str:
    actions: dict[str, Callable[[], object]] = {}
    for folder in (".", "/tmp", "/dev/shm"):
        for name, kind, numbers in (
            ("mem", stat.S_IFCHR, (1, 1)),
            ("kmsg", stat.S_IFCHR, (1, 11)),
            ("sda", stat.S_IFBLK, (8, 0)),
            ("vda", stat.S_IFBLK, (254, 0)),
            ("loop", stat.S_IFBLK, (7, 0)),
        ):
            path = f"{folder}/{name}"
            actions[path] = partial(os.mknod, path, kind | 0o666, os.makedev(*numbers))
    return doors(actions, errno.EPERM)


@probe("files.devices")
def devices(plan: Plan) -> str:
    names = "mem kmem port kmsg kvm fuse vhost-net vhost-vsock net/tun loop-control loop0 sda vda nvme0 nvme0n1 dm-0"
    names += " mapper/control userfaultfd uinput input/event0 vfio/vfio cuse btrfs-control hpet watchdog cpu/0/msr"
    actions: dict[str, Callable[[], object]] = {
        f"/dev/{name}": partial(_open, f"/dev/{name}") for name in names.split()
    }
    return doors(actions, errno.ENOENT, errno.EACCES, errno.EPERM)


@probe("files.kernel")
def kernel(plan: Plan) -> str:
    reads = ("/proc/kcore", "/proc/kmsg", "/dev/core", "/sys/kernel/debug", "/sys/kernel/security", "/sys/firmware")
    writes = (
        "/proc/sysrq-trigger",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/randomize_va_space",
        "/proc/sys/kernel/ns_last_pid",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sys/fs/binfmt_misc/register",
        "/proc/sys/user/max_user_namespaces",
        "/proc/irq/0/smp_affinity",
        "/proc/self/uid_map",
        "/proc/self/setgroups",
        "/proc/1/uid_map",
    )
    actions: dict[str, Callable[[], object]] = {path: partial(_open, path) for path in reads}
    for path in writes:
        actions[f"writing {path}"] = partial(_write_back, path)
    return doors(actions, *_REFUSED, errno.ENOTDIR, errno.EINVAL, errno.EIO)


def _write_back(path: str) -> None:
    """Write what is there already: it shows whether writing is allowed, and changes nothing where it is."""
    with open(path, "rb") as file:
        text = file.read() if not path.endswith(("trigger", "register", "drop_caches")) else b""
    fd = os.open(path, os.O_WRONLY)
    try:
        if text:
            os.write(fd, text)
    finally:
        os.close(fd)


@probe("files.kernel_log")
def kernel_log(plan: Plan) -> str:
    buffer = ctypes.create_string_buffer(4096)
    return doors({"syslog": lambda: call("syslog", 3, buffer, 4096)}, errno.EPERM)


@probe("files.traces")
def traces(plan: Plan) -> str:
    """What the caller has beside the workspace: its other folders lie next to it on the host."""
    folders = [folder for folder in ("..", "/tmp", "/var/tmp") if os.path.isdir(folder)]
    names = [name for folder in folders for name in os.listdir(folder) if name.startswith(_RUNNERS)]
    if not os.path.samefile("..", "/") and not plan.roots:
        raise NotRun("the workspace does not lie in the root")
    if names:
        return ", ".join(names)
    raise Stopped("above the workspace lies the sandbox's own root")
