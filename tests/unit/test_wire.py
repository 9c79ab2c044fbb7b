from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from akarena.worker import wire
from akarena.worker.wire import Command, Status


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        left.settimeout(2)
        right.settimeout(2)
        yield left, right


def test_a_request_arrives_as_it_was_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    wire.send_request(pair[0], Command.PREPARE, 7, {"sets": 3})
    assert wire.receive_request(pair[1]) == (Command.PREPARE, 7, {"sets": 3})


def test_an_answer_is_fixed_in_size_and_belongs_to_its_request(pair: tuple[socket.socket, socket.socket]) -> None:
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


def test_a_closed_peer_and_a_short_answer_are_told(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[1].sendall(b"AKa1")
    pair[1].shutdown(socket.SHUT_RDWR)
    with pytest.raises(wire.PeerGoneError):
        wire.receive_exactly(pair[0], wire.ANSWER_BYTES)


def test_a_payload_has_a_bound(pair: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(wire.WireError, match="too long"):
        wire.send_request(pair[0], Command.LOAD, 1, {"path": "x" * wire.MAX_PAYLOAD_BYTES})
