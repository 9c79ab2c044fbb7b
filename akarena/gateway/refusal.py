"""Why a request is not answered by the service, and what the agent is told, in the form of the API that it speaks."""

from __future__ import annotations

import json

from akarena.gateway.services import Style
from akarena.records.audit import RefusalReason, Verdict

KEY_REFUSED = frozenset({401, 403})
"""Statuses by which a service says that the key, or what it is used for, is not accepted."""

_STATUS = {
    RefusalReason.MALFORMED_HTTP: 400,
    RefusalReason.TOO_LARGE: 413,
    RefusalReason.TOO_SLOW: 408,
    RefusalReason.NOT_JSON: 400,
}
_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}


class Denial(Exception):  # noqa: N818 (an answer to the client, not an error)
    """A request ends here: refused, over a budget, or failed on the way.

    Attributes:
        verdict: For the audit.
        reason: For the audit; set where the verdict is ``refused``.
        detail: One line for the agent and the audit. It never quotes more than a name or a short value.
        status: Of the answer.
    """

    def __init__(self, verdict: Verdict, reason: RefusalReason | None, detail: str, status: int) -> None:
        super().__init__(detail)
        self.verdict = verdict
        self.reason = reason
        self.detail = detail
        self.status = status


def refused(reason: RefusalReason, detail: str) -> Denial:
    """Say that the gateway does not pass this."""
    return Denial(Verdict.REFUSED, reason, detail, _STATUS.get(reason, 403))


def out_of_budget(detail: str) -> Denial:
    """Say that a budget of the trial is used up."""
    return Denial(Verdict.OUT_OF_BUDGET, None, detail, 429)


def upstream_error(detail: str, status: int = 502) -> Denial:
    """Say that the service, or the way to it, failed."""
    return Denial(Verdict.UPSTREAM_ERROR, None, detail, status)


def error_body(style: Style, denial: Denial) -> bytes:
    """Write the answer to a request that ends here."""
    message = f"akarena gateway: {denial.detail}"
    if style is Style.ANTHROPIC:
        kind = _ANTHROPIC_TYPES.get(denial.status, "api_error")
        return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    code = denial.reason.value if denial.reason else denial.verdict.value
    kind = "rate_limit_error" if denial.status == 429 else "invalid_request_error"
    if denial.status >= 500:
        kind = "server_error"
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()


def error_headers(denial: Denial) -> dict[str, str]:
    """Give the headers of such an answer. Where asking again does not help, the vendors' clients read that here."""
    may_pass = denial.verdict is Verdict.UPSTREAM_ERROR and denial.status not in KEY_REFUSED
    return {} if may_pass else {"x-should-retry": "false"}
