"""What is known of one request while it runs, and the audit line that becomes of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from akarena.gateway.inspection import printable
from akarena.gateway.refusal import Denial
from akarena.records.audit import AuditRecord, RefusalReason, Verdict
from akarena.records.trial import Tokens


@dataclass
class Entry:
    """One request; see `AuditRecord` for the meaning of the fields.

    Attributes:
        retries: How often the gateway asked again.
        charged: Whether the service may have charged tokens for it.
    """

    service: str
    method: str
    path: str
    model: str | None = None
    verdict: Verdict = Verdict.ALLOWED
    reason: RefusalReason | None = None
    detail: str = ""
    status: int | None = None
    bytes_up: int = 0
    bytes_down: int = 0
    tokens: Tokens | None = None
    streamed: bool = False
    complete: bool = False
    tools: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    upstream_request_id: str | None = None
    retries: int = 0
    charged: bool = False
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    _clock: float = field(default_factory=time.monotonic)

    def deny(self, denial: Denial, *, answered: bool = True) -> None:
        """Note that it ended early.

        Args:
            denial: Why.
            answered: Whether the agent is told by a status; False where an answer had begun already.
        """
        self.verdict = denial.verdict
        self.reason = denial.reason
        self.detail = denial.detail
        self.complete = False
        if answered:
            self.status = denial.status

    def record(self) -> AuditRecord:
        """Make the audit line."""
        return AuditRecord(
            schema_version=1,
            time=self.began.strftime("%Y-%m-%dT%H:%M:%SZ"),
            service=self.service,
            method=printable(self.method, 20),
            path=printable(self.path.partition("?")[0]),
            model=None if self.model is None else printable(self.model, 100),
            verdict=self.verdict,
            reason=self.reason,
            detail=printable(self.detail, 300),
            status=self.status,
            bytes_up=self.bytes_up,
            bytes_down=self.bytes_down,
            tokens=self.tokens,
            milliseconds=max(0, round((time.monotonic() - self._clock) * 1000)),
            streamed=self.streamed,
            complete=self.complete,
            tools=self.tools,
            dropped=self.dropped,
            upstream_request_id=self.upstream_request_id,
            retries=self.retries,
        )
