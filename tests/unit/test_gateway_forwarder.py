"""The forwarder: bytes between a loopback port and a unix socket, and the agent as its child."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from akarena.gateway import forwarder

FILE = forwarder.__file__


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Reverser:
    """A service on a unix socket that answers only once the sender has ended: with the same bytes, and their count."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        self._socket.listen(200)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            data = bytearray()
            while piece := connection.recv(1 << 20):
                data += piece
            connection.sendall(bytes(data) + b"|%d" % len(data))

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Reverser]:
    reverser = Reverser(tmp_path / "s")
    yield reverser
    reverser.close()


def start(port: int, path: Path, *argv: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", FILE, str(port), str(path), *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin"},
    )


def finish(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    output, errors = process.communicate(timeout=30)
    return process.returncode, output, errors


def exchange(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:

        def send() -> None:
            with suppress(OSError):
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        received = bytearray()
        while piece := connection.recv(1 << 20):
            received += piece
        sender.join()
    return bytes(received)


@pytest.fixture
def port(service: Reverser) -> Iterator[int]:
    """A running forwarder."""
    number = free_port()
    process = start(number, service.path, "sh", "-c", "echo up; exec sleep 60")
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n", "the port is open before the program starts"
    yield number
    process.terminate()
    assert finish(process)[0] == 128 + signal.SIGTERM


def test_half_close(port: int) -> None:
    assert exchange(port, b"hello") == b"hello|5"


def test_large_streams(port: int) -> None:
    data = os.urandom(1 << 20) * 24
    assert exchange(port, data) == data + b"|%d" % len(data)


def test_a_hundred_connections_at_once(port: int) -> None:
    barrier = threading.Barrier(100)

    def one(number: int) -> bool:
        data = b"%d," % number * 1000
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            barrier.wait(20)
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            received = b""
            while piece := connection.recv(65536):
                received += piece
        return received == data + b"|%d" % len(data)

    with ThreadPoolExecutor(100) as pool:
        assert all(pool.map(one, range(100)))


def test_a_gateway_that_is_gone_closes_connections(service: Reverser, port: int) -> None:
    service.path.rename(service.path.with_name("elsewhere"))
    received = b""
    with suppress(ConnectionError):
        received = exchange(port, b"hello")
    assert received == b""
    service.path.with_name("elsewhere").rename(service.path)
    assert exchange(port, b"again") == b"again|5"


@pytest.mark.parametrize(
    ("program", "code"),
    [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)],
)
def test_exit_codes(service: Reverser, program: str, code: int) -> None:
    assert finish(start(free_port(), service.path, "sh", "-c", program))[0] == code


@pytest.mark.parametrize(("argv", "code"), [(["/nowhere"], 127), (["/etc"], 126)])
def test_programs_that_do_not_start(service: Reverser, argv: list[str], code: int) -> None:
    found, _, errors = finish(start(free_port(), service.path, *argv))
    assert (found, errors.startswith(f"{argv[0]}: ".encode())) == (code, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_the_program(service: Reverser, number: signal.Signals) -> None:
    program = (
        f"import signal,time; signal.signal({number.value}, lambda *_: exit(9)); print(1, flush=True); time.sleep(60)"
    )
    process = start(free_port(), service.path, sys.executable, "-c", program)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.05)
    process.send_signal(number)
    assert finish(process)[0] == 9


def test_open_connections_do_not_keep_it_alive(service: Reverser) -> None:
    number = free_port()
    program = f"import socket; s = socket.create_connection(('127.0.0.1', {number})); s.sendall(b'x'); print('out')"
    code, output, errors = finish(start(number, service.path, sys.executable, "-c", program))
    assert (code, output, errors) == (0, b"out\n", b"")


def test_it_listens_on_loopback_only(port: int) -> None:
    listening = Path("/proc/net/tcp").read_text().split("\n")[1:]
    places = [line.split()[1] for line in listening if line and line.split()[3] == "0A"]
    assert f"0100007F:{port:04X}" in places
    assert f"00000000:{port:04X}" not in places


def test_usage() -> None:
    assert forwarder.main([]) == 2
    assert forwarder.main(["x", "s", "true"]) == 2
