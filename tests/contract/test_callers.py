"""Who calls a sandbox, what becomes of it, and what it says about itself."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from akarena.sandbox.base import Assurance, AssuranceLine, Command, Limits, Mount, Result, Role, Sandbox
from akarena.sandbox.docker import DockerSandbox
from akarena.sandbox.ownership import host_id, prepare_writable
from akarena.sandbox.preflight import preflight
from akarena.sandbox.runtime import Python, find_bubblewrap, interpreter, python_of
from tests.contract.helpers import Runner


def test_the_sandbox_dies_with_its_caller(runner: Runner, tmp_path: Path) -> None:
    prepare_writable(tmp_path)
    code = """
        import time
        while True:
            with open("/out/alive", "a") as file:
                file.write("x")
            time.sleep(0.01)
    """
    script = f"""
from pathlib import Path
from akarena.sandbox.base import Mount
from tests.contract import helpers
runner = helpers.Runner(helpers.get({runner.sandbox.name!r}))
runner.run({code!r}, mounts=(Mount(Path({str(tmp_path)!r}), "/out", writable=True),))
"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2]) as caller:
        end = time.monotonic() + 10
        while not (tmp_path / "alive").exists() and time.monotonic() < end:
            time.sleep(0.02)
        caller.kill()
    assert (tmp_path / "alive").exists()
    sizes = [0]
    end = time.monotonic() + 10
    while sizes[-1:] * 3 != sizes[-3:] and time.monotonic() < end:
        time.sleep(0.2)
        sizes.append((tmp_path / "alive").stat().st_size)
    assert sizes[-3] == sizes[-1] > 0


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests already run as an ordinary user")
def test_an_ordinary_user_can_call_it(sandbox: Sandbox) -> None:
    """The same as another user, in a mount namespace where that user can reach this interpreter."""
    root = Path(__file__).parents[2]
    script = f"""
import os, sys
sys.path[:0] = {[str(root), *sys.path]!r}
from akarena.sandbox.preflight import preflight
from tests.contract import helpers
print(os.geteuid(), [check for check in preflight(helpers.get({sandbox.name!r})) if not check.ok])
"""
    become = f"import sys; sys.path.insert(0, {str(root)!r}); from akarena.sandbox.drop import main; main()"
    prefix = Path(sys.base_prefix).resolve()
    opened: list[str] = []
    if not Path(*prefix.parts[:2]).stat().st_mode & 0o001:
        top, *below = reversed([folder for folder in (prefix, *prefix.parents) if folder != Path("/")])
        opened = ["--perms", "0755", "--tmpfs", str(top)]
        for folder in below[:-1]:
            opened += ["--perms", "0755", "--dir", str(folder)]
        opened += ["--ro-bind", str(prefix), str(prefix)]
    command = [str(find_bubblewrap()[0]), "--dev-bind", "/", "/", *opened]
    groups, environment = "", {"HOME": "/nowhere"}
    if isinstance(sandbox, DockerSandbox):
        # A member of the group that may use the daemon, which must see the same /tmp.
        host = os.environ["DOCKER_HOST"]
        groups, environment["DOCKER_HOST"] = str(Path(host.removeprefix("unix://")).stat().st_gid), host
    else:
        command += ["--perms", "1777", "--tmpfs", "/tmp"]
        if root.is_relative_to("/tmp"):
            for folder in reversed(root.relative_to("/tmp").parents[:-1]):
                command += ["--perms", "0755", "--dir", f"/tmp/{folder}"]
            command += ["--ro-bind", str(root), str(root)]
    python = str(interpreter())
    command += ["--", python, "-I", "-S", "-c", become, "1234", groups, python, "-I", "-S", "-B", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert (done.stdout, done.stderr) == ("1234 []\n", "")


def test_host_user_is_not_the_callers_root(runner: Runner, tmp_path: Path) -> None:
    prepare_writable(tmp_path)
    private = tmp_path / "private"
    private.write_text("private")
    private.chmod(0o600)
    code = "import os; open('/out/made', 'w').close(); print(os.access('/out/private', os.R_OK))"
    result = runner.run(code, mounts=(Mount(tmp_path, "/out", writable=True),))
    assert result.stdout == (b"False\n" if os.geteuid() == 0 else b"True\n")
    assert (tmp_path / "made").stat().st_uid == host_id()[0] != 0


def test_every_limit_has_an_assurance(sandbox: Sandbox) -> None:
    lines = {line.limit: line for line in sandbox.assurance()}
    assert set(Limits.__dataclass_fields__) | {"network", "user", "seccomp"} <= set(lines)
    assert all(line.how and isinstance(line.strength, Assurance) for line in lines.values())


def test_preflight_passes(sandbox: Sandbox) -> None:
    checks = preflight(sandbox)
    assert len(checks) >= 8
    assert [check for check in checks if not check.ok] == []


@dataclass(frozen=True)
class Leaky:
    """A sandbox that shows more than it should."""

    sandbox: Sandbox
    mounts: tuple[Mount, ...]
    name: str = "leaky"

    def python(self, role: Role = Role.JUDGE) -> Python:
        return python_of(self.sandbox, role)

    def assurance(self) -> tuple[AssuranceLine, ...]:
        return ()

    def run(self, command: Command, *, cancel: threading.Event | None = None) -> Result:
        return self.sandbox.run(self._more(command), cancel=cancel)

    def judge(self, processes: Mapping[str, Command], *, main: str, cancel: threading.Event | None = None) -> Result:
        more = {name: self._more(command) for name, command in processes.items()}
        return self.sandbox.judge(more, main=main, cancel=cancel)

    def _more(self, command: Command) -> Command:
        return replace(command, mounts=(*command.mounts, *self.mounts))


def test_preflight_sees_leaks(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, tasks = tmp_path / "home", Path(__file__).parents[2] / "tasks"
    home.mkdir()
    (home / "key").touch()
    monkeypatch.setenv("HOME", str(home))
    leaks = (Mount(home, str(home)), Mount(tasks, str(tasks)), Mount(home / "key", "/var/run/docker.sock"))
    failed = {check.check for check in preflight(Leaky(sandbox, leaks)) if not check.ok}
    for role in ("agent", "worker", "judge"):
        assert f"{role}: the caller's home is hidden" in failed
        assert f"{role}: no judge, oracle, run or state is visible" in failed
        assert f"{role}: no container engine's socket" in failed
