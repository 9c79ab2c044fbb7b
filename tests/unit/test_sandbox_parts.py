"""The parts of the sandbox layer that need no sandbox."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akarena import sandbox
from akarena.errors import InfrastructureError, UserError
from akarena.sandbox import cgroup
from akarena.sandbox.base import Command, End, Limits, Mount, Result, Sandbox, ScratchMount
from akarena.sandbox.bubblewrap import Bubblewrap, _explain
from akarena.sandbox.capture import Capture
from akarena.sandbox.outer import Outer
from akarena.sandbox.ownership import host_id, reclaim
from akarena.sandbox.plan import Plan, receive_plan, receive_result, send_result, stage
from akarena.sandbox.runtime import interpreter, interpreter_mounts, without_nested
from akarena.sandbox.watch import measure

LIMITS = Limits(1.0, 1 << 20, 4, 1024, 1 << 20, 1 << 20)


class TestCapture:
    @given(st.lists(st.binary(max_size=40), max_size=20), st.integers(0, 60))
    def test_head_and_tail(self, pieces: list[bytes], limit: int) -> None:
        capture = Capture(limit)
        for piece in pieces:
            capture.add(piece)
        whole, value = b"".join(pieces), capture.value()
        assert capture.dropped_bytes == max(0, len(whole) - limit)
        if len(whole) <= limit:
            assert value == whole
        else:
            head, tail = limit // 2, limit - limit // 2
            gap = b"\n[... %d bytes dropped ...]\n" % capture.dropped_bytes
            assert value == whole[:head] + gap + whole[len(whole) - tail :]


class TestBase:
    @pytest.mark.parametrize("target", ["relative", "/a/../b", "/", "/proc", "/dev", "/a/", "//a/b/"])
    def test_mount_targets(self, target: str) -> None:
        with pytest.raises(ValueError, match="target"):
            Mount(Path("/x"), target)

    def test_scratch_names(self) -> None:
        with pytest.raises(ValueError, match="scratch name"):
            ScratchMount("../x", "/out")

    @pytest.mark.parametrize(
        ("argv", "environment"),
        [((), {}), (("a\0b",), {}), (("a",), {"A=B": ""}), (("a",), {"": "x"}), (("a",), {"A": "\0"})],
    )
    def test_commands(self, argv: tuple[str, ...], environment: dict[str, str]) -> None:
        with pytest.raises(ValueError, match="command"):
            Command(argv, environment, (), LIMITS)


class TestPlan:
    def test_round_trip(self) -> None:
        mounts = (
            Mount(Path("/x"), "/a/b/c"),
            Mount(Path("/y"), "/a", writable=True),
            Mount(Path("/z"), "/d/e", device=True),
        )
        command = Command(("p", "ü"), {"A": "b"}, mounts, LIMITS, "/a", (ScratchMount("s", "/s"),))
        staged = stage(command, {"/x": "/stage/0", "/y": "/stage/1", "/z": "/stage/2"}, "/scratch", (7, 8))
        assert [mount.target for mount in staged.mounts] == ["/a", "/s", "/d/e", "/a/b/c"]
        plan = Plan({"main": staged}, "main", True, "/bwrap", b"\0\xff")
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.sendall(plan.dump())
            assert receive_plan(theirs) == plan
            result = Result(End.SIGNALLED, None, 6, b"\xff\0", b"err", 0, 1.5, "detail")
            send_result(theirs, result)
            assert receive_result(ours) == result

    def test_a_closed_stream(self) -> None:
        ours, theirs = socket.socketpair()
        with ours:
            theirs.close()
            with pytest.raises(EOFError):
                receive_result(ours)


class TestWatch:
    def process(
        self, proc: Path, pid: int, parent: int, anonymous_kib: int, threads: int = 1, shared_kib: int = 0
    ) -> None:
        (proc / str(pid) / "fd").mkdir(parents=True)
        (proc / str(pid) / "status").write_text(
            f"Name:\tx\nPPid:\t{parent}\nRssAnon:\t{anonymous_kib} kB\n"
            f"RssShmem:\t{shared_kib} kB\nThreads:\t{threads}\n"
        )

    def test_trees(self, tmp_path: Path) -> None:
        self.process(tmp_path, 1, 0, 1000)
        self.process(tmp_path, 10, 1, 1, threads=1)
        self.process(tmp_path, 11, 10, 100, threads=5, shared_kib=7)
        self.process(tmp_path, 12, 11, 10)
        self.process(tmp_path, 20, 1, 3)
        (tmp_path / "self").mkdir()
        usage = measure([10, 20, 99], memfds=False, proc=str(tmp_path))
        assert (usage[10].memory_bytes, usage[10].tasks) == ((111 + 7) * 1024, 7)
        assert (usage[20].memory_bytes, usage[20].tasks) == (3 * 1024, 1)
        assert (usage[99].memory_bytes, usage[99].tasks) == (0, 0)

    def test_own_memory_files(self) -> None:
        fd = os.memfd_create("test")
        try:
            before = measure([os.getpid()], memfds=True)[os.getpid()].memory_bytes
            os.write(fd, bytes(32 << 20))
            assert measure([os.getpid()], memfds=True)[os.getpid()].memory_bytes - before > 16 << 20
        finally:
            os.close(fd)


class TestRegistry:
    def test_names(self) -> None:
        assert "bubblewrap" in sandbox.names()
        found: Sandbox = sandbox.get("bubblewrap")
        assert isinstance(found, Bubblewrap)

    def test_auto_gives_a_registered_one(self) -> None:
        assert sandbox.get("auto").name in sandbox.names()

    def test_unknown(self) -> None:
        with pytest.raises(UserError, match=r"sandbox 'bubblewarp' does not exist; did you mean bubblewrap"):
            sandbox.get("bubblewarp")

    def test_broken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sandbox._SANDBOXES._builtin, "broken", "akarena.no_such_module:Nothing")
        with pytest.raises(InfrastructureError, match="broken"):
            sandbox.get("broken")


class TestBubblewrap:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("user/max_user_namespaces", "0"),
            ("kernel/unprivileged_userns_clone", "0"),
            ("kernel/apparmor_restrict_unprivileged_userns", "1"),
        ],
    )
    def test_the_cause_is_named(self, tmp_path: Path, name: str, value: str) -> None:
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(value + "\n")
        text = _explain("bwrap: setting up uid map: Permission denied", tmp_path)
        assert name.replace("/", ".") in text
        assert "sysctl -w" in text

    def test_no_known_cause(self, tmp_path: Path) -> None:
        assert "container" in _explain("bwrap: Creating new namespace failed: Operation not permitted", tmp_path)
        assert _explain("bwrap: something else", tmp_path) == "bwrap: something else"

    def test_a_missing_source(self, tmp_path: Path) -> None:
        command = Command(("/x",), {}, (Mount(tmp_path / "missing", "/x"),), LIMITS)
        with pytest.raises(InfrastructureError, match="missing"):
            Bubblewrap().run(command)

    def test_an_unknown_main(self) -> None:
        with pytest.raises(ValueError, match="main process"):
            Bubblewrap().judge({}, main="judge")

    def test_descriptors_are_closed(self, tmp_path: Path) -> None:
        before = len(list(Path("/proc/self/fd").iterdir()))
        outer = Outer.of([Command(("/x",), {}, (Mount(tmp_path, "/x"),), LIMITS)])
        outer.command_line(5, as_root=False)
        assert len(list(Path("/proc/self/fd").iterdir())) > before
        outer.close()
        assert len(list(Path("/proc/self/fd").iterdir())) == before

    def test_a_failure_to_set_up_is_no_result(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where bubblewrap can't work, nothing runs and the error says so."""
        monkeypatch.setattr("akarena.sandbox.outer.find_bubblewrap", lambda: (Path("/bin/false"), ()))
        monkeypatch.setattr("akarena.sandbox.bubblewrap.find_bubblewrap", lambda: (Path("/bin/false"), ()))
        with pytest.raises(InfrastructureError, match="sandbox failed"):
            Bubblewrap().run(Command(("/x",), {}, (), LIMITS))


class TestRuntime:
    def test_nested_folders(self) -> None:
        folders = (Path("/usr"), Path("/usr/lib"), Path("/lib"), Path("/usr"))
        assert without_nested(folders) == (Path("/usr"), Path("/lib"))

    def test_interpreter_is_mounted(self) -> None:
        assert any(interpreter().is_relative_to(mount.target) for mount in interpreter_mounts())


class TestOwnership:
    def test_reclaim_follows_no_links_and_bounds_depth(self, tmp_path: Path) -> None:
        outside, inside = tmp_path / "outside", tmp_path / "inside"
        outside.mkdir(mode=0o755)
        inside.mkdir()
        (inside / "link").symlink_to(outside)
        (inside / "closed").mkdir(mode=0o000)
        assert reclaim(inside)
        assert outside.stat().st_mode & 0o777 == 0o755
        assert (inside / "closed").stat().st_mode & 0o777 == 0o700
        deep = inside
        for _ in range(110):
            deep = deep / "d"
        deep.mkdir(parents=True)
        assert not reclaim(inside)

    def test_host_id_is_never_root(self) -> None:
        assert 0 not in host_id()


class TestControlGroups:
    def machine(self, tmp_path: Path, own: str = "/a/b/c.scope", enabled: str = "cpu memory pids") -> tuple[Path, Path]:
        proc, mount = tmp_path / "proc", tmp_path / "cgroup"
        proc.mkdir()
        base = mount / "a" / "b"
        base.mkdir(parents=True)
        (proc / "cgroup").write_text(f"0::{own}\n")
        (proc / "mountinfo").write_text(f"30 25 0:26 / {mount} rw,nosuid - cgroup2 cgroup2 rw\n")
        (base / "cgroup.subtree_control").write_text(enabled + "\n")
        (base / "cgroup.procs").write_text("")
        return proc, base

    def test_found(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cgroup, "_kernel", lambda: (6, 1))
        proc, base = self.machine(tmp_path)
        assert cgroup.find_base(proc) == base

    def test_an_old_kernel(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cgroup, "_kernel", lambda: (5, 15))
        proc, _ = self.machine(tmp_path)
        assert cgroup.find_base(proc) is None

    def test_controllers_are_missing(self, tmp_path: Path) -> None:
        proc, _ = self.machine(tmp_path, enabled="cpu pids")
        assert cgroup.find_base(proc) is None

    def test_no_version_two(self, tmp_path: Path) -> None:
        proc, _ = self.machine(tmp_path)
        (proc / "cgroup").write_text("4:memory:/x\n")
        assert cgroup.find_base(proc) is None

    def test_limits_are_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        plain_mkdir = Path.mkdir

        def make_like_the_kernel(path: Path) -> None:
            plain_mkdir(path)
            for name in ("cgroup.procs", "memory.events", "memory.swap.max"):
                (path / name).write_text("")

        monkeypatch.setattr(Path, "mkdir", make_like_the_kernel)
        groups = cgroup.Groups(tmp_path)
        group = groups.make(LIMITS)
        read = {name: (group.folder / name).read_text() for name in ("memory.max", "pids.max", "memory.swap.max")}
        assert read == {"memory.max": "1048576", "pids.max": "5", "memory.swap.max": "0"}
        groups.close()
        assert group.procs_fd == -1
