"""What a process must not be able to reach or do."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import socket
from pathlib import Path

import pytest

from akarena.sandbox.base import End, Mount
from tests.contract.helpers import Runner, given

CALLS = {
    "x86_64": {"mount": 165, "unshare": 272, "ptrace": 101},
    "aarch64": {"mount": 40, "unshare": 97, "ptrace": 117},
}
IOCTL = {"x86_64": 16, "aarch64": 29}[platform.machine()]
NUMBERS = CALLS.get(platform.machine(), {})


def test_there_is_no_network(runner: Runner) -> None:
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
def test_other_address_families_are_refused(runner: Runner, family: int) -> None:
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


def test_host_loopback_is_not_reachable(runner: Runner) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; s = socket.socket(); s.settimeout(2); print(s.connect_ex(('127.0.0.1', {port})) == 0)"
        assert runner.run(code).stdout == b"False\n"


def test_abstract_sockets_of_the_host_are_not_reachable(runner: Runner) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0akarena-{os.getpid()}")
        server.listen()
        code = f"import socket; print(socket.socket(socket.AF_UNIX).connect_ex('\\0akarena-{os.getpid()}') == 0)"
        assert runner.run(code).stdout == b"False\n"


def test_no_capabilities_and_a_filter(runner: Runner) -> None:
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
def test_system_calls_are_refused(runner: Runner, name: str, arguments: str) -> None:
    code = f"""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.syscall({NUMBERS.get(name)}, {arguments}), ctypes.get_errno())
    """
    assert runner.run(code).stdout == b"-1 1\n"


def test_a_new_user_namespace_is_refused_to_clone(runner: Runner) -> None:
    number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
    code = f"import ctypes; print(ctypes.CDLL(None).syscall({number}, 0x10000000 | 17, 0, 0, 0, 0))"
    assert runner.run(code).stdout == b"-1\n"


def test_no_name_is_resolved(runner: Runner) -> None:
    code = """
        import socket
        try:
            print(socket.getaddrinfo("example.com", 443))
        except OSError:
            print("none")
    """
    assert runner.run(code).stdout == b"none\n"


def test_its_own_loopback_works(runner: Runner) -> None:
    """The agent's way to its model service begins there."""
    code = """
        import socket
        with socket.create_server(("127.0.0.1", 0)) as server:
            client = socket.create_connection(server.getsockname(), 2)
            peer, _ = server.accept()
            client.sendall(b"echo")
            print(peer.recv(4))
    """
    assert runner.run(code).stdout == b"b'echo'\n"


def test_the_kernel_is_not_readable_nor_adjustable(runner: Runner) -> None:
    code = """
        for path in ("/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmsg", "/proc/1/mem", "/dev/vda", "/dev/sda"):
            try:
                with open(path, "rb") as file:
                    if file.read(1):
                        print("read", path)
            except OSError:
                pass
        for path in ("/proc/sysrq-trigger", "/proc/sys/vm/drop_caches", "/proc/sys/kernel/hostname", "/proc/1/oom_adj"):
            try:
                with open(path, "w") as file:
                    file.write("h")
                print("written", path)
            except OSError:
                pass
        print("done")
    """
    assert runner.run(code).stdout == b"done\n"


@pytest.mark.parametrize("high", [0, 1 << 32, 0xABCDEF << 40])
def test_nothing_is_typed_into_a_terminal(runner: Runner, high: int) -> None:
    """The kernel looks at the lower half of the request only, so a filter that compares all of it can be passed."""
    code = f"""
        import ctypes, fcntl, os
        libc = ctypes.CDLL(None, use_errno=True)
        master, slave = os.openpty()
        for request in (0x5412, 0x541C):
            libc.syscall(ctypes.c_long({IOCTL}), slave, ctypes.c_ulong(request | {high}), b"x")
            print(ctypes.get_errno(), end=" ")
        print(len(fcntl.ioctl(slave, 0x5413, bytes(8))))
    """
    assert runner.run(code).stdout == b"1 1 8\n"


def test_other_processes_are_invisible(runner: Runner) -> None:
    code = "import json, os; print(json.dumps([int(p) for p in os.listdir('/proc') if p.isdigit()]))"
    pids = given(runner.run(code))
    assert len(pids) <= 2
    assert max(pids) < 10


def test_the_host_can_not_be_signalled(runner: Runner) -> None:
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


def test_init_tells_nothing(runner: Runner, tmp_path: Path) -> None:
    """The command line of the namespace's init shows no host path and no other setting of the sandbox."""
    code = "print(open('/proc/1/cmdline').read().replace(chr(0), ' '))"
    text = runner.run(code, mounts=(Mount(tmp_path, "/in"),), environment={"A": "value-of-a"}).stdout.decode()
    assert "value-of-a" not in text
    assert str(tmp_path) not in text


def test_the_host_name_is_hidden(runner: Runner) -> None:
    assert runner.run("import os; print(os.uname().nodename)").stdout != os.uname().nodename.encode() + b"\n"


def test_threads_and_processes_still_work(runner: Runner) -> None:
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
def test_system_calls_of_another_architecture_kill(runner: Runner) -> None:
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
def test_a_compiler_and_its_threads_work(runner: Runner) -> None:
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
    mounts = () if runner.has_image else (Mount(Path("/usr"), "/usr"),)
    result = runner.run(code, source, mounts=mounts, environment={"PATH": "/usr/bin:/bin"}, processes=64)
    assert result.stdout == b"compiled\n", result


def test_numbers_in_this_file_match_the_kernel() -> None:
    """A typing mistake above would make the refusals meaningless: getpid-like proof that syscall() works here."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall({"x86_64": 39, "aarch64": 172}[platform.machine()]) == os.getpid()
