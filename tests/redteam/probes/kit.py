"""What every probe uses: the plan, the registry, and the difference between stopped, got and broken.

A probe returns what it got. It raises `Stopped` where it was refused in one of the ways that it names beforehand, and
`NotRun` where the machine lacks what it tries. Any other error means that the probe itself is broken, which is no
refusal: the test fails then.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

_SECONDS = 25
_WORDS = 400


class Stopped(Exception):  # noqa: N818
    """The escape was refused; the text is the error that was seen."""


class NotRun(Exception):  # noqa: N818
    """The escape can't be tried here; the text says why."""


@dataclass(frozen=True)
class Plan:
    """What the caller tells the agent. No secret is in it, only how each begins.

    Attributes:
        acts: What this agent does, in this order.
        names: The probes to run, in this order, where that is one of the acts.
        marks: How each planted secret begins, by its kind.
        seed: How the run's seed begins.
        unseen: Names and values of unseen configurations.
        facts: Paths, ports, names and numbers of the host and of the other trials.
        roots: Where to search for secrets; empty for everything but the system's programs.
        swept: Where secrets were found, by kind; filled inside.
    """

    acts: tuple[str, ...]
    names: tuple[str, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    seed: str = ""
    unseen: tuple[tuple[tuple[str, Any], ...], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    swept: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, text: bytes) -> Plan:
        """Read what the caller wrote."""
        fields: dict[str, Any] = json.loads(text)
        unseen = tuple(tuple(zip(case["names"], case["values"], strict=True)) for case in fields.pop("unseen", ()))
        fields |= {name: tuple(fields.get(name, ())) for name in ("acts", "names", "roots")}
        return cls(unseen=unseen, **fields)


Probe = Callable[[Plan], str]
PROBES: dict[str, Probe] = {}


def probe(name: str) -> Callable[[Probe], Probe]:
    """Register a probe under the name that the catalogue has for it."""

    def register(function: Probe) -> Probe:
        PROBES[name] = function
        return function

    return register


def doors(actions: Mapping[str, Callable[[], object]], *refusals: int) -> str:
    """Try each of several ways to the same end.

    Args:
        actions: The ways, by name.
        refusals: Numbers of the errors by which they may be refused.

    Returns:
        Those that are open.

    Raises:
        Stopped: None is.
    """
    opened: list[str] = []
    strange: list[OSError] = []
    seen: dict[str, list[str]] = {}
    for name, action in actions.items():
        try:
            given = action()
        except OSError as error:
            if error.errno not in refusals:
                strange.append(OSError(error.errno, f"{name}: {error}"))
            seen.setdefault(os.strerror(error.errno or 0), []).append(name)
        else:
            opened.append(f"{name} ({given})" if given else name)
    if opened:
        return ", ".join(opened)
    if strange:
        raise strange[0]
    raise Stopped("; ".join(f"{error}: {', '.join(names)}" for error, names in seen.items()))


def nothing(found: object, otherwise: str) -> str:
    """Return what was found; where that is nothing, the probe was stopped for the stated reason."""
    if found:
        return str(found)
    raise Stopped(otherwise)


def say(name: str, outcome: str, text: str, seconds: float = 0.0) -> None:
    """Print the line of one probe."""
    line = json.dumps({"name": name, "outcome": outcome, "seen": text[:_WORDS], "seconds": round(seconds, 2)}) + "\n"
    os.write(1, line.encode())


def run(name: str, plan: Plan) -> None:
    """Run one probe in a process of its own, since some are killed for what they try, and print its line."""
    reader, writer = os.pipe()
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        with suppress(OSError):
            os.setsid()
        signal.alarm(_SECONDS)
        os.write(writer, json.dumps(_outcome(name, plan)).encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(pid, 0)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    os.set_blocking(reader, False)
    data = b""
    with suppress(BlockingIOError):
        data = os.read(reader, 1 << 16)
    os.close(reader)
    outcome, text = json.loads(data) if data else ("broken", f"no outcome, wait status {status}")
    if not data and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSYS:
        outcome, text = "stopped", "killed by SIGSYS"
    say(name, outcome, text, time.monotonic() - began)


def _outcome(name: str, plan: Plan) -> tuple[str, str]:
    try:
        return "got", PROBES[name](plan)[:_WORDS]
    except Stopped as stopped:
        return "stopped", str(stopped)[:_WORDS]
    except NotRun as why:
        return "not run", str(why)[:_WORDS]
    except BaseException as error:
        line = error.__traceback__.tb_next.tb_lineno if error.__traceback__ and error.__traceback__.tb_next else 0
        return "broken", f"{type(error).__name__} in line {line}: {error}"[:_WORDS]
