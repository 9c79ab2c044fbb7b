"""What mutation needs to know about a HIP source: where its code is, and which part of it runs on the device."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NOT_CODE = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|^[ \t]*\#(?:\\\n|[^\n])*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def masked(text: str) -> str:
    """Return the text with blanks in place of comments, literals and directives, so that offsets stay."""
    return _NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def closing(code: str, opening: int) -> int:
    """Return where the bracket that opens at a position is closed; the end of the text where it is not."""
    depth = 0
    for position in range(opening, len(code)):
        if code[position] in _CLOSING:
            depth += 1
        elif code[position] in _CLOSING.values():
            depth -= 1
            if depth == 0:
                return position
    return len(code)


def device_functions(code: str) -> Iterator[tuple[int, int, int]]:
    """Find every function that runs on the device.

    Args:
        code: A masked text.

    Yields:
        Where its declaration begins, where its body opens, and where it ends.
    """
    done = 0
    for found in re.finditer(r"\b__(?:global|device)__\b", code):
        if found.start() < done:
            continue
        position = found.end()
        while position < len(code) and code[position] not in "{;=":
            position = closing(code, position) + 1 if code[position] == "(" else position + 1
        # A semicolon or a value makes it a declaration or a variable.
        if position < len(code) and code[position] == "{":
            done = closing(code, position) + 1
            yield found.start(), position, done


def is_kernel(code: str, start: int) -> bool:
    """Say whether the function that is declared at a position is a kernel."""
    return code.startswith("__global__", start)


def statement_start(code: str, position: int) -> int | None:
    """Return the start of the statement around a position, None where it cannot be told."""
    depth = 0
    for at in range(position - 1, -1, -1):
        if code[at] in ")]":
            depth += 1
        elif code[at] in "([":
            depth -= 1
        elif code[at] in ";{}" and depth <= 0:
            # Inside the brackets of a `for`, a semicolon ends no statement.
            if code[at] == ";" and _in_brackets(code, at):
                continue
            return at + 1
    return None


def _in_brackets(code: str, position: int) -> bool:
    depth = 0
    for at in range(position - 1, -1, -1):
        if code[at] in ")]":
            depth += 1
        elif code[at] in "([":
            depth -= 1
            if depth < 0:
                return True
        elif code[at] in "{}":
            return False
    return False
