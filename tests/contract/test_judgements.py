"""Several processes under one that decides."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from akarena.sandbox.base import Command, End, Limits, Mount, ScratchMount
from akarena.sandbox.ownership import prepare_writable
from tests.contract.helpers import MIB, Runner


def test_spawn_talks_over_a_socketpair(runner: Runner) -> None:
    worker = runner.command("import socket; s = socket.socket(fileno=3); s.sendall(s.recv(10)[::-1])")
    main = """
        with control.spawn("worker") as s:
            s.sendall(b"abc")
            print(s.recv(10), s.recv(10))
        ended = control.wait("worker", 5)
        print(ended.end, ended.exit_code)
    """
    assert runner.judge(main, {"worker": worker}).stdout == b"b'cba' b''\nexited 0\n"


def test_spawned_process_has_only_its_descriptors(runner: Runner) -> None:
    worker = runner.command("import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd')))")
    main = """
        import os
        extra = os.open("/dev/zero", os.O_RDONLY)
        with control.spawn("worker", [extra, extra]):
            print(control.wait("worker", 5).stdout.decode(), end="")
    """
    assert runner.judge(main, {"worker": worker}).stdout == b"[0, 1, 2, 3, 4, 5, 6]\n"


def test_kill_and_respawn(runner: Runner) -> None:
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


def test_death_of_a_worker_is_seen(runner: Runner) -> None:
    worker = runner.command("import os, sys; sys.stderr.write('last words'); sys.stderr.flush(); os.abort()")
    main = """
        control.spawn("worker")
        ended = control.wait("worker", 10)
        print(ended.end, ended.signal, ended.stderr.decode(), control.kill("worker").end)
    """
    assert runner.judge(main, {"worker": worker}).stdout == b"signalled 6 last words signalled\n"


def test_limits_hold_for_a_worker(runner: Runner) -> None:
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


def test_bad_requests_are_refused(runner: Runner) -> None:
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


def test_a_program_that_can_not_start_is_seen(runner: Runner) -> None:
    worker = Command(("/no/such",), {}, (), Limits(5, MIB, 4, MIB, MIB, MIB))
    result = runner.judge("control.spawn('worker'); print(control.wait('worker', 5).end)", {"worker": worker})
    assert result.stdout == b"failed_to_start\n"


def test_scratch_is_handed_on_and_gone(runner: Runner) -> None:
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


def test_workers_share_nothing(runner: Runner) -> None:
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


def test_end_of_the_main_process_kills_the_others(runner: Runner, tmp_path: Path) -> None:
    prepare_writable(tmp_path)
    worker = runner.command(
        """
        import os, socket, time
        if os.fork() == 0:
            os.setsid()
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


def test_a_memory_file_crosses_both_ways(runner: Runner) -> None:
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


def test_cancel_stops_everything(runner: Runner, tmp_path: Path) -> None:
    prepare_writable(tmp_path)
    worker = runner.command(
        """
        import time
        while True:
            with open("/out/alive", "a") as file:
                file.write("x")
            time.sleep(0.01)
        """,
        mounts=(Mount(tmp_path, "/out", writable=True),),
    )
    cancel = threading.Event()
    timer = threading.Timer(2.0, cancel.set)
    timer.start()
    started = time.monotonic()
    result = runner.judge("control.spawn('worker'); import time; time.sleep(60)", {"worker": worker}, cancel=cancel)
    timer.join()
    assert result.end is End.STOPPED
    assert time.monotonic() - started < 10
    size = (tmp_path / "alive").stat().st_size
    time.sleep(0.1)
    assert (tmp_path / "alive").stat().st_size == size > 0


def test_as_many_descriptors_as_are_promised(runner: Runner) -> None:
    worker = runner.command("import os; print(sum(os.read(fd, 1) == b'x' for fd in range(4, 20)))")
    main = """
        import os
        from akarena.sandbox.control import MAX_EXTRA_FDS
        fds = []
        for _ in range(MAX_EXTRA_FDS):
            fds.append(os.memfd_create("m"))
            os.write(fds[-1], b"x")
            os.lseek(fds[-1], 0, os.SEEK_SET)
        with control.spawn("worker", fds):
            print(control.wait("worker", 10).stdout.decode(), end="")
    """
    assert runner.judge(main, {"worker": worker}).stdout == b"16\n"


def test_a_judge_that_closes_its_control_goes_on(runner: Runner) -> None:
    result = runner.judge("control.close(); import time; time.sleep(0.3); print('on')", {})
    assert (result.exit_code, result.stdout) == (0, b"on\n")


def test_a_worker_can_not_fill_the_pool_of_the_judge(runner: Runner) -> None:
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


def test_a_worker_can_not_use_up_the_descriptors_in_flight_of_the_judge(runner: Runner) -> None:
    hog = runner.command(
        """
        import array, socket, time
        s = socket.socket(fileno=3)
        many, pairs, sent = array.array("i", [0] * 200), [], 0
        try:
            while True:
                pairs.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
                try:
                    while True:
                        pairs[-1][0].sendmsg([b"x"], [(1, socket.SCM_RIGHTS, many)], socket.MSG_DONTWAIT)
                        sent += len(many)
                except BlockingIOError:
                    pass
        except OSError as error:
            s.sendall(f"{sent} {error.errno}".encode())
        time.sleep(60)
        """
    )
    other = runner.command("import os; print(len(os.read(4, 1)))")
    main = """
        import os
        with control.spawn("hog") as s:
            sent, error = map(int, s.recv(100).split())
            print(sent >= 1000, error)
            with control.spawn("other", [os.open("/dev/zero", os.O_RDONLY)]):
                print(control.wait("other", 10).stdout.decode(), end="")
    """
    result = runner.judge(main, {"hog": hog, "other": other})
    # 109 says that too many are in flight.
    assert result.stdout == b"True 109\n1\n", result


def test_spawning_is_quick(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    worker = replace(runner.command(""), argv=(runner.python.path, "--version"))
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
    assert median_ms < 2000
