from __future__ import annotations

import pytest

from akarena.errors import AkarenaError, ClaimError, ExitCode, InfrastructureError, UserError, unknown_name


@pytest.mark.parametrize(
    ("kind", "code"),
    [(UserError, 2), (InfrastructureError, 3), (ClaimError, 1), (AkarenaError, 3)],
)
def test_exit_codes(kind: type[AkarenaError], code: int) -> None:
    assert kind("why").exit_code == code
    assert issubclass(kind, AkarenaError)


def test_codes_are_distinct_and_fixed() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "OK": 0,
        "CLAIM_FAILED": 1,
        "USER_ERROR": 2,
        "INFRASTRUCTURE": 3,
        "INTERRUPTED": 130,
    }


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        (
            "cluade",
            ["nop", "claude", "codex"],
            "agent 'cluade' does not exist; did you mean claude or codex? (known: claude, codex, nop)",
        ),
        (
            "solution2",
            {"solution", "solution1"},
            "agent 'solution2' does not exist; did you mean solution or solution1? (known: solution, solution1)",
        ),
        ("xyz", iter(["nop"]), "agent 'xyz' does not exist (known: nop)"),
        ("xyz", [], "agent 'xyz' does not exist (known: none)"),
        ("a\x1b[2J\nb", ["nop"], "agent 'a\\x1b[2J\\nb' does not exist (known: nop)"),
    ],
)
def test_unknown_name(name: str, known: list[str], expected: str) -> None:
    error = unknown_name("agent", name, known)
    assert isinstance(error, UserError)
    assert str(error) == expected
