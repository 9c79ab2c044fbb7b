"""Reads a Dockerfile as far as a build needs it: which stages a target is made of, and what is copied into them.

The classic builder runs every stage above its target, needed or not. A Dockerfile that is cut down to the needed ones
makes it do what BuildKit does.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from akarena.errors import UserError

_FROM = re.compile(r"^FROM\s+(\S+)(?:\s+AS\s+(\S+))?\s*$", re.IGNORECASE)
_OPTION = re.compile(r"^--([a-z-]+)=(\S+)$")


@dataclass(frozen=True)
class Stage:
    """One stage, with its lines as they are written."""

    name: str
    base: str
    lines: tuple[str, ...]

    def copies(self) -> Iterator[tuple[str | None, list[str]]]:
        """Yield the stage that each COPY takes from, or None for the build context, and its sources."""
        for instruction in _instructions(self.lines):
            keyword, _, rest = instruction.partition(" ")
            if keyword.upper() != "COPY":
                continue
            words = shlex.split(rest)
            options = {match[1]: match[2] for word in words if (match := _OPTION.match(word))}
            yield options.get("from"), [word for word in words if not _OPTION.match(word)][:-1]


def parse(text: str) -> tuple[list[str], list[Stage]]:
    """Return the lines before the first stage, and the stages in their order."""
    head: list[str] = []
    stages: list[Stage] = []
    for line in text.splitlines():
        match = _FROM.match(line)
        if match:
            stages.append(Stage(match.group(2) or "", match.group(1), (line,)))
        elif stages:
            last = stages[-1]
            stages[-1] = Stage(last.name, last.base, (*last.lines, line))
        else:
            head.append(line)
    return head, stages


def prune(text: str, target: str) -> str:
    """Return the Dockerfile without the stages that ``target`` does not need.

    Raises:
        UserError: There is no such stage.
    """
    head, stages = parse(text)
    known = {stage.name: stage for stage in stages}
    if target not in known:
        raise UserError(f"Dockerfile: has no stage {target} (stages: {', '.join(known)})")
    needed: set[str] = set()
    pending = [target]
    while pending:
        name = pending.pop()
        if name in needed or name not in known:
            continue
        needed.add(name)
        pending += [known[name].base, *(source for source, _ in known[name].copies() if source)]
    kept = [line for stage in stages if stage.name in needed for line in stage.lines]
    return "\n".join([*head, *kept]) + "\n"


def sources(text: str) -> list[str]:
    """Return the paths that a Dockerfile copies from the build context, sorted."""
    _, stages = parse(text)
    return sorted({path for stage in stages for origin, paths in stage.copies() if origin is None for path in paths})


def _instructions(lines: tuple[str, ...]) -> Iterator[str]:
    """Join continued lines; leave comments out."""
    joined = ""
    for line in lines:
        stripped = line.strip()
        if stripped.startswith("#") or not stripped:
            continue
        joined = f"{joined} {stripped.removesuffix(chr(92)).strip()}".strip()
        if not stripped.endswith("\\"):
            yield joined
            joined = ""
