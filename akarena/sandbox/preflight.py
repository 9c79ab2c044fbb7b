"""Prove from inside a sandbox, before a run, that the isolation it claims is there."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from akarena import paths
from akarena.errors import UserError
from akarena.sandbox import probe
from akarena.sandbox.base import Command, End, Limits, Mount, Result, Role, Sandbox
from akarena.sandbox.inner import covers
from akarena.sandbox.ownership import prepare_writable, reclaim
from akarena.sandbox.runtime import python_of

_MIB = 1 << 20
_LIMITS = Limits(
    wall_seconds=60.0,
    memory_bytes=256 * _MIB,
    processes=32,
    output_bytes=_MIB,
    file_bytes=16 * _MIB,
    tmp_bytes=16 * _MIB,
)
_PUBLIC = ("1.1.1.1", "2606:4700::1111")
_METADATA = ("169.254.169.254", "fd00:ec2::254")
_SOCKETS = ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock")


@dataclass(frozen=True)
class PreflightCheck:
    """One property of the isolation, as seen from inside."""

    check: str
    ok: bool
    detail: str


def preflight(sandbox: Sandbox) -> list[PreflightCheck]:
    """Run a probe in the sandbox: as an agent, as a worker, and as the main process of a judgement.

    Args:
        sandbox: What to check.

    Returns:
        Every check; the sandbox may be used only when all are ok.

    Raises:
        InfrastructureError: The sandbox can't be set up at all.
    """
    checks = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for role in (Role.AGENT, Role.WORKER, Role.JUDGE):
            checks += _probe(sandbox, role, port)
    return checks


def _probe(sandbox: Sandbox, role: Role, port: int) -> list[PreflightCheck]:
    python = python_of(sandbox, role)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare_writable(folder)
        mounts = (
            *python.mounts,
            Mount(Path(probe.__file__), "/preflight-probe.py"),
            Mount(folder, "/preflight", writable=True),
        )
        questions = {
            "home": str(Path.home()),
            "pid": os.getpid(),
            "port": port,
            "addresses": [*_PUBLIC, *_METADATA, *_own_addresses()],
            "sockets": [*_SOCKETS, *_engine_socket()],
            "hidden": [str(path) for path in _hidden(mounts)],
        }
        argv = (python.path, "-I", "-S", "/preflight-probe.py", json.dumps(questions))
        command = Command(argv, {}, mounts, _LIMITS, role=role)
        try:
            judged = role is Role.JUDGE
            result = sandbox.judge({"main": command}, main="main") if judged else sandbox.run(command)
            made = folder / "made"
            host_user = made.lstat().st_uid if made.is_symlink() or made.exists() else None
        finally:
            reclaim(folder)
    return [
        PreflightCheck(f"{role.value}: {check.check}", check.ok, check.detail)
        for check in _judge_facts(result, host_user, mounts, role)
    ]


def _own_addresses() -> list[str]:
    """Give this machine's addresses, without loopback and those that are valid on one link only."""
    found = [address for many in psutil.net_if_addrs().values() for address in many]
    families = (socket.AF_INET, socket.AF_INET6)
    kept = {address.address for address in found if address.family in families and "%" not in address.address}
    return sorted(address for address in kept if not address.startswith("127.") and address != "::1")[:8]


def _engine_socket() -> list[str]:
    host = os.environ.get("DOCKER_HOST", "")
    return [host.removeprefix("unix://")] if host.startswith("unix://") else []


def _hidden(mounts: Sequence[Mount]) -> list[Path]:
    """Give host paths that must not be there: the judge, oracles and solutions, every run, secrets of the state."""
    found = [paths.package() / "judge"]
    try:
        root = paths.root()
        found += [root / name for name in ("tasks", "runs", ".akarena", ".git")]
    except UserError:
        pass  # Without a checkout there is nothing else to hide.
    # A package that is installed beside the interpreter comes along with it, and holds no secret.
    return [path for path in found if path.exists() and not any(Path(m.target) in path.parents for m in mounts)]


def _judge_facts(result: Result, host_user: int | None, mounts: Sequence[Mount], role: Role) -> list[PreflightCheck]:
    if result.end is not End.EXITED or result.exit_code != 0:
        said = result.stderr.decode(errors="replace").strip()[-300:]
        return [PreflightCheck("the probe ran", False, f"{result.end} {result.exit_code} {result.detail} {said}")]
    facts = json.loads(result.stdout)
    home = Path.home()
    mounted = {Path(m.target).relative_to(home).parts[0] for m in mounts if home in Path(m.target).parents}
    left = [path for path in facts["left"] if not any(covers(path, mount.target) for mount in mounts)]
    of_home = sorted(
        name for name, entry in facts["home"].items() if name not in mounted and _is_same(home, name, entry)
    )
    allowed_user = host_user not in (None, 0) and (os.geteuid() == 0 or host_user == os.geteuid())
    capabilities = {key: value for key, value in facts["capabilities"].items() if int(value, 16)}
    # Some vendors' programs refuse to skip permissions as root. The judge may be root of a namespace without rights.
    inside = ("the user inside is not root", 0 not in facts["users"], f"ids {facts['users']}")
    found = (
        *(() if role is Role.JUDGE else (inside,)),
        ("the host user is not root", allowed_user, f"host user {host_user}"),
        ("no capabilities", not capabilities, str(capabilities or "none")),
        ("no new privileges", facts["no_new_privileges"] == "1", facts["no_new_privileges"]),
        ("system-call filter active", facts["seccomp"] == "2", f"mode {facts['seccomp']}"),
        ("no user namespace can be made", facts["user_namespace"] == -1, f"unshare gave {facts['user_namespace']}"),
        ("no network interface but loopback", set(facts["interfaces"]) <= {"lo"}, ", ".join(facts["interfaces"])),
        ("no address can be reached", not facts["reached"], _some(facts["reached"], facts["tried"])),
        ("no name can be resolved", not facts["resolved"], facts["resolved"] or "none"),
        ("the caller's loopback is another one", not facts["loopback"], _yes_no(facts["loopback"])),
        ("no way to the hypervisor", bool(facts["vsock"]), facts["vsock"] or "a vsock socket can be opened"),
        ("no container engine's socket", not facts["sockets"], str(facts["sockets"] or "none")),
        ("the root is read-only", not facts["writable"], _some(facts["writable"], facts["tried_to_write"])),
        ("the caller's home is hidden", not of_home, str(of_home or "none of its entries seen")),
        ("no judge, oracle, run or state is visible", not facts["seen"], str(facts["seen"] or "none")),
        ("temporary folders are empty", not left, str(left or "none filled")),
        ("other processes are invisible", len(facts["pids"]) <= 3, f"{len(facts['pids'])} processes seen"),
        ("the caller can't be signalled", bool(facts["signal"]), facts["signal"] or "a signal would arrive"),
    )
    return [PreflightCheck(check, ok, detail) for check, ok, detail in found]


def _is_same(folder: Path, name: str, entry: Sequence[int]) -> bool:
    try:
        facts = (folder / name).lstat()
    except OSError:
        return False
    return [facts.st_dev, facts.st_ino] == list(entry)


def _some(found: Sequence[Any], tried: int) -> str:
    return ", ".join(map(str, found)) or f"none of {tried}"


def _yes_no(answer: bool) -> str:
    return "yes" if answer else "no"
