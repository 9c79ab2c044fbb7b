"""What the parsers of all command-line agents share: lines with times, events that may be anything, and steps.

The output of an agent is hostile: nothing here raises on any bytes, and everything that is kept is bounded.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from akarena.agents.supervise import ENDED
from akarena.records.trial import AgentEnd, Cost, CostSource, Step, StepKind, Tokens

Event = dict[str, Any]
_TIME = re.compile(rb"@(\d{1,7}\.\d{3}) ")
_TEXT_CHARACTERS = 20_000
_TOTAL_CHARACTERS = 16_000_000
_MAX_STEPS = 20_000
_MAX_TOKENS = 1 << 48


def text_of(value: Any) -> str:
    """Give any JSON value as text: a text as it is, other values as JSON; bounded, and always valid Unicode."""
    text: str = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return text[:_TEXT_CHARACTERS].encode("utf-8", "replace").decode()


def mapping(value: Any) -> Event:
    """Give the value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Event]:
    """Give the objects of a list, or nothing where it is none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count(value: Any) -> int:
    """Give a count of tokens; 0 for anything that is none."""
    return value if type(value) is int and 0 <= value < _MAX_TOKENS else 0


def dollars(value: Any) -> Cost | None:
    """Give a cost that the agent reported; None for anything that is no amount."""
    # No comparison holds for NaN.
    if type(value) not in (int, float) or not 0 <= value < 1e6:
        return None
    return Cost(usd=float(value), source=CostSource.REPORTED)


@dataclass
class _Draft:
    kind: StepKind
    seconds: float
    text: str
    tool: str | None = None
    result: str | None = None


@dataclass
class Work:
    """What a stream says, as far as it was read.

    Attributes:
        seconds: Time of the event that is being read, since the start.
        tokens: As the agent counted them; None where it did not say.
        cost: As the agent reported it.
        complete: Whether the final event was seen.
        error: What the agent says went wrong; empty where nothing did.
        end: The kind of end that its final event names, where it names one.
        exited: How the program ended, as the supervisor saw it; empty where the stream breaks off.
        broken: Lines that are no JSON object.
        unknown: Events of types that the parser does not know, by type; they are kept as steps.
    """

    seconds: float = 0.0
    tokens: Tokens | None = None
    cost: Cost | None = None
    complete: bool = False
    error: str = ""
    end: AgentEnd | None = None
    exited: str = ""
    broken: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    _drafts: list[_Draft] = field(default_factory=list)
    _calls: dict[str, _Draft] = field(default_factory=dict)
    _left: int = _TOTAL_CHARACTERS
    _dropped: int = 0

    def say(self, text: Any, kind: StepKind = StepKind.MESSAGE) -> None:
        """Add a step that is only text; an empty one is none."""
        if text:
            self._add(kind, text_of(text))

    def call(self, key: Any, tool: Any, arguments: Any) -> None:
        """Add a call of a tool; one whose key was seen changes nothing but arguments that were empty."""
        name = text_of(key)
        known = self._calls.get(name)
        if known is None:
            known = self._add(StepKind.TOOL_CALL, text_of(arguments), text_of(tool)[:200] or "unnamed")
            if known is not None:
                self._calls[name] = known
        elif not known.text:
            known.text = self._take(text_of(arguments))

    def result(self, key: Any, result: Any) -> None:
        """Give a call its result; a second one, or one of a call that is not known, changes nothing."""
        known = self._calls.get(text_of(key))
        if known is not None and known.result is None:
            known.result = self._take(text_of(result))

    def other(self, event: Event) -> None:
        """Keep an event of a type that is not known as it is."""
        self.unknown[text_of(event.get("type"))[:100]] += 1
        self._add(StepKind.OTHER, text_of(event))

    def steps(self) -> tuple[Step, ...]:
        """Return the steps in their order."""
        return tuple(
            Step(kind=draft.kind, seconds=draft.seconds, text=draft.text, tool=draft.tool, result=draft.result)
            for draft in self._drafts
        )

    def notes(self) -> Iterator[str]:
        """Yield what a reader of the trajectory has to know of the reading, one line each."""
        if self.broken:
            yield f"{self.broken} lines of the stream are no JSON object"
        if self.unknown:
            kinds = ", ".join(f"{kind or 'none'} ({number})" for kind, number in self.unknown.most_common(5))
            yield f"events of types that the parser does not know: {kinds}"
        if self._dropped:
            yield f"{self._dropped} steps or results are cut or left out, since the trajectory is full"

    def _add(self, kind: StepKind, text: str, tool: str | None = None) -> _Draft | None:
        if kind is not StepKind.OTHER:
            # The work goes on after a final event, so that one was not the last, and its counts are not the whole.
            self.complete, self.tokens, self.cost = False, None, None
        if len(self._drafts) >= _MAX_STEPS:
            self._dropped += 1
            return None
        draft = _Draft(kind, self.seconds, self._take(text), tool)
        self._drafts.append(draft)
        return draft

    def _take(self, text: str) -> str:
        kept = text[: self._left]
        self._left -= len(kept)
        self._dropped += len(kept) < len(text)
        return kept


class Parser(Protocol):
    """Reads the events of one agent's stream, in their order, into `work`."""

    work: Work

    def read(self, event: Event) -> None:
        """Take the next event; its fields may be anything."""


def parse(data: bytes, parser: Parser) -> bytes:
    """Read what the supervisor passed on, whatever it is.

    Args:
        data: Lines, each with its time in front; lines without one take that of the line before.
        parser: Gets the events.

    Returns:
        The stream as the agent printed it, without the times.
    """
    work = parser.work
    raw: list[bytes] = []
    before, ended = b"", b""
    is_open = False
    for line in data.split(b"\n"):
        match = _TIME.match(line)
        if match:
            work.seconds = float(match[1])
            line = line[match.end() :]
            if ended:
                # More follows, so the agent made that end up.
                raw.append(ended)
                work.exited, ended, is_open = "", b"", False
        event = _event(line)
        if event is not None and ENDED in event:
            work.exited, ended, is_open = text_of(event[ENDED])[:20], line, event.get("open") is True
            continue
        raw.append(line)
        # The same line twice in a row is one event that was printed twice.
        if line.strip() and line != before:
            before = line
            if event is None:
                work.broken += 1
            else:
                parser.read(event)
    found = b"\n".join(raw)
    return found.removesuffix(b"\n") if is_open else found


def _event(line: bytes) -> Event | None:
    try:
        event = json.loads(line.decode("utf-8", "replace"))
        json.dumps(event)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None
