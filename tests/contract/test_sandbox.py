"""What every registered sandbox must do and must prevent."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from akarena.sandbox.base import HOME, Assurance, Command, End, Limits, Mount, Sandbox, ScratchMount
from akarena.sandbox.ownership import host_id, prepare_writable, reclaim
from akarena.sandbox.preflight import preflight
from akarena.sandbox.runtime import find_bubblewrap, interpreter

MIB = 1 << 20
CALLS = {
    "x86_64": {"mount": 165, "unshare": 272, "ptrace": 101},
    "aarch64": {"mount": 40, "unshare": 97, "ptrace": 117},
}
NUMBERS = CALLS.get(platform.machine(), {})


def given(result: Any) -> Any:
    """Parse what the code printed, and show its messages when it failed."""
    assert result.end is End.EXITED, result
    assert result.exit_code == 0, result
    return json.loads(result.stdout)


# --- results


@pytest.mark.parametrize("code", [0, 1, 7, 127])
def test_exit_code(runner: Any, code: int) -> None:
    result = runner.run(f"raise SystemExit({code})")
    assert (result.end, result.exit_code, result.signal) == (End.EXITED, code, None)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_signal(runner: Any, number: signal.Signals) -> None:
    result = runner.run(f"import os; os.kill(os.getpid(), {number.value})")
    assert (result.end, result.exit_code, result.signal) == (End.SIGNALLED, None, number)


def test_program_that_does_not_exist(sandbox: Sandbox) -> None:
    limits = Limits(5, 64 * MIB, 8, MIB, MIB, MIB)
    result = sandbox.run(Command(("/no/such/program",), {}, (), limits))
    assert result.end is End.FAILED_TO_START
    assert "/no/such/program" in result.detail


def test_output_is_raw_bytes(runner: Any) -> None:
    result = runner.run(r"import os; os.write(1, b'\xff\x00\r\nout'); os.write(2, b'\xfe\x00err')")
    assert result.stdout == b"\xff\x00\r\nout"
    assert result.stderr == b"\xfe\x00err"


def test_a_line_of_five_megabytes(runner: Any) -> None:
    result = runner.run("import sys; sys.stdout.write('x' * 5_000_000)")
    assert result.stdout == b"x" * 5_000_000
    assert result.dropped_bytes == 0


def test_output_is_bounded_and_keeps_head_and_tail(runner: Any) -> None:
    result = runner.run("print('first'); print('x' * 3_000_000); print('last')", output_bytes=10_000)
    assert result.stdout.startswith(b"first\n")
    assert result.stdout.endswith(b"last\n")
    assert len(result.stdout) < 10_100
    assert result.dropped_bytes == 3_000_000 + len("first\n\nlast\n") - 10_000


def test_standard_input_is_empty(runner: Any) -> None:
    assert runner.run("import sys; print(repr(sys.stdin.read()))").stdout == b"''\n"


def test_environment_is_only_what_was_given(runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKARENA_TEST_SECRET", "secret")
    code = "import json; print(json.dumps([open('/proc/%s/environ' % p).read() for p in ('self', '1')]))"
    own, init = given(runner.run(code, environment={"A": "1 = 2", "B": ""}))
    assert dict(entry.split("=", 1) for entry in own.split("\0") if entry) == {
        "A": "1 = 2", "B": "", "HOME": HOME, "PWD": "/"
    }  # fmt: skip
    assert "secret" not in init


def test_only_the_intended_descriptors_are_open(runner: Any) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        code = "import json, os; print(json.dumps(sorted(int(f) for f in os.listdir('/proc/self/fd'))))"
        # The listing itself holds the last one.
        assert given(runner.run(code)) == [0, 1, 2, 3]
    finally:
        os.close(reader)
        os.close(writer)


# --- death


def test_timeout_kills_the_whole_tree(runner: Any, tmp_path: Path) -> None:
    prepare_writable(tmp_path)
    code = """
        import os, time
        if os.fork() == 0:
            if os.fork() == 0:
                while True:
                    with open("/out/alive", "a") as file:
                        file.write("x")
                    time.sleep(0.01)
            os._exit(0)
        print("started", flush=True)
        time.sleep(60)
    """
    started = time.monotonic()
    result = runner.run(code, mounts=(Mount(tmp_path, "/out", writable=True),), wall_seconds=0.7)
    assert result.end is End.TIMEOUT
    assert result.exit_code is None
    assert result.stdout == b"started\n"
    assert time.monotonic() - started < 5
    size = (tmp_path / "alive").stat().st_size
    time.sleep(0.1)
    assert (tmp_path / "alive").stat().st_size == size > 0


def test_a_daemon_does_not_outlive_its_parent(runner: Any, tmp_path: Path) -> None:
    prepare_writable(tmp_path)
    code = """
        import os, signal, time
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.write(writer, b"x")
                while True:
                    with open("/out/alive", "a") as file:
                        file.write("x")
                    time.sleep(0.01)
            os._exit(0)
        os.read(reader, 1)
        time.sleep(0.1)
    """
    result = runner.run(code, mounts=(Mount(tmp_path, "/out", writable=True),))
    assert result.end is End.EXITED
    assert result.wall_seconds < 5
    size = (tmp_path / "alive").stat().st_size
    time.sleep(0.1)
    assert (tmp_path / "alive").stat().st_size == size > 0


def test_cancel_stops(runner: Any) -> None:
    cancel = threading.Event()
    timer = threading.Timer(0.5, cancel.set)
    timer.start()
    result = runner.run("import time; print('on', flush=True); time.sleep(60)", cancel=cancel)
    timer.join()
    assert result.end is End.STOPPED
    assert result.stdout == b"on\n"


# --- limits


def test_fork_bomb_is_bounded(runner: Any) -> None:
    code = """
        import os, time
        children = 0
        try:
            while children < 500:
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
                children += 1
        except OSError:
            pass
        print(children, flush=True)
    """
    result = runner.run(code, processes=20)
    assert result.end in {End.EXITED, End.TOO_MANY_PROCESSES}
    if result.end is End.EXITED:
        assert 10 <= int(result.stdout) <= 20


def test_memory_bomb_is_stopped(runner: Any) -> None:
    code = """
        import time
        kept = []
        for _ in range(40):
            kept.append(b"x" * (16 << 20))
            time.sleep(0.02)
        time.sleep(5)
    """
    result = runner.run(code, memory_bytes=128 * MIB)
    assert result.end is End.OUT_OF_MEMORY
    assert result.exit_code is None


def test_memory_of_children_counts_together(runner: Any) -> None:
    code = """
        import os, time
        for _ in range(5):
            if os.fork() == 0:
                kept = b"x" * (40 << 20)
                time.sleep(10)
                os._exit(0)
        time.sleep(10)
    """
    assert runner.run(code, memory_bytes=128 * MIB).end is End.OUT_OF_MEMORY


def test_unmapped_memory_files_count(runner: Any) -> None:
    code = """
        import os, time
        kept = [os.memfd_create("m") for _ in range(6)]
        for fd in kept:
            for _ in range(32):
                os.write(fd, bytes(1 << 20))
        time.sleep(10)
    """
    assert runner.run(code, memory_bytes=128 * MIB).end is End.OUT_OF_MEMORY


def test_a_big_file_is_refused(runner: Any) -> None:
    code = """
        import os
        with open("/tmp/big", "wb") as file:
            file.write(bytes(1 << 20))
            file.flush()
            try:
                file.write(bytes(8 << 20))
                file.flush()
            except OSError as error:
                print(error.errno, flush=True)
            os._exit(0)
    """
    result = runner.run(code, file_bytes=2 * MIB)
    assert result.stdout == b"27\n"


def test_a_file_limit_that_kills_is_named(runner: Any) -> None:
    code = """
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        open("/tmp/big", "wb", buffering=0).write(bytes(8 << 20))
        open("/tmp/big", "ab", buffering=0).write(bytes(8 << 20))
    """
    assert runner.run(code, file_bytes=2 * MIB).end is End.DISK_FULL


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm", HOME])
def test_tmpfs_is_sized(runner: Any, folder: str) -> None:
    code = """
        import sys
        try:
            for n in range(64):
                with open(f"{sys.argv[1]}/{n}", "wb") as file:
                    file.write(bytes(1 << 20))
        except OSError as error:
            print(n, error.errno)
    """
    count, number = runner.run(code, folder, tmp_bytes=4 * MIB).stdout.split()
    assert int(number) == 28
    assert 2 <= int(count) <= 4


# --- files


def test_nothing_of_the_host_is_visible(runner: Any, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    code = "import json, os, sys; print(json.dumps([os.listdir('/tmp'), [os.path.exists(p) for p in sys.argv[1:]]]))"
    paths = (
        str(tmp_path / "secret"),
        "/var",
        "/sys",
        "/run",
        "/etc/shadow",
        "/etc/ssh",
        "/boot",
        "/var/run/docker.sock",
    )
    assert given(runner.run(code, *paths)) == [[], [False] * len(paths)]


def test_read_only_places(runner: Any, tmp_path: Path) -> None:
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


def test_read_only_can_not_be_undone(runner: Any, tmp_path: Path) -> None:
    code = """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.mount(None, b"/ro", None, 32, None), libc.umount2(b"/ro", 2))
    """
    assert runner.run(code, mounts=(Mount(tmp_path, "/ro"),)).stdout == b"-1 -1\n"


def test_a_writable_mount_is_read_afterwards(runner: Any, tmp_path: Path) -> None:
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


def test_a_link_in_a_writable_mount_leads_nowhere(runner: Any, tmp_path: Path) -> None:
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


def test_a_single_file_is_mounted(runner: Any, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("one")
    (tmp_path / "two").write_text("two")
    code = "import os; print(open('/data/one').read(), os.listdir('/data'))"
    assert runner.run(code, mounts=(Mount(tmp_path / "one", "/data/one"),)).stdout == b"one ['one']\n"


def test_sources_behind_a_closed_folder(runner: Any, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    (closed / "inner" / "file").write_text("seen")
    closed.chmod(0o700)
    assert runner.run("print(open('/in/file').read())", mounts=(Mount(closed / "inner", "/in"),)).stdout == b"seen\n"


def test_a_unix_socket_can_be_mounted(runner: Any, tmp_path: Path) -> None:
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


def test_a_device_can_be_mounted(runner: Any) -> None:
    code = "print(open('/dev/akarena', 'rb').read(3))"
    with_device = runner.run(code, mounts=(Mount(Path("/dev/zero"), "/dev/akarena", device=True),))
    assert with_device.stdout == b"b'\\x00\\x00\\x00'\n"
    assert runner.run(code, mounts=(Mount(Path("/dev/zero"), "/dev/akarena"),)).exit_code != 0


# --- what must not be possible


def test_there_is_no_network(runner: Any) -> None:
    code = """
        import json, socket
        refused = []
        targets = ((2, ("1.1.1.1", 53)), (2, ("169.254.169.254", 80)), (10, ("2606:4700::1111", 53)))
        for family, address in targets:
            with socket.socket(family) as s:
                s.settimeout(2)
                refused.append(s.connect_ex(address) != 0)
        print(json.dumps([[n for _, n in socket.if_nameindex()], refused]))
    """
    assert given(runner.run(code)) == [["lo"], [True, True, True]]


@pytest.mark.parametrize("family", [16 + 24, 38, 17, 43])
def test_other_address_families_are_refused(runner: Any, family: int) -> None:
    """AF_VSOCK reaches the hypervisor from any network namespace; the others widen the attack surface."""
    code = f"""
        import socket
        try:
            socket.socket({family}, socket.SOCK_STREAM if {family} != 38 else socket.SOCK_SEQPACKET)
            print("open")
        except OSError:
            print("refused")
    """
    assert runner.run(code).stdout == b"refused\n"


def test_host_loopback_is_not_reachable(runner: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; s = socket.socket(); s.settimeout(2); print(s.connect_ex(('127.0.0.1', {port})) == 0)"
        assert runner.run(code).stdout == b"False\n"


def test_abstract_sockets_of_the_host_are_not_reachable(runner: Any) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0akarena-{os.getpid()}")
        server.listen()
        code = f"import socket; print(socket.socket(socket.AF_UNIX).connect_ex('\\0akarena-{os.getpid()}') == 0)"
        assert runner.run(code).stdout == b"False\n"


def test_no_capabilities_and_a_filter(runner: Any) -> None:
    code = "import json; print(json.dumps(dict(l.split(':', 1) for l in open('/proc/self/status') if ':' in l)))"
    status = {key: value.strip() for key, value in given(runner.run(code)).items()}
    assert [int(status[key], 16) for key in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == [0, 0, 0, 0]
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


@pytest.mark.skipif(not NUMBERS, reason="system-call numbers are listed for x86-64 and aarch64")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("unshare", "0x10000000"),
        ("unshare", "0x20000"),
        ("mount", "b'none', b'/tmp', b'tmpfs', 0, 0"),
        ("ptrace", "0, 0, 0, 0"),
    ],
)
def test_system_calls_are_refused(runner: Any, name: str, arguments: str) -> None:
    code = f"""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.syscall({NUMBERS.get(name)}, {arguments}), ctypes.get_errno())
    """
    assert runner.run(code).stdout == b"-1 1\n"


def test_a_new_user_namespace_is_refused_to_clone(runner: Any) -> None:
    number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
    code = f"import ctypes; print(ctypes.CDLL(None).syscall({number}, 0x10000000 | 17, 0, 0, 0, 0))"
    assert runner.run(code).stdout == b"-1\n"


def test_other_processes_are_invisible(runner: Any) -> None:
    code = "import json, os; print(json.dumps([int(p) for p in os.listdir('/proc') if p.isdigit()]))"
    pids = given(runner.run(code))
    assert len(pids) <= 2
    assert max(pids) < 10


def test_the_host_can_not_be_signalled(runner: Any) -> None:
    code = f"""
        import os
        try:
            os.kill({os.getpid()}, 0)
            print("reached")
        except ProcessLookupError:
            print("none")
    """
    assert os.getpid() > 10
    assert runner.run(code).stdout == b"none\n"


def test_init_tells_nothing(runner: Any, tmp_path: Path) -> None:
    """The command line of the namespace's init shows no host path and no other setting of the sandbox."""
    code = "print(open('/proc/1/cmdline').read().replace(chr(0), ' '))"
    text = runner.run(code, mounts=(Mount(tmp_path, "/in"),), environment={"A": "value-of-a"}).stdout.decode()
    assert "value-of-a" not in text
    assert str(tmp_path) not in text


def test_the_host_name_is_hidden(runner: Any) -> None:
    assert runner.run("import os; print(os.uname().nodename)").stdout != os.uname().nodename.encode() + b"\n"


def test_threads_and_processes_still_work(runner: Any) -> None:
    """The filter refuses clone3, so the C library must fall back."""
    code = """
        import subprocess, sys, threading
        thread = threading.Thread(target=print, args=("thread",))
        thread.start(); thread.join()
        sys.stdout.flush()
        subprocess.run([sys.executable, "-I", "-S", "-c", "print('child')"], check=True)
    """
    assert runner.run(code).stdout == b"thread\nchild\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has a second table of system calls")
def test_system_calls_of_another_architecture_kill(runner: Any) -> None:
    """`int 0x80` takes 32-bit numbers, which the filter's table does not describe."""
    code = """
        import ctypes, mmap
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid); int 0x80; ret
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
        print("it ran")
    """
    result = runner.run(code)
    assert b"it ran" not in result.stdout
    assert result.end is End.SIGNALLED


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")
def test_a_compiler_and_its_threads_work(runner: Any) -> None:
    source = """
#include <cstdio>
#include <thread>
int main() { std::thread t([] { std::puts("compiled"); }); t.join(); }
"""
    code = """
        import subprocess, sys
        open("/tmp/a.cpp", "w").write(sys.argv[1])
        subprocess.run(["/usr/bin/g++", "-O1", "-pthread", "/tmp/a.cpp", "-o", "/tmp/a"], check=True)
        subprocess.run(["/tmp/a"], check=True)
    """
    mounts = (Mount(Path("/usr"), "/usr"),)
    result = runner.run(code, source, mounts=mounts, environment={"PATH": "/usr/bin:/bin"}, processes=64)
    assert result.stdout == b"compiled\n", result


# --- judgements


def test_spawn_talks_over_a_socketpair(runner: Any) -> None:
    worker = runner.command("import socket; s = socket.socket(fileno=3); s.sendall(s.recv(10)[::-1])")
    main = """
        with control.spawn("worker") as s:
            s.sendall(b"abc")
            print(s.recv(10), s.recv(10))
        ended = control.wait("worker", 5)
        print(ended.end, ended.exit_code)
    """
    assert runner.judge(main, {"worker": worker}).stdout == b"b'cba' b''\nexited 0\n"


def test_spawned_process_has_only_its_descriptors(runner: Any) -> None:
    worker = runner.command("import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd')))")
    main = """
        import os
        extra = os.open("/dev/zero", os.O_RDONLY)
        with control.spawn("worker", [extra, extra]):
            print(control.wait("worker", 5).stdout.decode(), end="")
    """
    assert runner.judge(main, {"worker": worker}).stdout == b"[0, 1, 2, 3, 4, 5, 6]\n"


def test_kill_and_respawn(runner: Any) -> None:
    worker = runner.command("import socket, time; socket.socket(fileno=3).sendall(b'up'); time.sleep(60)")
    main = """
        for _ in range(3):
            with control.spawn("worker") as s:
                s.recv(2)
                assert control.wait("worker", 0) is None
                print(control.kill("worker").end, s.recv(1), flush=True)
        print(control.kill("worker").end)
    """
    assert runner.judge(main, {"worker": worker}).stdout == b"stopped b''\n" * 3 + b"stopped\n"


def test_death_of_a_worker_is_seen(runner: Any) -> None:
    worker = runner.command("import os, sys; sys.stderr.write('last words'); sys.stderr.flush(); os.abort()")
    main = """
        control.spawn("worker")
        ended = control.wait("worker", 10)
        print(ended.end, ended.signal, ended.stderr.decode(), control.kill("worker").end)
    """
    assert runner.judge(main, {"worker": worker}).stdout == b"signalled 6 last words signalled\n"


def test_limits_hold_for_a_worker(runner: Any) -> None:
    slow = runner.command("import time; time.sleep(60)", wall_seconds=0.3)
    fat = runner.command("import time; x = b'x' * (200 << 20); time.sleep(60)", memory_bytes=64 * MIB)
    # Either the fork fails, which ends this program, or the tree is killed.
    wide = runner.command(
        "import os, time\nfor _ in range(30):\n    os.fork() or time.sleep(60)\ntime.sleep(5)", processes=10
    )
    main = """
        for name in ("slow", "fat", "wide"):
            control.spawn(name)
        slow, fat, wide = (control.wait(name, 10) for name in ("slow", "fat", "wide"))
        print(slow.end, fat.end, wide.end == "too_many_processes" or wide.exit_code == 1)
    """
    result = runner.judge(main, {"slow": slow, "fat": fat, "wide": wide})
    assert result.stdout == b"timeout out_of_memory True\n"


def test_bad_requests_are_refused(runner: Any) -> None:
    worker = runner.command("import time; time.sleep(60)")
    main = """
        from akarena.sandbox.control import ControlError
        control.spawn("worker")
        for action in (lambda: control.spawn("worker"), lambda: control.spawn("nobody"), lambda: control.spawn("judge"),
                       lambda: control.kill("nobody"), lambda: control.wait("judge", 0)):
            try:
                action()
            except ControlError as error:
                print("refused")
    """
    assert runner.judge(main, {"worker": worker}).stdout == b"refused\n" * 5


def test_a_program_that_can_not_start_is_seen(runner: Any) -> None:
    worker = Command(("/no/such",), {}, (), Limits(5, MIB, 4, MIB, MIB, MIB))
    result = runner.judge("control.spawn('worker'); print(control.wait('worker', 5).end)", {"worker": worker})
    assert result.stdout == b"failed_to_start\n"


def test_scratch_is_handed_on_and_gone(runner: Any) -> None:
    build = runner.command(
        "open('/out/library', 'w').write('built')", scratch=(ScratchMount("candidate", "/out", writable=True),)
    )
    worker = runner.command(
        """
        print(open("/candidate/library").read())
        try:
            open("/candidate/more", "w")
        except OSError:
            print("read-only")
        """,
        scratch=(ScratchMount("candidate", "/candidate"),),
    )
    other = runner.command("import os; print(os.path.exists('/candidate'), os.path.exists('/scratch'))")
    main = """
        for name in ("build", "worker", "other"):
            control.spawn(name)
            ended = control.wait(name, 10)
            print(ended.stdout.decode() + ended.stderr.decode(), end="")
    """
    processes = {"build": build, "worker": worker, "other": other}
    assert runner.judge(main, processes).stdout == b"built\nread-only\nFalse False\n"
    again = runner.judge("control.spawn('worker'); print(control.wait('worker', 10).exit_code)", {"worker": worker})
    assert again.stdout == b"1\n"


def test_workers_share_nothing(runner: Any) -> None:
    writer = runner.command("""
        import os, socket, time
        for folder in ("/tmp", "/dev/shm", os.environ["HOME"]):
            open(folder + "/mark", "w").close()
        s = socket.socket(socket.AF_UNIX)
        s.bind("\\0mark")
        s.listen()
        socket.socket(fileno=3).sendall(b"x")
        time.sleep(60)
    """)
    reader = runner.command("""
        import os, socket
        print(*(os.path.exists(f + "/mark") for f in ("/tmp", "/dev/shm", os.environ["HOME"])))
        print(socket.socket(socket.AF_UNIX).connect_ex("\\0mark") == 0)
        print(len([p for p in os.listdir("/proc") if p.isdigit()]) <= 2)
        for kind in ("pid", "mnt", "ipc", "net", "user"):
            print(kind, os.readlink(f"/proc/self/ns/{kind}"))
    """)
    main = """
        import os
        with control.spawn("writer") as s:
            s.recv(1)
            control.spawn("reader")
            print(control.wait("reader", 10).stdout.decode(), end="")
            for kind in ("pid", "mnt", "ipc", "net", "user"):
                print("judge", kind, os.readlink(f"/proc/self/ns/{kind}"))
    """
    lines = runner.judge(main, {"writer": writer, "reader": reader}).stdout.decode().splitlines()
    assert lines[:3] == ["False False False", "False", "True"]
    spaces = dict(line.split() for line in lines[3:8])
    judge_spaces = dict(line.removeprefix("judge ").split() for line in lines[8:])
    assert {kind for kind, space in spaces.items() if judge_spaces[kind] == space} == {"user"}


def test_end_of_the_main_process_kills_the_others(runner: Any, tmp_path: Path) -> None:
    prepare_writable(tmp_path)
    worker = runner.command(
        """
        import os, socket, time
        os.setsid() if os.getpid() != os.getsid(0) else None
        while True:
            with open("/out/alive", "a") as file:
                file.write("x")
            socket.socket(fileno=os.dup(3)).send(b"x")
            time.sleep(0.01)
        """,
        mounts=(Mount(tmp_path, "/out", writable=True),),
    )
    result = runner.judge("s = control.spawn('worker'); s.recv(1); raise SystemExit(3)", {"worker": worker})
    assert result.exit_code == 3
    size = (tmp_path / "alive").stat().st_size
    time.sleep(0.1)
    assert (tmp_path / "alive").stat().st_size == size > 0


def test_a_memory_file_crosses_both_ways(runner: Any) -> None:
    worker = runner.command("""
        import mmap, os, socket
        s = socket.socket(fileno=3)
        _, fds, _, _ = socket.recv_fds(s, 1, 1)
        shared = mmap.mmap(fds[0], 4096)
        shared[:5] = shared[:5].upper()
        back = os.memfd_create("back")
        os.write(back, b"from the worker")
        socket.send_fds(s, [b"x"], [back])
        s.recv(1)
    """)
    main = """
        import mmap, os, socket
        fd = os.memfd_create("arena")
        os.ftruncate(fd, 4096)
        shared = mmap.mmap(fd, 4096)
        shared[:5] = b"hello"
        with control.spawn("worker") as s:
            socket.send_fds(s, [b"x"], [fd])
            _, fds, _, _ = socket.recv_fds(s, 1, 1)
            print(shared[:5], os.pread(fds[0], 100, 0))
    """
    assert runner.judge(main, {"worker": worker}).stdout == b"b'HELLO' b'from the worker'\n"


def test_a_worker_can_not_fill_the_pool_of_the_judge(runner: Any) -> None:
    bomb = runner.command(
        """
        import os, socket, time
        s = socket.socket(fileno=3)
        while True:
            try:
                if os.fork() == 0:
                    time.sleep(60)
            except OSError:
                s.send(b"x")
                time.sleep(60)
        """,
        processes=50,
    )
    main = """
        import threading
        with control.spawn("bomb") as s:
            s.recv(1)
            threads = [threading.Thread(target=lambda: None) for _ in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            print("fine")
    """
    assert runner.judge(main, {"bomb": bomb}).stdout == b"fine\n"


def test_spawning_is_quick(runner: Any, capsys: pytest.CaptureFixture[str]) -> None:
    worker = Command((str(interpreter()), "--version"), {}, runner.command("").mounts, runner.command("").limits)
    main = """
        import time
        def once():
            start = time.perf_counter()
            control.spawn("worker")
            assert control.wait("worker", 10).exit_code == 0
            return 1000 * (time.perf_counter() - start)
        print(sorted(once() for _ in range(10))[5])
    """
    median_ms = float(runner.judge(main, {"worker": worker}).stdout)
    with capsys.disabled():
        print(f"\n[{runner.sandbox.name}: median of a whole spawn {median_ms:.1f} ms]")
    assert median_ms < 1000


# --- callers


def test_the_sandbox_dies_with_its_caller(runner: Any, tmp_path: Path) -> None:
    prepare_writable(tmp_path)
    code = """
        import time
        while True:
            with open("/out/alive", "a") as file:
                file.write("x")
            time.sleep(0.01)
    """
    command = runner.command(code)
    script = f"""
import os
from pathlib import Path
from akarena import sandbox
from akarena.sandbox.base import *
from akarena.sandbox.runtime import interpreter_mounts
mounts = (*interpreter_mounts(), Mount(Path({str(tmp_path)!r}), "/out", writable=True))
sandbox.get({runner.sandbox.name!r}).run(Command({command.argv!r}, {{}}, mounts, {command.limits!r}))
"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2]) as caller:
        end = time.monotonic() + 10
        while not (tmp_path / "alive").exists() and time.monotonic() < end:
            time.sleep(0.02)
        caller.kill()
    time.sleep(0.5)
    size = (tmp_path / "alive").stat().st_size
    time.sleep(0.1)
    assert (tmp_path / "alive").stat().st_size == size > 0


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests already run as an ordinary user")
def test_an_ordinary_user_can_call_it(sandbox: Sandbox) -> None:
    """The same as another user, in a mount namespace where that user can reach this interpreter."""
    root = Path(__file__).parents[2]
    script = f"""
import os, sys
sys.path[:0] = {[str(root), *sys.path]!r}
from akarena import sandbox
from akarena.sandbox.preflight import preflight
print(os.geteuid(), [check for check in preflight(sandbox.get({sandbox.name!r})) if not check.ok])
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
    command = [str(find_bubblewrap()[0]), "--dev-bind", "/", "/", *opened, "--perms", "1777", "--tmpfs", "/tmp"]
    if root.is_relative_to("/tmp"):
        for folder in reversed(root.relative_to("/tmp").parents[:-1]):
            command += ["--perms", "0755", "--dir", f"/tmp/{folder}"]
        command += ["--ro-bind", str(root), str(root)]
    command.append("--")
    python = str(interpreter())
    command += [python, "-I", "-S", "-c", become, "1234", "", python, "-I", "-S", "-B", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env={"HOME": "/nowhere"}, timeout=60)
    assert (done.stdout, done.stderr) == ("1234 []\n", "")


def test_host_user_is_not_the_callers_root(runner: Any, tmp_path: Path) -> None:
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


def test_numbers_in_this_file_match_the_kernel() -> None:
    """A typing mistake above would make the refusals meaningless: getpid-like proof that syscall() works here."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall({"x86_64": 39, "aarch64": 172}[platform.machine()]) == os.getpid()
