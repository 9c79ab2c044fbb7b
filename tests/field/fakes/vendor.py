#!/usr/bin/env python3
"""Acts as the command-line program of a vendor, by the name under which it lies: `claude`, `codex` or `cursor-agent`.

The argument ``play=NAME`` says which of the functions below it plays. Standard library only.
"""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

NAME = Path(sys.argv[0]).name
SPLIT = '{"type": "note", "text": "é"}\n'.encode()
"""A line of which the second half begins in the middle of a character."""


def show(**event: object) -> None:
    """Print one event."""
    print(json.dumps(event), flush=True)


def say(text: str) -> None:
    """Print a message of the model."""
    if NAME == "codex":
        show(type="item.completed", item={"id": f"i{time.monotonic_ns()}", "type": "agent_message", "text": text})
    else:
        message = {"id": f"m{time.monotonic_ns()}", "content": [{"type": "text", "text": text}]}
        show(type="assistant", message=message)


def finish(given: int = 11, answered: int = 7) -> None:
    """Print the final event, with what was used since the beginning."""
    if NAME == "codex":
        show(type="turn.completed", usage={"input_tokens": given, "output_tokens": answered})
    elif NAME == "claude":
        used = {"inputTokens": given, "outputTokens": answered}
        done = {"subtype": "success", "is_error": False, "result": "done"}
        show(type="result", **done, total_cost_usd=given / 1000, modelUsage={"m": used})
    else:
        show(type="result", subtype="success", is_error=False, result="done")


def sleep_for_ever() -> None:
    """Stay, whatever is asked politely."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)


def linger() -> None:
    """Stay after the final event."""
    finish()
    sleep_for_ever()


def linger_without_newline() -> None:
    """Stay after a final event that no newline ends."""
    sys.stdout = io.StringIO()
    finish()
    os.write(1, sys.stdout.getvalue().strip().encode())
    sleep_for_ever()


def linger_noisily() -> None:
    """Stay after the final event, and print what is no event."""
    finish()
    while True:
        print("still here", flush=True)
        time.sleep(0.1)


def silent() -> None:
    """Print one message, and never anything again."""
    say("I think.")
    sleep_for_ever()


def dots() -> None:
    """Show progress for a while without ever ending a line."""
    for _ in range(9):
        os.write(1, b".")
        time.sleep(0.5)
    os.write(1, b"\n")
    finish()


def letters() -> None:
    """Print bytes that are no text, a character in two pieces, and a last line that no newline ends."""
    say("before")
    os.write(1, b"\xff\n")
    middle = SPLIT.index(b"\xc3") + 1
    os.write(1, SPLIT[:middle])
    time.sleep(0.4)
    os.write(1, SPLIT[middle:])
    os.write(1, b'{"type": "note", "text": "a\xffb"}\r\n')
    os.write(1, b'{"akarena_ended": "stalled"}\n')
    os.write(2, b"\xfe")
    finish()
    os.write(1, b"\xc3")


def two_turns() -> None:
    """Tell cumulative counts twice."""
    say("one")
    finish(100, 20)
    say("two")
    finish(150, 30)


def second_turn_cut() -> None:
    """Break off in the second turn, after counts of the first."""
    say("one")
    finish(100, 20)
    say("two")
    os.write(1, b'{"type": "turn.comp')
    os.kill(os.getpid(), signal.SIGKILL)


def first_turn_cut() -> None:
    """Break off before any counts."""
    say("one")
    os.kill(os.getpid(), signal.SIGKILL)


def crash() -> None:
    """Fail at once."""
    sys.exit("Error: something is missing")


def not_as_root() -> None:
    """Refuse to go without permissions as root, as some vendors' programs do."""
    if os.getuid() == 0 or os.geteuid() == 0:
        sys.exit("Error: permissions cannot be skipped with root privileges")
    say(f"I am {os.getuid()}")
    finish()


def leave_running() -> None:
    """End, but leave processes of every kind behind that hold its output open."""
    mark = next(argument.partition("=")[2] for argument in sys.argv if argument.startswith("mark="))
    for detached in (False, True):
        subprocess.Popen(["sleep", mark], start_new_session=detached)
    finish()


if sys.argv[1:] == ["--version"]:
    print("fake 1.0")
    sys.exit()
play = next(argument.partition("=")[2] for argument in sys.argv if argument.startswith("play="))
if play != "crash":
    # A candidate without its file needs no judgement, which would take long.
    Path("kernel.hip").unlink()
globals()[play]()
