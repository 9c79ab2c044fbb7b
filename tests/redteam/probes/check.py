"""The runner's `check` server, which judges what the agent has at that moment."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from contextlib import suppress

from .kit import NotRun, Plan, Stopped, nothing, probe

_SECONDS = 20.0
_KERNEL = "kernel.hip"


def _connect(plan: Plan) -> socket.socket:
    path = plan.facts["check"]
    if not os.path.exists(path):
        raise NotRun("there is no check here")
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stream.settimeout(_SECONDS)
    stream.connect(path)
    return stream


def _ask(plan: Plan, data: bytes = b"c") -> bytes:
    """Send a request and read the answer; a server that hangs up meanwhile is fine."""
    received = b""
    with _connect(plan) as stream:
        with suppress(ConnectionError, BrokenPipeError):
            stream.sendall(data)
        with suppress(ConnectionError):
            while piece := stream.recv(65536):
                received += piece
    return received


def _is_answer(data: bytes) -> bool:
    with suppress(ValueError):
        return isinstance(json.loads(data), dict) and "message" in json.loads(data)
    return False


@probe("check.links")
def links(plan: Plan) -> str:
    """The runner reads the candidate while the agent lives: as a link to a secret, a pipe, a folder."""
    secret = re.compile(rb"%s-[0-9a-f]" % plan.marks["host"].encode())
    found, told = [], []
    for name in ("secret", "environment", "pipe"):
        with suppress(FileNotFoundError):
            os.unlink(_KERNEL)
        if name == "pipe":
            os.mkfifo(_KERNEL)
        else:
            os.symlink(plan.facts["secret"] if name == "secret" else "/proc/self/environ", _KERNEL)
        answer = _ask(plan)
        os.unlink(_KERNEL)
        if secret.search(answer) or b"=/" in answer or not _is_answer(answer):
            found.append(f"{name}: {answer[:100]!r}")
        told.append(json.loads(answer).get("log") or json.loads(answer)["message"])
    return nothing(", ".join(found), "; ".join(told))


@probe("check.race")
def race(plan: Plan) -> str:
    """Links and files take turns while the runner reads. The files are too large, so that nothing is judged."""
    stop = threading.Event()
    for name in ("large.hip", "link.hip"):
        with suppress(FileNotFoundError):
            os.unlink(name)
    with open("large.hip", "wb") as file:
        file.truncate(2 << 20)
    os.symlink(plan.facts["secret"], _KERNEL)

    def flip() -> None:
        while not stop.is_set():
            os.symlink(plan.facts["secret"], "link.hip")
            os.rename("link.hip", _KERNEL)
            os.link("large.hip", "link.hip")
            os.rename("link.hip", _KERNEL)

    flipper = threading.Thread(target=flip)
    flipper.start()
    try:
        answers = [_ask(plan) for _ in range(4)]
    finally:
        stop.set()
        flipper.join()
        os.unlink(_KERNEL)
        os.unlink("large.hip")
    secret = re.compile(rb"%s-[0-9a-f]" % plan.marks["host"].encode())
    refusals = (b"is larger", b"levels of symbolic links")
    read = [one for one in answers if secret.search(one) or not any(word in one for word in refusals)]
    return nothing(", ".join(map(repr, read)), f"{len(answers)} answers, no link was followed")


@probe("check.malformed")
def malformed(plan: Plan) -> str:
    """Requests that are none; afterwards an ordinary one must still be answered."""
    requests = {
        "nothing": b"",
        "HTTP": b"GET / HTTP/1.1\r\n\r\n",
        "a record": b'{"task": "../../x", "mode": "full"}\n',
        "zeros": b"\0" * 4096,
        "32 MiB": b"c" * (32 << 20),
    }
    for data in requests.values():
        with _connect(plan) as stream:
            if not data:
                stream.shutdown(socket.SHUT_WR)
            with suppress(ConnectionError, BrokenPipeError, TimeoutError):
                stream.settimeout(2)
                stream.sendall(data)
            with suppress(ConnectionError, TimeoutError):
                while stream.recv(65536):
                    pass
    answer = _ask(plan)
    if not _is_answer(answer):
        return f"no answer any more: {answer[:100]!r}"
    raise Stopped(f"one byte is read of each; the next is answered: {json.loads(answer)['message']}")


@probe("check.descriptors")
def descriptors(plan: Plan) -> str:
    """Descriptors of the workspace, and of a pipe that tells who keeps it."""
    reader, writer = os.pipe()
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    with _connect(plan) as stream:
        socket.send_fds(stream, [b"c"], [writer, folder])
        os.close(writer)
        while stream.recv(65536):
            pass
    os.set_blocking(reader, False)
    try:
        kept = os.read(reader, 1) != b""
    except BlockingIOError:
        kept = True
    return nothing("the runner holds a descriptor of the agent" if kept else "", "the descriptors were closed at once")


@probe("check.no_more_calls")
def no_more_calls(plan: Plan) -> str:
    """Many at once, more than there are left."""
    most = plan.facts["check_calls"]
    answers: list[bytes] = []

    def ask() -> None:
        for _ in range(6):
            with suppress(OSError):
                answers.append(_ask(plan))

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    judged = [answer for answer in answers if b"calls_left" in answer]
    refused = [answer for answer in answers if b"no call is left" in answer]
    if len(judged) > most or not refused:
        return f"{len(judged)} judged, {len(refused)} refused of {most}"
    raise Stopped(f"{len(judged)} judged, {len(refused)} refused; no call is left of {most}")


@probe("check.never_reads")
def never_reads(plan: Plan) -> str:
    """Connections that ask and never read, and some that never ask; then one that does both must be answered."""
    held = []
    for number in range(4):
        stream = _connect(plan)
        if number:
            stream.sendall(b"c")
        held.append(stream)
    began = time.monotonic()
    answer = _ask(plan)
    for stream in held:
        stream.close()
    if not _is_answer(answer):
        return f"no answer any more: {answer[:100]!r}"
    raise Stopped(f"answered after {time.monotonic() - began:.1f} s")
