"""How a process is started and what is told of its end."""

from __future__ import annotations

import os
import signal

import pytest

from akarena.sandbox.base import HOME, Command, End, Limits, Sandbox
from tests.contract.helpers import MIB, Runner, given


@pytest.mark.parametrize("code", [0, 1, 7, 127])
def test_exit_code(runner: Runner, code: int) -> None:
    result = runner.run(f"raise SystemExit({code})")
    assert (result.end, result.exit_code, result.signal) == (End.EXITED, code, None)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_signal(runner: Runner, number: signal.Signals) -> None:
    result = runner.run(f"import os; os.kill(os.getpid(), {number.value})")
    assert (result.end, result.exit_code, result.signal) == (End.SIGNALLED, None, number)


def test_program_that_does_not_exist(sandbox: Sandbox) -> None:
    limits = Limits(5, 64 * MIB, 8, MIB, MIB, MIB)
    result = sandbox.run(Command(("/no/such/program",), {}, (), limits))
    assert result.end is End.FAILED_TO_START
    assert "/no/such/program" in result.detail


def test_output_is_raw_bytes(runner: Runner) -> None:
    result = runner.run(r"import os; os.write(1, b'\xff\x00\r\nout'); os.write(2, b'\xfe\x00err')")
    assert result.stdout == b"\xff\x00\r\nout"
    assert result.stderr == b"\xfe\x00err"


def test_a_line_of_five_megabytes(runner: Runner) -> None:
    result = runner.run("import sys; sys.stdout.write('x' * 5_000_000)")
    assert result.stdout == b"x" * 5_000_000
    assert result.dropped_bytes == 0


def test_output_is_bounded_and_keeps_head_and_tail(runner: Runner) -> None:
    result = runner.run("print('first'); print('x' * 3_000_000); print('last')", output_bytes=10_000)
    assert result.stdout.startswith(b"first\n")
    assert result.stdout.endswith(b"last\n")
    assert len(result.stdout) < 10_100
    assert result.dropped_bytes == 3_000_000 + len("first\n\nlast\n") - 10_000


def test_standard_input_is_empty(runner: Runner) -> None:
    assert runner.run("import sys; print(repr(sys.stdin.read()))").stdout == b"''\n"


def test_environment_is_only_what_was_given(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKARENA_TEST_SECRET", "secret")
    code = "import json; print(json.dumps([open('/proc/%s/environ' % p).read() for p in ('self', '1')]))"
    own, init = given(runner.run(code, environment={"A": "1 = 2", "B": ""}))
    assert dict(entry.split("=", 1) for entry in own.split("\0") if entry) == {
        "A": "1 = 2", "B": "", "HOME": HOME, "PWD": "/"
    }  # fmt: skip
    assert "secret" not in init


def test_only_the_intended_descriptors_are_open(runner: Runner) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        code = "import json, os; print(json.dumps(sorted(int(f) for f in os.listdir('/proc/self/fd'))))"
        # The listing itself holds the last one.
        assert given(runner.run(code)) == [0, 1, 2, 3]
    finally:
        os.close(reader)
        os.close(writer)
