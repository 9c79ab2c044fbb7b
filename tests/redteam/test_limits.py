"""Escapes that are tried with lower limits than agents have, and the parts that stop some of the others."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from akarena import site
from akarena.agents import watch
from akarena.agents.check import CheckServer
from akarena.agents.take_back import take_back
from akarena.agents.watch import WorkspaceWatch, measure
from akarena.gateway.redaction import Redactor
from akarena.sandbox.base import Command, End, Limits, Role
from tests.redteam.catalogue import BUBBLEWRAP, DOCKER

MIB = 1 << 20
SANDBOXES = (BUBBLEWRAP, pytest.param(DOCKER, marks=pytest.mark.docker))
EATS = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        held = b"x" * (80 << 20)
        time.sleep(30)
os.wait()
"""
INODES = """
import os, time
for number in range(600):
    open(f"f{number}", "w").close()
time.sleep(30)
"""
UNLINKED = """
import os, time
held = []
for number in range(3):
    held.append(os.open("f", os.O_WRONLY | os.O_CREAT))
    os.posix_fallocate(held[-1], 0, 200 << 20)
    os.unlink("f")
time.sleep(30)
"""


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_exhaust_memory(sandbox: str) -> None:
    place = site.choose(sandbox, "cpu")
    target = place.target
    provision = target.torch_process()
    command = Command(
        (target.python(Role.AGENT).bare_executable, "-I", "-S", "-c", EATS),
        provision.environment,
        provision.mounts,
        Limits(20.0, 128 * MIB, 16, MIB, MIB, MIB),
        role=Role.AGENT,
    )
    result = place.sandbox.run(command)
    assert result.end is End.OUT_OF_MEMORY, result
    assert result.wall_seconds < 15


def watched(workspace: Path, program: str) -> str:
    """Run a program in a folder until the watch stops it; give its words."""
    cancel = threading.Event()
    with WorkspaceWatch(workspace, cancel) as found:
        child = subprocess.Popen([sys.executable, "-c", program], cwd=workspace)
        try:
            cancel.wait(20)
        finally:
            child.kill()
            child.wait()
    return found.fault


def test_exhaust_inodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_MAX_FILES", 500)
    assert watched(tmp_path, INODES).endswith("in 501 files, over its limits")


def test_exhaust_unlinked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert watch._reserve(100 << 30) == 4 << 30
    assert watch._reserve(2 << 30) == 1 << 30
    # As if the disk were so full already.
    monkeypatch.setattr(watch, "_reserve", lambda free: free - 100 * MIB)
    assert watched(tmp_path, UNLINKED).startswith("the disk of the workspace has ")


def test_the_watch_does_not_leave_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "large").write_bytes(b"x" * MIB)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "link").symlink_to(tmp_path / "elsewhere")
    (workspace / "file").write_bytes(b"x" * 10_000)
    usage = measure(workspace)
    assert (usage.files, usage.too_deep, usage.closed) == (2, False, 0)
    assert 10_000 <= usage.size < 100_000


def nest(folder: Path, depth: int) -> None:
    here = os.open(folder, os.O_RDONLY)
    for number in range(depth):
        name = f"d{number % 3}"
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=inner))
        os.close(here)
        here = inner
    os.close(here)


def test_a_nested_workspace_is_taken_back_and_can_be_removed(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (outside / "precious").write_text("x")
    (workspace / "kernel.hip").write_text("kept")
    (workspace / "link").symlink_to(outside)
    nest(workspace, 2500)
    (workspace / "closed" / "inner").mkdir(parents=True)
    (workspace / "closed").chmod(0)
    assert measure(workspace).too_deep
    take_back(workspace)
    assert (workspace / "kernel.hip").read_text() == "kept"
    files = sum(len(names) for _, _, names in os.walk(workspace))
    assert files == 2500 + 1
    assert not measure(workspace).too_deep
    shutil.rmtree(workspace)
    assert (outside / "precious").read_text() == "x"


def test_a_workspace_that_is_not_nested_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    take_back(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_key_is_taken_out_of_a_stream_whatever_its_pieces(size: int) -> None:
    key = "aab-aabc"
    text = b"aab-aab" + key.encode() + b" x " + key.encode()[:-1] + b" aa" + key.encode() + b"aab-"
    redactor = Redactor(key)
    given = b"".join(redactor.feed(text[at : at + size]) for at in range(0, len(text), size)) + redactor.end()
    assert given == text.replace(key.encode(), b"[key]")
    assert key.encode() not in given


def test_without_a_key_a_stream_passes_at_once() -> None:
    redactor = Redactor(None)
    assert redactor.feed(b"abc") == b"abc"
    assert redactor.end() == b""
    assert redactor.whole(b"abc") == b"abc"


def test_an_event_of_a_stream_is_not_held_back() -> None:
    redactor = Redactor("sk-123")
    assert redactor.feed(b"data: {}\n\n") == b"data: {}\n\n"


def test_who_hangs_up_has_not_asked(tmp_path: Path) -> None:
    asked: list[int] = []

    def check() -> bytes:
        asked.append(1)
        return b"{}\n"

    with CheckServer(tmp_path / "s", check, 3) as server:
        for data in (b"", b"", b"c"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
                stream.connect(str(tmp_path / "s"))
                stream.sendall(data)
                stream.shutdown(socket.SHUT_WR)
                received = stream.recv(100)
            assert received == (b"{}\n" if data else b"")
    assert (server.calls, len(asked)) == (1, 1)
