"""The system-call filter, run by a small interpreter of classic BPF: both architectures are tested on any machine."""

from __future__ import annotations

import errno
import struct

import pytest

from akarena.errors import InfrastructureError
from akarena.sandbox.seccomp import MACHINES, program

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EVERY = sorted(MACHINES)


def decide(code: bytes, number: int, audit: int, arguments: tuple[int, ...] = ()) -> int:
    """Run the filter on one call as the kernel would."""
    padded = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("=IIQ6Q", number, audit, 0, *(argument & (1 << 64) - 1 for argument in padded))
    instructions = list(struct.iter_unpack("=HBBI", code))
    at, accumulator = 0, 0
    while True:
        operation, if_true, if_false, value = instructions[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif operation == 0x06:
            return int(value)
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[operation]
            at += if_true if holds else if_false


@pytest.mark.parametrize("name", EVERY)
class TestFilter:
    def call(self, name: str, call: str, *arguments: int) -> int:
        machine = MACHINES[name]
        return decide(program(name), machine.calls[call], machine.audit, arguments)

    def test_every_named_call_is_refused(self, name: str) -> None:
        by_argument = {"clone", "ioctl", "socket", "socketpair", "personality"}
        for call in set(MACHINES[name].calls) - by_argument:
            assert self.call(name, call) in {ERRNO | errno.EPERM, ERRNO | errno.ENOSYS}, call

    def test_fallbacks_are_taken(self, name: str) -> None:
        for call in ("clone3", "io_uring_setup", "shmget"):
            assert self.call(name, call) == ERRNO | errno.ENOSYS

    @pytest.mark.parametrize(
        "flag", [0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]
    )
    def test_clone_makes_no_namespace(self, name: str, flag: int) -> None:
        assert self.call(name, "clone", flag | 17) == ERRNO | errno.EPERM

    def test_clone_makes_threads_and_processes(self, name: str) -> None:
        assert self.call(name, "clone", 0x3D0F00) == ALLOW
        assert self.call(name, "clone", 0x1200011) == ALLOW

    def test_socket_families(self, name: str) -> None:
        for call in ("socket", "socketpair"):
            allowed = [family for family in range(64) if self.call(name, call, family) == ALLOW]
            assert allowed == [1, 2, 10, 16]
            assert self.call(name, call, 40) == ERRNO | errno.EAFNOSUPPORT

    def test_personality(self, name: str) -> None:
        assert [self.call(name, "personality", p) for p in (0, 0x0040000, 0xFFFFFFFF)] == [ALLOW] * 3
        assert self.call(name, "personality", 0x0400000) == ERRNO | errno.EPERM

    def test_terminal_input(self, name: str) -> None:
        assert self.call(name, "ioctl", 0, 0x5412) == ERRNO | errno.EPERM
        assert self.call(name, "ioctl", 0, 0x541C) == ERRNO | errno.EPERM
        assert self.call(name, "ioctl", 0, 0x5401) == ALLOW
        # The kernel ignores the upper half of the request, so it must not hide the lower.
        assert self.call(name, "ioctl", 0, 0x1_0000_5412) == ERRNO | errno.EPERM

    def test_ordinary_calls_pass(self, name: str) -> None:
        named = set(MACHINES[name].calls.values())
        audit = MACHINES[name].audit
        assert all(decide(program(name), number, audit) == ALLOW for number in set(range(470)) - named)

    def test_other_architectures_die(self, name: str) -> None:
        for audit in (0x40000003, 0x40000028, 0x1234):
            assert decide(program(name), 1, audit) == KILL
        assert decide(program(name), 0x40000001, MACHINES[name].audit) == KILL

    def test_size_fits_the_kernel(self, name: str) -> None:
        assert len(program(name)) // 8 < 4096
        assert len(set(MACHINES[name].calls.values())) == len(MACHINES[name].calls)


def test_an_unknown_machine_is_refused() -> None:
    with pytest.raises(InfrastructureError, match="riscv64"):
        program("riscv64")
