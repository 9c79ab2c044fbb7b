from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from akarena.worker import wire
from akarena.worker.wire import Command, Status

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    left, right = socket.socketpair()
    with left, right:
        left.settimeout(2)
        right.settimeout(2)
        yield left, right


def test_a_request_arrives_as_it_was_sent(pair: Pair) -> None:
    wire.send_request(pair[0], Command.PREPARE, 7, {"sets": 3})
    assert wire.receive_request(pair[1]) == (Command.PREPARE, 7, {"sets": 3})


def test_an_answer_is_fixed_in_size_and_belongs_to_its_request(pair: Pair) -> None:
    wire.send_answer(pair[1], Status.RETURNED_ERROR, 2**63 - 1, -5)
    data = wire.receive_exactly(pair[0], wire.ANSWER_BYTES)
    assert wire.parse_answer(data, 2**63 - 1) == (Status.RETURNED_ERROR, -5)
    with pytest.raises(wire.WireError, match="another request"):
        wire.parse_answer(data, 1)


@pytest.mark.parametrize("change", [b"XXXX", b"AKq1"])
def test_a_malformed_answer_is_refused(change: bytes) -> None:
    left, right = socket.socketpair()
    with left, right:
        wire.send_answer(right, Status.DONE, 1)
        data = wire.receive_exactly(left, wire.ANSWER_BYTES)
    with pytest.raises(wire.WireError, match="malformed"):
        wire.parse_answer(change + data[4:], 1)


def test_an_unknown_status_is_refused() -> None:
    data = wire._ANSWER.pack(wire._ANSWER_MAGIC, 99, 1, 0)
    with pytest.raises(wire.WireError, match="malformed"):
        wire.parse_answer(data, 1)


def test_a_closed_peer_and_a_short_answer_are_told(pair: Pair) -> None:
    pair[1].sendall(b"AKa1")
    pair[1].shutdown(socket.SHUT_RDWR)
    with pytest.raises(wire.PeerGoneError):
        wire.receive_exactly(pair[0], wire.ANSWER_BYTES)


def test_a_payload_has_a_bound(pair: Pair) -> None:
    with pytest.raises(wire.WireError, match="too long"):
        wire.send_request(pair[0], Command.LOAD, 1, {"path": "x" * wire.MAX_PAYLOAD_BYTES})


def test_every_command_and_status_passes(pair: Pair) -> None:
    for command in Command:
        wire.send_request(pair[0], command, 2**64 - 1)
        assert wire.receive_request(pair[1]) == (command, 2**64 - 1, {})
    for status in Status:
        wire.send_answer(pair[1], status, 5, -(2**63))
        assert wire.parse_answer(wire.receive_exactly(pair[0], wire.ANSWER_BYTES), 5) == (status, -(2**63))


def test_an_answer_is_one_size_whatever_it_says(pair: Pair) -> None:
    assert wire.ANSWER_BYTES == 24
    wire.send_answer(pair[1], Status.RAISED, 1, 1)
    assert len(pair[0].recv(1000)) == 24


@pytest.mark.parametrize("header", [b"XXXX" + bytes(16), b"AKq1" + b"\1\0\0\0" + bytes(8) + b"\xff\xff\xff\xff"])
def test_a_request_that_is_none_or_too_long_is_refused(header: bytes, pair: Pair) -> None:
    pair[0].sendall(header)
    with pytest.raises(wire.WireError, match="not a request"):
        wire.receive_request(pair[1])


def test_a_number_that_is_none_cannot_be_sent(pair: Pair) -> None:
    with pytest.raises(ValueError, match="JSON"):
        wire.send_request(pair[0], Command.CALL, 1, {"x": float("nan")})


def test_a_reset_is_a_peer_that_is_gone(pair: Pair) -> None:
    pair[0].sendall(b"unread")
    pair[1].close()
    with pytest.raises(wire.PeerGoneError):
        wire.receive_exactly(pair[0], wire.ANSWER_BYTES)


@pytest.mark.parametrize("awake_seconds", [0.0, 0.1, 5.0])
def test_an_answer_in_drops_has_no_more_time_than_one_in_a_piece(pair: Pair, awake_seconds: float) -> None:
    stop = threading.Event()

    def drip() -> None:
        for _ in range(wire.ANSWER_BYTES - 1):
            pair[1].sendall(b"A")
            if stop.wait(0.1):
                return

    thread = threading.Thread(target=drip)
    thread.start()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        wire.receive_exactly(pair[0], wire.ANSWER_BYTES, timeout_seconds=0.35, awake_seconds=awake_seconds)
    assert time.monotonic() - began < 1.5
    stop.set()
    thread.join()


@pytest.mark.parametrize("awake_seconds", [0.0, 0.05, 5.0])
def test_an_answer_is_read_whole_asleep_or_awake(pair: Pair, awake_seconds: float) -> None:
    def answer_in_two_pieces() -> None:
        pair[1].sendall(b"A" * 5)
        time.sleep(0.15)
        pair[1].sendall(b"B" * 5)

    thread = threading.Thread(target=answer_in_two_pieces)
    thread.start()
    assert wire.receive_exactly(pair[0], 10, timeout_seconds=5.0, awake_seconds=awake_seconds) == b"AAAAABBBBB"
    thread.join()


@pytest.mark.parametrize("awake_seconds", [0.0, 5.0])
def test_a_peer_that_goes_away_is_noticed_asleep_or_awake(pair: Pair, awake_seconds: float) -> None:
    thread = threading.Timer(0.1, pair[1].close)
    thread.start()
    with pytest.raises(wire.PeerGoneError):
        wire.receive_exactly(pair[0], 1, timeout_seconds=5.0, awake_seconds=awake_seconds)
    thread.join()
