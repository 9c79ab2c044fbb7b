"""The probes against the system-call filter get through where the filter lets everything pass."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from akarena import site
from akarena.sandbox import bubblewrap
from akarena.sandbox.base import Command, Limits, Mount, Role
from akarena.sandbox.ownership import prepare_writable, reclaim
from tests.redteam import agent
from tests.redteam.catalogue import BUBBLEWRAP

MIB = 1 << 20
ALLOW_ALL = struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)
NAMES = (
    "privilege.unshare",
    "privilege.clone",
    "privilege.ptrace",
    "privilege.memory",
    "privilege.personality",
    "privilege.kernel_code",
    "trials.keyring",
    "exhaust.shared_memory",
)


def raided(folder: Path) -> dict[str, dict[str, Any]]:
    """Run the probes in the sandbox as it is now; give what they print."""
    target = site.choose(BUBBLEWRAP, "cpu").target
    provision = target.torch_process()
    facts = {"other_name": "none", "earlier_name": "none"}
    agent.assemble(folder, {"acts": ["probes"], "names": NAMES, "facts": facts})
    prepare_writable(folder)
    command = Command(
        (target.python(Role.AGENT).bare_executable, agent.PROGRAM),
        provision.environment,
        (*provision.mounts, Mount(folder, "/workspace", writable=True)),
        Limits(60.0, 2048 * MIB, 200, MIB, 64 * MIB, 64 * MIB),
        working_directory="/workspace",
        role=Role.AGENT,
    )
    result = bubblewrap.Bubblewrap().run(command)
    reclaim(folder)
    assert result.exit_code == 0, result
    return {line["name"]: line for line in map(json.loads, result.stdout.splitlines())}


def test_the_filter_is_what_stops_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = raided(tmp_path)
    assert {whole[name]["outcome"] for name in NAMES} == {"stopped"}
    monkeypatch.setattr(bubblewrap, "program", lambda: ALLOW_ALL)
    weak = raided(tmp_path)
    assert {name: weak[name]["outcome"] for name in NAMES} == dict.fromkeys(NAMES, "got"), weak
