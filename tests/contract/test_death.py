"""When a process tree ends, all of it ends."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from akarena.sandbox.base import End, Mount
from akarena.sandbox.ownership import prepare_writable
from tests.contract.helpers import Runner


def test_timeout_kills_the_whole_tree(runner: Runner, tmp_path: Path) -> None:
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


def test_a_daemon_does_not_outlive_its_parent(runner: Runner, tmp_path: Path) -> None:
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


def test_cancel_stops(runner: Runner) -> None:
    cancel = threading.Event()
    timer = threading.Timer(0.5, cancel.set)
    timer.start()
    result = runner.run("import time; print('on', flush=True); time.sleep(60)", cancel=cancel)
    timer.join()
    assert result.end is End.STOPPED
    assert result.stdout == b"on\n"
