"""Prove from inside a sandbox, before a run, that the isolation it claims is there."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from akarena.sandbox.base import Command, End, Limits, Mount, Result, Sandbox
from akarena.sandbox.ownership import prepare_writable, reclaim
from akarena.sandbox.runtime import interpreter, interpreter_mounts

_MIB = 1 << 20
_LIMITS = Limits(
    wall_seconds=30.0,
    memory_bytes=256 * _MIB,
    processes=32,
    output_bytes=_MIB,
    file_bytes=16 * _MIB,
    tmp_bytes=16 * _MIB,
)

# Runs inside; prints one JSON object of facts. Its arguments are the caller's home folder and process number.
_PROBE = """
import ctypes, json, os, socket, sys
home, pid = sys.argv[1], int(sys.argv[2])

def status(key):
    return next(line.split()[1] for line in open("/proc/self/status") if line.startswith(key + ":"))

def refused(action):
    try:
        action()
    except OSError as error:
        return error.strerror
    return None

def connect(family, address):
    with socket.socket(family) as s:
        s.settimeout(2)
        s.connect(address)

def write(path):
    with open(path, "w"):
        pass

write("/preflight/made")
sockets = ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock")
facts = {
    "capabilities": {key: status(key) for key in ("CapInh", "CapPrm", "CapEff", "CapAmb")},
    "no_new_privileges": status("NoNewPrivs"),
    "seccomp": status("Seccomp"),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "connected": [a for f, a in ((2, ("1.1.1.1", 443)), (2, ("169.254.169.254", 80)), (10, ("2606:4700::1111", 443)))
                  if not refused(lambda: connect(f, a))],
    "vsock": refused(lambda: socket.socket(40, socket.SOCK_STREAM)),
    "sockets": [path for path in sockets if os.path.exists(path)],
    "writable": [path for path in ("/x", "/etc/x", "/usr/x", "/dev/x") if not refused(lambda: write(path))],
    "home": os.listdir(home) if os.path.isdir(home) and os.access(home, os.R_OK) else [],
    "pids": [name for name in os.listdir("/proc") if name.isdigit()],
    "signal": refused(lambda: os.kill(pid, 0)),
    "user_namespace": ctypes.CDLL(None).unshare(0x10000000),
}
print(json.dumps(facts))
"""


@dataclass(frozen=True)
class PreflightCheck:
    """One property of the isolation, as seen from inside."""

    check: str
    ok: bool
    detail: str


def preflight(sandbox: Sandbox) -> list[PreflightCheck]:
    """Run a probe in the sandbox, once alone and once as the main process of a judgement.

    Args:
        sandbox: What to check.

    Returns:
        Every check; the sandbox may be used only when all are ok.

    Raises:
        InfrastructureError: The sandbox can't be set up at all.
    """
    checks = []
    for kind in ("run", "judge"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            prepare_writable(folder)
            try:
                mounts = (*interpreter_mounts(), Mount(folder, "/preflight", writable=True))
                argv = (str(interpreter()), "-I", "-S", "-c", _PROBE, str(Path.home()), str(os.getpid()))
                command = Command(argv, {}, mounts, _LIMITS)
                result = sandbox.run(command) if kind == "run" else sandbox.judge({"main": command}, main="main")
                made = folder / "made"
                host_user = made.lstat().st_uid if made.is_symlink() or made.exists() else None
            finally:
                reclaim(folder)
        checks += _judge_facts(kind, result, host_user, mounts)
    return checks


def _judge_facts(kind: str, result: Result, host_user: int | None, mounts: tuple[Mount, ...]) -> list[PreflightCheck]:
    if result.end is not End.EXITED or result.exit_code != 0:
        said = result.stderr.decode(errors="replace").strip()[-300:]
        return [
            PreflightCheck(f"{kind}: the probe ran", False, f"{result.end} {result.exit_code} {result.detail} {said}")
        ]
    facts = json.loads(result.stdout)
    home = Path.home()
    mounted = {Path(m.target).relative_to(home).parts[0] for m in mounts if home in Path(m.target).parents}
    allowed_user = host_user not in (None, 0) and (os.geteuid() == 0 or host_user == os.geteuid())
    capabilities = {key: value for key, value in facts["capabilities"].items() if int(value, 16)}
    found = (
        ("the host user is not root", allowed_user, f"host user {host_user}"),
        ("no capabilities", not capabilities, str(capabilities or "none")),
        ("no new privileges", facts["no_new_privileges"] == "1", facts["no_new_privileges"]),
        ("system-call filter active", facts["seccomp"] == "2", f"mode {facts['seccomp']}"),
        ("no user namespace can be made", facts["user_namespace"] == -1, f"unshare gave {facts['user_namespace']}"),
        ("no network interface but loopback", set(facts["interfaces"]) <= {"lo"}, ", ".join(facts["interfaces"])),
        ("no address can be reached", not facts["connected"], str(facts["connected"] or "none of 3")),
        ("no way to the hypervisor", bool(facts["vsock"]), facts["vsock"] or "a vsock socket can be opened"),
        ("no container engine's socket", not facts["sockets"], str(facts["sockets"] or "none")),
        ("the root is read-only", not facts["writable"], str(facts["writable"] or "none of 4 writable")),
        ("the caller's home is hidden", set(facts["home"]) <= mounted, f"{len(facts['home'])} mounted entries seen"),
        ("other processes are invisible", len(facts["pids"]) <= 3, f"{len(facts['pids'])} processes seen"),
        ("the caller can't be signalled", bool(facts["signal"]), facts["signal"] or "a signal would arrive"),
    )
    return [PreflightCheck(f"{kind}: {check}", ok, detail) for check, ok, detail in found]
