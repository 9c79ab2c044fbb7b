"""The errors that a user sees, and the exit code each one leads to."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line."""

    OK = 0
    CLAIM_FAILED = 1
    USER_ERROR = 2
    INFRASTRUCTURE = 3
    INTERRUPTED = 130


class AkarenaError(Exception):
    """An error that is shown as one line, without a traceback."""

    exit_code = ExitCode.INFRASTRUCTURE


class UserError(AkarenaError):
    """What the user gave (a flag, a file, a name) is wrong; the message says where, what and what was expected."""

    exit_code = ExitCode.USER_ERROR


class InfrastructureError(AkarenaError):
    """The machine, the sandbox or the tool chain failed; neither the user nor the agent is to blame."""


class ClaimError(AkarenaError):
    """A check of results failed: a record is invalid, a sum differs, a claim does not hold."""

    exit_code = ExitCode.CLAIM_FAILED


def unknown_name(kind: str, name: str, known: Iterable[str], also: Iterable[str] = ()) -> UserError:
    """Build the error for a name that does not exist, with the nearest matches and the whole list.

    Args:
        kind: What was named, for example ``agent``; it starts the message.
        name: What the user wrote.
        known: Every name that exists.
        also: Further spellings that are accepted; they are suggested, but not listed.
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, [*names, *also], n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return UserError(f"{kind} {name!r} does not exist{hint} (known: {', '.join(names) or 'none'})")
