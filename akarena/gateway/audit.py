"""Writes the audit: a line for each request, checked against its schema, in a file that can't grow without limit."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

from akarena import schemas
from akarena.gateway import usage
from akarena.gateway.settings import Totals
from akarena.records.audit import AuditRecord, Verdict
from akarena.records.trial import Tokens

_MAX_BYTES = 32 << 20
_MAX_REFUSED = 2_000


class AuditLog:
    """The audit file of one trial, and the sums over it.

    Requests that are not passed on cost an agent nothing, so only the first of them get a line each. All are counted.

    Args:
        path: Appended to.
        max_bytes: Size at which lines are only counted.
        max_refused: Lines for requests that were not passed on.
    """

    def __init__(self, path: Path, *, max_bytes: int = _MAX_BYTES, max_refused: int = _MAX_REFUSED) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600)
        self._free_bytes = max_bytes
        self._free_refused = max_refused
        self._lines = self._dropped = 0
        self._counts = dict.fromkeys(Verdict, 0)
        self._uncounted = self._bytes_up = self._bytes_down = 0
        self._tokens: Tokens | None = None

    def __enter__(self) -> AuditLog:
        """Nothing more to open."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        os.close(self._file)

    def write(self, record: AuditRecord, *, charged: bool) -> None:
        """Add a request.

        Args:
            record: Its line.
            charged: Whether the service may have charged tokens for it.
        """
        self._counts[record.verdict] += 1
        self._bytes_up += record.bytes_up
        self._bytes_down += record.bytes_down
        if record.tokens is not None:
            self._tokens = usage.add(self._tokens, record.tokens)
        elif charged:
            self._uncounted += 1
        passed_on = record.verdict in (Verdict.ALLOWED, Verdict.UPSTREAM_ERROR)
        data = schemas.to_json(record)
        if len(data) > self._free_bytes or (not passed_on and self._free_refused == 0):
            self._dropped += 1
            return
        self._free_refused -= not passed_on
        self._free_bytes -= len(data)
        self._lines += 1
        os.write(self._file, data)

    def totals(self, requests: int, *, inspectable: bool) -> Totals:
        """Give the sums.

        Args:
            requests: Requests that reached the service.
            inspectable: Whether what went through could be read.
        """
        return Totals(
            requests=requests,
            refused=self._counts[Verdict.REFUSED],
            out_of_budget=self._counts[Verdict.OUT_OF_BUDGET],
            upstream_errors=self._counts[Verdict.UPSTREAM_ERROR],
            tokens=self._tokens,
            uncounted=self._uncounted,
            bytes_up=self._bytes_up,
            bytes_down=self._bytes_down,
            audit_lines=self._lines,
            audit_lines_dropped=self._dropped,
            inspectable=inspectable,
        )
