"""How a process is started and what is told of its end."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from akarena.sandbox.base import HOME, Command, End, Limits, Mount, Result, Sandbox
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


def test_a_folder_that_does_not_exist_to_start_in(runner: Runner) -> None:
    result = runner.run("pass", working_directory="/no/such/folder")
    assert result.end is End.FAILED_TO_START
    assert "/no/such/folder" in result.detail


def test_a_file_that_is_no_program(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    command = replace(runner.command("", mounts=(Mount(tmp_path, "/data"),)), argv=("/data/text",))
    result = runner.sandbox.run(command)
    assert result.end is End.FAILED_TO_START
    assert "/data/text" in result.detail


def test_a_program_is_found_on_its_own_path(runner: Runner) -> None:
    path = PurePosixPath(runner.python.path)
    command = runner.command("print('found')", environment={"PATH": str(path.parent)})
    result = runner.sandbox.run(replace(command, argv=(path.name, *command.argv[1:])))
    assert result.stdout == b"found\n", result


def test_text_of_every_kind_arrives(runner: Runner) -> None:
    text = "ä \u20ac \U0001f600 \n\t\"'$(id) `id` \\ " + "x" * 100_000
    code = "import os, sys; sys.stdout.buffer.write(os.environb[b'TEXT'] + b'|' + os.fsencode(sys.argv[1]))"
    result = runner.run(code, text, environment={"TEXT": text})
    assert result.stdout == text.encode() + b"|" + text.encode()


def test_both_streams_at_once(runner: Runner) -> None:
    code = "import os\nfor n in range(2000):\n    os.write(1, b'o' * 1000); os.write(2, b'e' * 1000)"
    result = runner.run(code)
    assert (result.stdout, result.stderr) == (b"o" * 2_000_000, b"e" * 2_000_000)


def test_a_program_that_closes_its_streams_runs_on(runner: Runner) -> None:
    result = runner.run("import os, time; os.close(1); os.close(2); time.sleep(0.5); os._exit(5)")
    assert (result.end, result.exit_code) == (End.EXITED, 5)
    assert result.wall_seconds >= 0.5


def test_it_starts_with_signals_as_they_should_be(runner: Runner) -> None:
    code = "print(open('/proc/self/status').read())"
    shell = f"import os, sys; os.execv(sys.executable, [sys.executable, '-I', '-S', '-c', {code!r}])"
    lines = runner.run(shell).stdout.decode().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert int(status["SigBlk"], 16) == 0
    # The interpreter itself ignores two; above 31 are those of the C library.
    own = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1
    assert int(status["SigIgn"], 16) & 0x7FFFFFFF & ~own == 0


def test_several_at_once(runner: Runner) -> None:
    results: dict[int, Result] = {}

    def run(number: int) -> None:
        results[number] = runner.run(f"import time; time.sleep(0.3); print({number})")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: result.stdout for number, result in results.items()} == {n: b"%d\n" % n for n in range(4)}
