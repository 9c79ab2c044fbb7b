"""What a process sees of files, and what it can do to them."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from akarena.errors import InfrastructureError
from akarena.sandbox.base import HOME, Mount
from akarena.sandbox.ownership import host_id, prepare_writable, reclaim
from tests.contract.helpers import Runner, given


def test_nothing_of_the_host_is_visible(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    code = "import json, os, sys; print(json.dumps([os.listdir('/tmp'), [os.path.exists(p) for p in sys.argv[1:]]]))"
    paths = [str(tmp_path / "secret"), "/sys/kernel", "/var/run/docker.sock", "/run/docker.sock", "/etc/ssh"]
    paths += [str(path) for path in (Path.cwd(), Path(__file__)) if Path("/usr") not in path.parents]
    if not runner.has_image:
        paths += ["/var", "/sys", "/run", "/etc/shadow", "/boot"]
    assert given(runner.run(code, *paths)) == [[], [False] * len(paths)]


def test_read_only_places(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    prepare_writable(tmp_path)
    code = """
        import json, os
        refused = []
        for path in ("/x", "/ro/x", "/ro/file", "/dev/x", "/etc/passwd", "/home/x", "/proc/sys/kernel/core_pattern"):
            try:
                open(path, "w").close()
            except OSError:
                refused.append(path)
        print(json.dumps([refused, open("/ro/file").read()]))
    """
    refused, content = given(runner.run(code, mounts=(Mount(tmp_path, "/ro"),)))
    assert len(refused) == 7
    assert content == "old"
    assert (tmp_path / "file").read_text() == "old"


def test_read_only_can_not_be_undone(runner: Runner, tmp_path: Path) -> None:
    code = """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.mount(None, b"/ro", None, 32, None), libc.umount2(b"/ro", 2))
    """
    assert runner.run(code, mounts=(Mount(tmp_path, "/ro"),)).stdout == b"-1 -1\n"


def test_a_writable_mount_is_read_afterwards(runner: Runner, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir(mode=0o700)
    (work / "given").write_text("given")
    prepare_writable(work)
    code = """
        import os
        os.mkdir("/work/closed")
        open("/work/closed/made", "w").write(open("/work/given").read() + " made")
        os.chmod("/work/closed/made", 0)
        os.chmod("/work/closed", 0)
    """
    assert runner.run(code, mounts=(Mount(work, "/work", writable=True),)).exit_code == 0
    assert (work / "closed").stat().st_uid == host_id()[0]
    reclaim(work)
    made = work / "closed" / "made"
    made.chmod(0o600)
    assert made.read_text() == "given made"
    assert made.stat().st_uid == os.geteuid()


def test_a_link_in_a_writable_mount_leads_nowhere(runner: Runner, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o644)
    work = tmp_path / "work"
    work.mkdir()
    (work / "planted").symlink_to(secret)
    prepare_writable(work)
    code = """
        import os, sys
        os.symlink(sys.argv[1], "/work/link")
        for path in ("/work/link", "/work/planted", "/work/../.." + sys.argv[1]):
            try:
                print(open(path).read())
            except OSError:
                pass
    """
    result = runner.run(code, str(secret), mounts=(Mount(work, "/work", writable=True),))
    assert (result.exit_code, result.stdout) == (0, b"")
    reclaim(work)
    assert secret.stat().st_uid == os.geteuid()


def test_a_single_file_is_mounted(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("one")
    (tmp_path / "two").write_text("two")
    code = "import os; print(open('/data/one').read(), os.listdir('/data'))"
    assert runner.run(code, mounts=(Mount(tmp_path / "one", "/data/one"),)).stdout == b"one ['one']\n"


def test_sources_behind_a_closed_folder(runner: Runner, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    (closed / "inner" / "file").write_text("seen")
    closed.chmod(0o700)
    assert runner.run("print(open('/in/file').read())", mounts=(Mount(closed / "inner", "/in"),)).stdout == b"seen\n"


def test_a_unix_socket_can_be_mounted(runner: Runner, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        prepare_writable(path)

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(connection.recv(100) + b" pong")

        thread = threading.Thread(target=answer)
        thread.start()
        code = """
            import socket
            with socket.socket(socket.AF_UNIX) as s:
                s.connect("/run/check")
                s.sendall(b"ping")
                print(s.recv(100).decode())
        """
        result = runner.run(code, mounts=(Mount(path, "/run/check"),))
        thread.join(5)
    assert result.stdout == b"ping pong\n", result


def test_a_device_can_be_mounted(runner: Runner) -> None:
    def read(mount: Mount) -> bytes:
        try:
            return runner.run("print(open('/dev/akarena', 'rb').read(3))", mounts=(mount,)).stdout
        except InfrastructureError as error:  # A sandbox may refuse the mount itself.
            return str(error).encode()

    assert read(Mount(Path("/dev/zero"), "/dev/akarena", device=True)) == b"b'\\x00\\x00\\x00'\n"
    assert b"x00" not in read(Mount(Path("/dev/zero"), "/dev/akarena"))


def test_a_hard_link_leads_nowhere(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    work = tmp_path / "work"
    work.mkdir()
    prepare_writable(work)
    code = """
        import os
        for source in ("/given", "/etc/passwd", "/proc/self/status"):
            try:
                os.link(source, "/work/link")
                print(source)
            except OSError:
                pass
    """
    mounts = (Mount(tmp_path / "secret", "/given"), Mount(work, "/work", writable=True))
    result = runner.run(code, mounts=mounts)
    assert (result.exit_code, result.stdout) == (0, b"")
    reclaim(work)
    assert list(work.iterdir()) == []


def test_no_device_can_be_made(runner: Runner, tmp_path: Path) -> None:
    prepare_writable(tmp_path)
    code = """
        import os, stat
        for folder in ("/work", "/tmp", "/dev/shm"):
            for number in (os.makedev(1, 1), os.makedev(8, 0)):
                try:
                    os.mknod(folder + "/device", 0o666 | stat.S_IFBLK, number)
                    print(folder)
                except OSError:
                    pass
    """
    result = runner.run(code, mounts=(Mount(tmp_path, "/work", writable=True),))
    assert (result.exit_code, result.stdout) == (0, b"")


def test_set_user_id_gives_nothing(runner: Runner, tmp_path: Path) -> None:
    prepare_writable(tmp_path)
    code = """
        import os
        open("/work/program", "w").close()
        os.chmod("/work/program", 0o6755)
        print(os.statvfs("/tmp").f_flag & os.ST_NOSUID != 0, os.statvfs("/home/user").f_flag & os.ST_NOSUID != 0)
        print(next(line for line in open("/proc/self/status") if line.startswith("NoNewPrivs")).split()[1])
    """
    result = runner.run(code, mounts=(Mount(tmp_path, "/work", writable=True),))
    assert result.stdout == b"True True\n1\n", result


def test_a_mount_source_that_is_missing(runner: Runner, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="missing"):
        runner.run("pass", mounts=(Mount(tmp_path / "missing", "/in"),))


def test_the_user_has_a_name_and_a_home(runner: Runner) -> None:
    code = """
        import json, os, pwd
        entry = pwd.getpwuid(os.getuid())
        open(os.path.expanduser("~/file"), "w").close()
        print(json.dumps([entry.pw_name, entry.pw_dir, os.path.expanduser("~")]))
    """
    assert given(runner.run(code)) == ["user", HOME, HOME]
