"""What the caller tells the launcher and what the launcher answers, on one stream socket. Standard library only.

A message is an eight-byte length and JSON. The answer is followed by the raw bytes of stdout and stderr.
"""

from __future__ import annotations

import base64
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from akarena.sandbox.base import Command, End, Limits, Result

_LENGTH = struct.Struct("!Q")
_MAX_MESSAGE_BYTES = 64 << 20


@dataclass(frozen=True)
class StagedMount:
    """A mount whose source is a path inside the outer sandbox."""

    source: str
    target: str
    writable: bool
    device: bool


@dataclass(frozen=True)
class Process:
    """One process of the plan, as the launcher starts it.

    Attributes:
        group_fds: Inherited descriptors of its control group, `cgroup.procs` and `memory.events`; empty without one.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[StagedMount, ...]
    working_directory: str
    limits: Limits
    group_fds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Everything that the launcher needs.

    Attributes:
        processes: Every process by name.
        main: The one to start at once.
        judgement: Give `main` a control socket, and keep all processes in one user namespace.
        bwrap: The path of bubblewrap inside the outer sandbox.
        seccomp: The system-call filter.
    """

    processes: Mapping[str, Process]
    main: str
    judgement: bool
    bwrap: str
    seccomp: bytes

    def dump(self) -> bytes:
        """Encode for the stream."""
        fields = asdict(self)
        fields["seccomp"] = base64.b64encode(self.seccomp).decode()
        text = json.dumps(fields).encode()
        return _LENGTH.pack(len(text)) + text


def stage(
    command: Command, sources: Mapping[str, str], scratch_folder: str, group_fds: tuple[int, ...] = ()
) -> Process:
    """Turn a command of the caller into a process of the plan.

    Args:
        command: What to run.
        sources: Where each mount's source lies inside the outer sandbox, by its host path.
        scratch_folder: The folder there that holds the scratch folders.
        group_fds: See `Process`.
    """
    mounts = [StagedMount(sources[str(m.source)], m.target, m.writable, m.device) for m in command.mounts]
    mounts += [StagedMount(f"{scratch_folder}/{s.name}", s.target, s.writable, False) for s in command.scratch]
    # A parent must be mounted before what lies in it.
    mounts.sort(key=lambda mount: mount.target.count("/"))
    return Process(
        command.argv,
        dict(command.environment),
        tuple(mounts),
        command.working_directory,
        command.limits,
        group_fds,
    )


def _receive_exactly(stream: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = stream.recv(min(count - len(data), 1 << 20))
        if not piece:
            raise EOFError("the other side closed the stream")
        data += piece
    return bytes(data)


def _receive_json(stream: socket.socket) -> Any:
    (length,) = _LENGTH.unpack(_receive_exactly(stream, _LENGTH.size))
    if length > _MAX_MESSAGE_BYTES:
        raise EOFError(f"a message of {length} bytes is not one of ours")
    return json.loads(_receive_exactly(stream, length))


def receive_plan(stream: socket.socket) -> Plan:
    """Read the plan; raises EOFError when the caller is gone."""
    fields = _receive_json(stream)
    processes = {
        name: Process(
            argv=tuple(given["argv"]),
            environment=given["environment"],
            mounts=tuple(StagedMount(**mount) for mount in given["mounts"]),
            working_directory=given["working_directory"],
            limits=Limits(**given["limits"]),
            group_fds=tuple(given["group_fds"]),
        )
        for name, given in fields["processes"].items()
    }
    seccomp = base64.b64decode(fields["seccomp"])
    return Plan(processes, fields["main"], fields["judgement"], fields["bwrap"], seccomp)


def result_fields(result: Result) -> dict[str, Any]:
    """Give the fields of a result that are not raw bytes, with the lengths of those."""
    fields = {key: value for key, value in vars(result).items() if key not in ("stdout", "stderr")}
    return {**fields, "stdout": len(result.stdout), "stderr": len(result.stderr)}


def make_result(fields: Mapping[str, Any], stdout: bytes, stderr: bytes) -> Result:
    """Undo `result_fields`."""
    return Result(**{**fields, "end": End(fields["end"]), "stdout": stdout, "stderr": stderr})


def send_result(stream: socket.socket, result: Result) -> None:
    """Write the answer of the launcher."""
    text = json.dumps(result_fields(result)).encode()
    stream.sendall(_LENGTH.pack(len(text)) + text + result.stdout + result.stderr)


def receive_result(stream: socket.socket) -> Result:
    """Read the answer of the launcher; raises EOFError when it ended without one."""
    fields = _receive_json(stream)
    stdout = _receive_exactly(stream, fields["stdout"])
    return make_result(fields, stdout, _receive_exactly(stream, fields["stderr"]))
