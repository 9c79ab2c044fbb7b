"""The key of the model service, which only the gateway has."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import resource
import signal
import socket
import struct
from collections.abc import Callable

from . import web
from .calls import call
from .kit import NotRun, Plan, Stopped, doors, nothing, probe

_SO_PEERPIDFD = 77


@probe("key.environment")
def environment(plan: Plan) -> str:
    places = [place for place in plan.swept.get("key", ()) if "environ" in place]
    return nothing(", ".join(places), "not in the environment of any process that can be seen")


@probe("key.processes")
def processes(plan: Plan) -> str:
    places = [place for place in plan.swept.get("key", ()) if place.startswith(("/proc/", "the memory"))]
    places = [place for place in places if "environ" not in place]
    return nothing(", ".join(places), "not in the arguments or the memory of any process that can be seen")


@probe("key.files")
def files(plan: Plan) -> str:
    places = [place for place in plan.swept.get("key", ()) if not place.startswith(("/proc/", "the "))]
    return nothing(", ".join(places), "not in any file that can be read")


def _leaked(plan: Plan, data: bytes, what: str) -> list[str]:
    return [what] if re.search(rb"%s-[0-9a-f]{16}" % plan.marks["key"].encode(), data) else []


@probe("key.error_bodies")
def error_bodies(plan: Plan) -> str:
    """The service answers some of these requests with errors and redirects that quote the key."""
    if not web.address():
        raise NotRun("there is no gateway")
    found = []
    for number in plan.facts["error_turns"]:
        found += _leaked(plan, web.ask(web.talk(number)), f"answer {number}")
    return nothing(", ".join(found), f"{len(plan.facts['error_turns'])} answers, none with the key")


@probe("key.echoes")
def echoes(plan: Plan) -> str:
    """The service quotes the key in a header, in a plain answer and in a stream."""
    if not web.address():
        raise NotRun("there is no gateway")
    found = []
    for number in plan.facts["echo_turns"]:
        for streamed in (False, True):
            data = web.ask(web.talk(number, stream=streamed))
            found += _leaked(plan, data, f"answer {number}{', streamed' if streamed else ''}")
    return nothing(", ".join(found), f"{2 * len(plan.facts['echo_turns'])} answers, none with the key")


@probe("key.peer")
def peer(plan: Plan) -> str:
    """A socket tells who listens: the gateway and the runner, both outside."""
    found, seen = [], []
    for name in (plan.facts["gateway"], plan.facts["check"]):
        if not os.path.exists(name):
            continue
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
            if name == plan.facts["check"]:
                stream.bind("\0")  # Asks nothing: a connection would cost a call.
                continue
            stream.connect(name)
            pid = struct.unpack("3i", stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            if pid and os.path.exists(f"/proc/{pid}"):
                found.append(f"process {pid}")
            try:
                fd = struct.unpack("i", stream.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, 4))[0]
            except OSError as error:
                seen.append(f"SO_PEERPIDFD: {error.strerror}")
                continue
            found += _uses(fd)
            seen.append("the descriptor of the gateway's process gives nothing")
    return nothing(", ".join(found), f"the peer's number is 0; {', '.join(seen)}")


def _uses(pidfd: int) -> list[str]:
    actions: dict[str, Callable[[], object]] = {
        "signal": lambda: call("pidfd_send_signal", pidfd, 0, ctypes.c_char_p(None), 0),
        "descriptor": lambda: call("pidfd_getfd", pidfd, 0, 0),
        "namespaces": lambda: call("setns", pidfd, 0x20000000),
    }
    try:
        return [doors(actions, errno.EINVAL, errno.EPERM, errno.ESRCH, errno.ENOSYS, errno.EREMOTE)]
    except Stopped:
        with open(f"/proc/self/fdinfo/{pidfd}") as file:
            lines = [line for line in file if line.startswith("Pid:") and line.split()[1] not in ("0", "-1")]
        return lines


@probe("key.core_dump")
def core_dump(plan: Plan) -> str:
    """A dump of a process, written where its folder is, or taken by a program of the host."""
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    except (ValueError, OSError):
        limit = "the limit on core files is 0 and can't be raised"
    else:
        return "core files are allowed"
    before = set(os.listdir("."))
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGSEGV)
    _, status = os.waitpid(pid, 0)
    new = sorted(set(os.listdir(".")) - before)
    dumped = ["the kernel says that it dumped"] if os.WCOREDUMP(status) else []
    return nothing(", ".join([*new, *dumped]), limit)
