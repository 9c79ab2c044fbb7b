"""What a gateway process is told, and what it tells at its end. Both cross a pipe as JSON; neither holds a key."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from akarena.errors import InfrastructureError
from akarena.gateway.backoff import Patience
from akarena.gateway.services import KeyHeader, Service, Style
from akarena.records.run import Prices
from akarena.records.trial import Tokens


@dataclass(frozen=True)
class Budgets:
    """What one trial may use. A request that could go beyond is refused before it is sent.

    Attributes:
        requests: Requests that reach the service; one that the gateway asks again counts once.
        tokens: Tokens of prompts (cached ones included) and answers together.
        upload_bytes: Bodies that are sent to the service; for a tunnel, bytes.
        download_bytes: Bodies that come back; for a tunnel, bytes.
        seconds: From the start of the gateway; running answers are cut then.
        concurrent: Requests or tunnels at a time; more of them wait for their turn.
        request_bytes: The largest single body.
        usd: US dollars by `prices`; None for no such limit.
        prices: What the service takes; needed where `usd` is given.
    """

    requests: int = 2_000
    tokens: int = 50_000_000
    upload_bytes: int = 2 << 30
    download_bytes: int = 2 << 30
    seconds: float = 6 * 3600.0
    concurrent: int = 8
    request_bytes: int = 32 << 20
    usd: float | None = None
    prices: Prices | None = None

    def __post_init__(self) -> None:
        for name in (one.name for one in fields(self)):
            value = getattr(self, name)
            if isinstance(value, int | float) and not value > 0:
                raise ValueError(f"budget {name} is {value}, expected a number above 0")
        if self.usd is not None and self.prices is None:
            raise ValueError("budget usd is given without prices, by which dollars are counted")


@dataclass(frozen=True)
class Settings:
    """All that a gateway process is told, except the key.

    Attributes:
        service: The one service that it leads to.
        socket: Where it listens.
        audit: The file that it appends its lines to.
        models: The only models that may be asked; empty for any.
        budgets: What the trial may use.
        patience: How long the gateway itself asks again where the service has no room.
    """

    service: Service
    socket: str
    audit: str
    models: tuple[str, ...]
    budgets: Budgets
    patience: Patience = field(default_factory=Patience)

    def to_json(self) -> bytes:
        """Write the settings as one line."""
        return json.dumps(asdict(self), default=Prices.model_dump).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> Settings:
        """Read what `to_json` wrote."""
        document: dict[str, Any] = json.loads(data)
        service, budgets = document["service"], document["budgets"]
        prices = budgets["prices"]
        return cls(
            service=Service(
                **service
                | {
                    "style": Style(service["style"]),
                    "key_header": KeyHeader(service["key_header"]),
                    "hosts": tuple(service["hosts"]),
                }
            ),
            socket=document["socket"],
            audit=document["audit"],
            models=tuple(document["models"]),
            budgets=Budgets(**budgets | {"prices": None if prices is None else Prices(**prices)}),
            patience=Patience(**document["patience"]),
        )


@dataclass(frozen=True)
class Totals:
    """What a trial used.

    Attributes:
        requests: Requests that reached the service, each once however often it was asked; or tunnels that were opened.
        refused: Requests that were refused.
        out_of_budget: Requests that were refused or cut by a budget.
        upstream_errors: Requests that the service or the way to it failed.
        tokens: Sum over all answers that said how many; None where none did.
        uncounted: Answers that the service was paid for but whose tokens are not known, since they broke off.
        bytes_up: Sent to the service.
        bytes_down: Received from it.
        audit_lines: Lines in the audit file.
        audit_lines_dropped: Lines beyond the limit of the file, only counted.
        inspectable: False for a tunnel: nothing is known of what went through.
    """

    requests: int
    refused: int
    out_of_budget: int
    upstream_errors: int
    tokens: Tokens | None
    uncounted: int
    bytes_up: int
    bytes_down: int
    audit_lines: int
    audit_lines_dropped: int
    inspectable: bool

    def to_json(self) -> bytes:
        """Write the totals as one line."""
        return json.dumps(asdict(self) | {"tokens": self.tokens and self.tokens.model_dump()}).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> Totals:
        """Read what `to_json` wrote.

        Raises:
            InfrastructureError: The bytes are something else: the gateway died.
        """
        try:
            document = json.loads(data)
            tokens = document["tokens"]
            return cls(**document | {"tokens": None if tokens is None else Tokens(**tokens)})
        except (ValueError, TypeError, KeyError):
            raise InfrastructureError("the gateway ended without its totals") from None
