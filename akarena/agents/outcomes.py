"""How the work of an agent can end, and what follows: the one table, and those who read it.

``python -m akarena.agents.outcomes`` writes the table into the docs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from akarena import paths
from akarena.agents.program import Ran
from akarena.gateway.backoff import BUSY
from akarena.gateway.refusal import KEY_REFUSED
from akarena.records.audit import Verdict
from akarena.records.evaluation import VoidReason
from akarena.records.trial import AgentEnd
from akarena.sandbox.base import End
from akarena.store import AUDIT_LOG


class Decider(StrEnum):
    """Whose word an outcome rests on."""

    AKARENA = "akarena"
    SANDBOX = "the sandbox"
    SUPERVISOR = "the supervisor"
    GATEWAY = "the gateway"
    AGENT = "the agent's own words"
    EXIT_CODE = "the exit code"


@dataclass(frozen=True)
class Row:
    """One outcome.

    Attributes:
        name: For people.
        end: What the records say; None where that is not in the agent's end.
        meaning: When it is so.
        decider: Who says so.
        follows: What becomes of the trial.
        void: Why it is void; None where it counts.
        verdict: In the gateway's line of the last request of a model, where the gateway decides.
        statuses: In the same line; None for any.
        words: Where the agent's own words decide: what is looked for in its error.
    """

    name: str
    end: AgentEnd | None
    meaning: str
    decider: Decider
    follows: str
    void: VoidReason | None = None
    verdict: Verdict | None = None
    statuses: frozenset[int] | None = None
    words: re.Pattern[str] | None = None


_COUNTS = "counts: the files are judged as they were left"
_AGAIN = "void: nothing is judged, and it is tried again"
_UNSERVED = "void, if the service had answered none of its requests of a model; else it counts"


def _statuses(statuses: frozenset[int]) -> str:
    *first, last = map(str, sorted(statuses))
    return f"{', '.join(first)} or {last}"


TABLE = (
    Row(
        "finished",
        AgentEnd.FINISHED,
        "exit code 0, and no error in the final event; without a final event, `complete` is false",
        Decider.AGENT,
        _COUNTS,
    ),
    Row(
        "unchanged",
        None,
        "however it ended: the files are those that it was given",
        Decider.AKARENA,
        "counts, and is never won",
    ),
    Row("timed out", AgentEnd.TIMED_OUT, "the time of `--agent-seconds` is over", Decider.SANDBOX, _COUNTS),
    Row("stalled", AgentEnd.STALLED, "it printed nothing for 30 minutes", Decider.SUPERVISOR, _COUNTS),
    Row(
        "out of budget",
        AgentEnd.OUT_OF_BUDGET,
        "it failed, and its last request of a model was over a budget of the trial",
        Decider.GATEWAY,
        _COUNTS,
        verdict=Verdict.OUT_OF_BUDGET,
    ),
    Row(
        "out of budget",
        AgentEnd.OUT_OF_BUDGET,
        "it names its own limit of turns or dollars",
        Decider.AGENT,
        _COUNTS,
    ),
    Row("out of memory", AgentEnd.OUT_OF_MEMORY, "it used more than the sandbox holds", Decider.SANDBOX, _COUNTS),
    Row(
        "refused by the service",
        AgentEnd.REFUSED,
        f"it failed, and the service answered its last request of a model with {_statuses(KEY_REFUSED)}",
        Decider.GATEWAY,
        _UNSERVED,
        VoidReason.SERVICE_REFUSED,
        Verdict.UPSTREAM_ERROR,
        KEY_REFUSED,
    ),
    Row(
        "refused by the service",
        AgentEnd.REFUSED,
        "it says so, and the gateway saw nothing of it",
        Decider.AGENT,
        _COUNTS,
        words=re.compile(
            r"\b(401|403)\b|unauthori[sz]ed|(invalid|incorrect).{0,20}api.?key|not logged in", re.IGNORECASE
        ),
    ),
    Row(
        "rate limited",
        AgentEnd.RATE_LIMITED,
        f"it failed, and the service answered its last request of a model with {_statuses(BUSY)}, again and again",
        Decider.GATEWAY,
        _UNSERVED,
        VoidReason.SERVICE_LIMITED,
        Verdict.UPSTREAM_ERROR,
        BUSY,
    ),
    Row(
        "rate limited",
        AgentEnd.RATE_LIMITED,
        "it says so, and the gateway saw nothing of it",
        Decider.AGENT,
        _COUNTS,
        words=re.compile(r"\b(429|529)\b|rate.?limit|overloaded|too many requests", re.IGNORECASE),
    ),
    Row("crashed", AgentEnd.CRASHED, "it failed in any other way", Decider.EXIT_CODE, _COUNTS),
    Row(
        "infrastructure",
        AgentEnd.INFRASTRUCTURE,
        "the sandbox, the gateway or the program could not be started or broke; or there is nothing to replay",
        Decider.AKARENA,
        _AGAIN,
        VoidReason.AGENT_NOT_RUN,
    ),
    Row(
        "no key",
        None,
        "the service's key is not in the environment",
        Decider.AKARENA,
        "nothing is started: one line says which variable is missing",
    ),
)
"""All outcomes. Where a kind of end has two rows, that of the gateway comes first."""

BY_ITSELF = frozenset({End.EXITED, End.SIGNALLED})
"""Ends of a program that nobody stopped."""

VOID_REASONS = frozenset(row.void for row in TABLE if row.void is not None)
"""Why a trial is void before anything is judged."""


def why_failed(ran: Ran, said: str = "", named: AgentEnd | None = None) -> AgentEnd:
    """Tell how an agent ended that failed. What the gateway saw comes before what the agent says.

    Args:
        ran: How its program ended; one that had to be stopped has crashed, whatever its service did.
        said: The agent's error.
        named: The kind of end that its final event names; None where it names none.
    """
    if ran.result.end not in BY_ITSELF:
        return AgentEnd.CRASHED
    seen = seen_by_gateway(ran.audit.get(AUDIT_LOG, b""))
    if seen is not None:
        return seen
    if named is not None:
        return named
    heard = (row.end for row in TABLE if row.words is not None and row.words.search(said))
    return next(filter(None, heard), AgentEnd.CRASHED)


def seen_by_gateway(audit: bytes) -> AgentEnd | None:
    """Return how the last request of a model failed, where it did and the table has such an end.

    Args:
        audit: The gateway's log. Requests in a tunnel name no model.

    Raises:
        ValueError: It is no such log.
        KeyError: The same.
    """
    for line in reversed(audit.splitlines()):
        entry = json.loads(line)
        if entry["model"] is not None:
            rows = (row for row in TABLE if row.verdict is not None and row.verdict == entry["verdict"])
            return next((row.end for row in rows if row.statuses is None or entry["status"] in row.statuses), None)
    return None


def void_reason(end: AgentEnd, audit: bytes) -> VoidReason | None:
    """Say why a trial is void because of how its agent ended; None where it counts.

    The agent's own words never make it void: they are hostile, and must not buy another try. Nor does a refusal that
    came after an answer: by then an agent may not like what it has, and can bring one about.

    Args:
        end: How it ended.
        audit: The gateway's log; empty where there is none.
    """
    for row in TABLE:
        if row.end is end and (row.verdict is None or seen_by_gateway(audit) is end):
            return None if row.verdict is not None and _was_served(audit) else row.void
    raise ValueError(f"no row of the table is about {end}")


def _was_served(audit: bytes) -> bool:
    """Say whether the service answered a request of a model."""
    entries = map(json.loads, audit.splitlines())
    return any(entry["model"] is not None and entry["verdict"] == Verdict.ALLOWED for entry in entries)


PAGE = "docs/agents.md"
_BEGIN, _END = "<!-- outcomes: begin -->", "<!-- outcomes: end -->"


def updated(text: str) -> str:
    """Return the page of the docs with the current table.

    Raises:
        ValueError: It lacks the markers.
    """
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"{PAGE} lacks the markers {_BEGIN} and {_END}")
    rows = [
        f"| {row.name} | {f'`{row.end}`' if row.end else ''} | {row.meaning} | {row.decider} "
        f"| {row.follows}{f' (`{row.void}`)' if row.void else ''} |\n"
        for row in TABLE
    ]
    head = "| outcome | `end` | when | who says so | what follows |\n|---|---|---|---|---|\n"
    return f"{before}{begin}\n\n{head}{''.join(rows)}\n{end}{after}"


if __name__ == "__main__":
    _page = paths.root() / PAGE
    _page.write_text(updated(_page.read_text("utf-8")), "utf-8")
