"""``gateway.jsonl``: one line for each request that an agent made to its model's service."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from akarena.records.base import NonNegativeInt, Record, Slug, Timestamp
from akarena.records.trial import Tokens


class Verdict(StrEnum):
    """What became of a request."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    OUT_OF_BUDGET = "out_of_budget"
    UPSTREAM_ERROR = "upstream_error"


class RefusalReason(StrEnum):
    """Why a request was refused; ``detail`` names the place."""

    MALFORMED_HTTP = "malformed_http"
    ROUTE = "route"
    QUERY = "query"
    HEADER = "header"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    NOT_JSON = "not_json"
    FIELD = "field"
    VALUE = "value"
    CONTENT_TYPE = "content_type"
    TOOL_TYPE = "tool_type"
    MODEL = "model"
    HOST = "host"
    PRIVATE_ADDRESS = "private_address"
    SERVER_NAME = "server_name"


Printable = Annotated[str, StringConstraints(pattern=r"^[ -~]{0,300}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[ -~]{0,100}$")]


class AuditRecord(Record):
    """One request, without its body and without any key."""

    schema_name: ClassVar[str] = "audit"

    schema_version: Literal[1]
    time: Timestamp
    """When it began."""
    service: Slug
    method: Name
    path: Printable
    """Without the query string; for a tunnel host and port. Escaped and cut."""
    model: Name | None
    verdict: Verdict
    reason: RefusalReason | None
    """Set where it was refused, else null."""
    detail: Printable
    """One line for people; it names the field or the limit."""
    status: int | None = Field(ge=100, le=599)
    """Of the answer that the agent got; null where there was none."""
    bytes_up: NonNegativeInt
    """Of the body that was sent to the service, or through the tunnel."""
    bytes_down: NonNegativeInt
    """Of the body that was sent to the agent, or through the tunnel."""
    tokens: Tokens | None
    """As the service counted them, ``input`` without cached tokens; null where it did not, or broke off."""
    milliseconds: NonNegativeInt
    streamed: bool
    complete: bool
    """Whether the answer reached its end."""
    tools: tuple[Name, ...] = Field(max_length=256)
    """Tools that the agent offered to the model, as ``name`` or ``type:name``."""
    dropped: tuple[Name, ...] = Field(max_length=64)
    """Beta features that were asked for in a header and not passed on."""
    upstream_request_id: Name | None
    retries: NonNegativeInt = 0
    """How often the gateway asked again, since the service had no room for it; it counts as one request."""
