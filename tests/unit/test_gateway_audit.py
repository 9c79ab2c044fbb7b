"""Audit lines: their form, their sums, and the limit of their file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akarena import schemas
from akarena.errors import InfrastructureError
from akarena.gateway.audit import AuditLog
from akarena.gateway.entry import Entry
from akarena.gateway.refusal import out_of_budget, refused, upstream_error
from akarena.records import AuditRecord
from akarena.records.audit import RefusalReason, Verdict
from akarena.records.trial import Tokens

TOKENS = Tokens(input=1, output=2, cache_read=3, cache_write=4, reasoning=5)


def entry(**facts: object) -> Entry:
    made = Entry("vendor", "POST", "/v1/messages?beta=true")
    for name, value in facts.items():
        setattr(made, name, value)
    return made


def test_one_line_for_each_request(tmp_path: Path) -> None:
    with AuditLog(tmp_path / "a") as audit:
        audit.write(entry(tokens=TOKENS, complete=True, bytes_up=10, bytes_down=20).record(), charged=False)
        audit.write(entry(bytes_up=1).record(), charged=True)
        for denial in (refused(RefusalReason.FIELD, "x: no"), out_of_budget("none left"), upstream_error("gone")):
            denied = entry()
            denied.deny(denial)
            audit.write(denied.record(), charged=False)
        totals = audit.totals(3, inspectable=True)
    records = [schemas.parse(AuditRecord, line, "a") for line in (tmp_path / "a").read_bytes().splitlines()]
    assert [record.verdict for record in records] == [
        Verdict.ALLOWED,
        Verdict.ALLOWED,
        Verdict.REFUSED,
        Verdict.OUT_OF_BUDGET,
        Verdict.UPSTREAM_ERROR,
    ]
    assert [record.status for record in records] == [None, None, 403, 429, 502]
    assert records[0].path == "/v1/messages", "without the query"
    assert (totals.refused, totals.out_of_budget, totals.upstream_errors, totals.uncounted) == (1, 1, 1, 1)
    assert (totals.tokens, totals.bytes_up, totals.bytes_down) == (TOKENS, 11, 20)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_the_file_is_bounded(tmp_path: Path) -> None:
    with AuditLog(tmp_path / "a", max_bytes=5000, max_refused=3) as audit:
        denied = entry()
        denied.deny(refused(RefusalReason.ROUTE, "no"))
        for _ in range(5):
            audit.write(denied.record(), charged=False)
        for _ in range(50):
            audit.write(entry(tokens=TOKENS).record(), charged=False)
        totals = audit.totals(50, inspectable=True)
    lines = (tmp_path / "a").read_bytes().splitlines(keepends=True)
    assert sum(map(len, lines)) <= 5000
    assert b'"refused"' in lines[2]
    assert b'"refused"' not in lines[3]
    assert (totals.audit_lines, totals.audit_lines_dropped) == (len(lines), 55 - len(lines))
    assert totals.tokens == Tokens(input=50, output=100, cache_read=150, cache_write=200, reasoning=250)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    with pytest.raises(OSError):
        AuditLog(tmp_path / "a")


def test_a_line_that_breaks_the_schema_is_not_written(tmp_path: Path) -> None:
    broken = entry().record().model_copy(update={"bytes_up": -1})
    with AuditLog(tmp_path / "a") as audit, pytest.raises(InfrastructureError, match="bytes_up"):
        audit.write(broken, charged=False)
    assert (tmp_path / "a").read_bytes() == b""


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=400), st.text(max_size=400), st.text(max_size=400))
def test_any_text_of_an_agent_fits_in_one_line(method: str, path: str, detail: str) -> None:
    made = Entry("vendor", method, path, model=path, detail=detail)
    data = schemas.to_json(made.record())
    assert data.count(b"\n") == 1
    assert data.isascii()
