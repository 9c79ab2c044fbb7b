"""Temporary folders whose owner was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from akarena.agents.take_back import take_back
from akarena.temporary import OwnedFolder, sweep

OWNER = """
import os, sys, time
from akarena.temporary import OwnedFolder
folder = OwnedFolder("test")
os.makedirs(folder.name + "/workspace/" + "d/" * 30)
os.chmod(folder.name + "/workspace/d", 0)
os.symlink(sys.argv[1], folder.name + "/workspace/link")
print(folder.name, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    return place


def test_only_what_a_dead_owner_left_is_removed(tmp_path: Path, temporary: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    (temporary / "akarena-of-somebody").mkdir()
    (temporary / "akarena-link").symlink_to(precious)
    with subprocess.Popen([sys.executable, "-c", OWNER, str(precious)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        left = Path(owner.stdout.readline().strip())
        with OwnedFolder("test") as own:
            assert sweep(take_back) == 0, "both owners live"
            owner.send_signal(signal.SIGKILL)
            owner.wait()
            assert left.is_dir()
            assert sweep(take_back) == 1
            assert Path(own).is_dir()
    assert sorted(path.name for path in temporary.iterdir()) == ["akarena-link", "akarena-of-somebody"]
    assert (precious / "file").read_text() == "kept"


def test_it_is_removed_by_its_owner(temporary: Path) -> None:
    with OwnedFolder("test") as name:
        assert Path(name).name.startswith("akarena-test-")
    assert list(temporary.iterdir()) == []
