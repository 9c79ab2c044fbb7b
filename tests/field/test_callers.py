"""F12: who calls the command line is no root and lets nobody into the folder where it works."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from akarena.sandbox.runtime import find_bubblewrap, interpreter
from tests.e2e.conftest import ROOT, SOFTMAX, attempt, record
from tests.field.conftest import SANDBOXES

pytestmark = pytest.mark.slow

USER = 1234
# Makes files that its owner has closed, and one that no other user may read.
SCRIPT = "rm kernel.hip; mkdir -p closed/inner; touch closed/inner/file; chmod 0 closed; umask 077; echo > own; id -u"


@pytest.fixture
def private() -> Iterator[Path]:
    """A folder of mode 0700 that belongs to the other user, not below a folder of this one."""
    with tempfile.TemporaryDirectory(prefix="field-") as name:
        folder = Path(name)
        (folder / "tmp").mkdir()
        for path in (folder, folder / "tmp"):
            path.chmod(0o700)
            os.chown(path, USER, USER)
        yield folder


def as_user(
    groups: str, environment: dict[str, str], folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Call the command line as the other user, in a mount namespace where that user can reach this interpreter."""
    become = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from akarena.sandbox.drop import main; main()"
    call = f"import os, sys; os.chdir({str(folder)!r}); sys.path[:0] = {[str(ROOT), *sys.path]!r}"
    call += f"; sys.executable = {sys.executable!r}; from akarena.cli import main; sys.exit(main())"
    prefix = Path(sys.base_prefix).resolve()
    command = [str(find_bubblewrap()[0]), "--dev-bind", "/", "/"]
    if not Path(*prefix.parts[:2]).stat().st_mode & 0o001:
        top, *below = reversed([one for one in (prefix, *prefix.parents) if one != Path("/")])
        command += ["--perms", "0755", "--tmpfs", str(top)]
        for one in below[:-1]:
            command += ["--perms", "0755", "--dir", str(one)]
        command += ["--ro-bind", str(prefix), str(prefix)]
    python = str(interpreter())
    command += ["--", python, "-I", "-S", "-c", become, str(USER), groups, sys.executable, "-B", "-c", call, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests already run as an ordinary user")
@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_f12_an_ordinary_user_with_a_private_folder(sandbox: str, private: Path) -> None:
    environment = {
        "AKARENA_ROOT": str(ROOT),
        "PYTHONPATH": str(ROOT),
        "HOME": str(private),
        "TMPDIR": str(private / "tmp"),
        "XDG_STATE_HOME": str(private / "state"),
        "PATH": os.environ["PATH"],
    }
    groups = ""
    if sandbox == "docker":
        # A member of the group that may use the daemon.
        environment["DOCKER_HOST"] = host = os.environ["DOCKER_HOST"]
        groups = str(Path(host.removeprefix("unix://")).stat().st_gid)
    done = as_user(
        *(groups, environment, private, "evaluate", "--target", "cpu", "--sandbox", sandbox, "--no-inspection"),
        *("--agent", "command", "--command", shlex.join(["sh", "-c", SCRIPT]), "--tasks", SOFTMAX, "--run-id", "f12"),
    )
    assert done.returncode == 0, done.stderr
    folder = attempt(private / "runs" / "f12", SOFTMAX, "command")
    trial = record(folder, "trial.json")
    assert (trial["agent_end"], trial["status"], trial["reason"]) == ("finished", "not_built", "missing_file")
    assert (folder / "logs" / "agent.stdout").read_text().strip() != "0"
    found = [private, *private.rglob("*")]
    assert len(found) > 20
    assert [path for path in found if (path.lstat().st_uid, path.lstat().st_gid) != (USER, USER)] == []
    assert list((private / "tmp").iterdir()) == []
