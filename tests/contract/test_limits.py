"""What a process tree may use."""

from __future__ import annotations

import pytest

from akarena.sandbox.base import HOME, End
from tests.contract.helpers import MIB, Runner


def test_fork_bomb_is_bounded(runner: Runner) -> None:
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


def test_memory_bomb_is_stopped(runner: Runner) -> None:
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


def test_memory_of_children_counts_together(runner: Runner) -> None:
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


def test_unmapped_memory_files_count(runner: Runner) -> None:
    code = """
        import os, time
        kept = [os.memfd_create("m") for _ in range(6)]
        for fd in kept:
            for _ in range(32):
                os.write(fd, bytes(1 << 20))
        time.sleep(10)
    """
    assert runner.run(code, memory_bytes=128 * MIB).end is End.OUT_OF_MEMORY


def test_a_big_file_is_refused(runner: Runner) -> None:
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


def test_a_file_limit_that_kills_is_named(runner: Runner) -> None:
    code = """
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        open("/tmp/big", "wb", buffering=0).write(bytes(8 << 20))
        open("/tmp/big", "ab", buffering=0).write(bytes(8 << 20))
    """
    assert runner.run(code, file_bytes=2 * MIB).end is End.DISK_FULL


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm", HOME])
def test_tmpfs_is_sized(runner: Runner, folder: str) -> None:
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
