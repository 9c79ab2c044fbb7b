"""The catalogue is whole, the page in the docs is that of the last runs, and the bench can tell an escape."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from akarena import paths
from akarena.judgement import Verdict
from akarena.records.evaluation import FailReason, VoidReason
from akarena.records.task import TargetName
from tests import judging
from tests.adversarial import docs
from tests.adversarial.bench import Bench, assess
from tests.adversarial.catalogue import ELSEWHERE, FIXTURES, HERE, Expect
from tests.unit.builders import digest, evaluation, outcome

FIXTURE = {fixture.name: fixture for fixture in FIXTURES}
EVIL, HONEST = "writes_nothing", "fallback_and_cache"


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    """Judge one candidate that must be refused, and one that must pass; ``nox -s redteam`` judges all."""
    if missing := judging.missing("cpu"):
        # `.ci/run` fails where a test was skipped.
        pytest.skip(missing)
    bench = Bench(TargetName.CPU)
    return {name: bench.verdict(FIXTURE[name]) for name in (EVIL, HONEST)}


def test_what_is_expected_comes(verdicts: dict[str, Verdict]) -> None:
    for name in (EVIL, HONEST):
        outcome = assess(FIXTURE[name], verdicts[name], timed=False)
        assert outcome.escaped is None, f"{outcome.line()}\n{outcome.evidence}"


def test_what_is_not_expected_is_an_escape(verdicts: dict[str, Verdict]) -> None:
    evil, honest = FIXTURE[EVIL], FIXTURE[HONEST]
    ends = {
        "an honest one is refused": (honest, verdicts[EVIL]),
        "a hostile one passes": (evil, verdicts[HONEST]),
        "it is refused for another reason": (replace(evil, reasons=frozenset({FailReason.CRASH})), verdicts[EVIL]),
        "there is no verdict": (evil, Verdict(None, None, VoidReason.JUDGE_CRASHED, "")),
    }
    escaped = {what: assess(fixture, verdict, timed=False).escaped for what, (fixture, verdict) in ends.items()}
    assert [what for what, why in escaped.items() if why is None] == []


def timed(name: str, speedup: float = 1.0) -> Verdict:
    """A judgement with times, of the kinds that reports are tested with."""
    return Verdict(evaluation("hip2hip/softmax", digest(name), outcome(name, speedup)), None, None, "")


@pytest.mark.parametrize(
    ("verdict", "change", "escapes"),
    [
        (timed("win", 1.3), {}, "faster"),
        (timed("win", 1.3), {"most_gain": 2.0}, None),
        (timed("win", 3.0), {"most_gain": 2.0}, "faster"),
        (timed("slower", 0.8), {}, None),
        # Refused on one split, and not faster on the other: nothing was gained.
        (timed("wrong_unseen", 0.8), {"reasons": frozenset({FailReason.WRONG_VALUES})}, None),
        (timed("wrong_unseen", 0.8), {"reasons": frozenset({FailReason.CRASH})}, "another reason"),
        (timed("wrong_unseen", 1.3), {"reasons": frozenset({FailReason.WRONG_VALUES})}, "faster"),
        (timed("void"), {}, "void"),
    ],
)
def test_who_gains_escapes(verdict: Verdict, change: dict[str, Any], escapes: str | None) -> None:
    limit = "measured" if "most_gain" in change else ""
    fixture = replace(FIXTURE[EVIL], expect=Expect.NO_GAIN, known_limit=limit, **change)
    escaped = assess(fixture, verdict, timed=True).escaped
    assert escaped is None if escapes is None else escapes in (escaped or "")


def test_every_file_is_a_fixture() -> None:
    folders = (HERE / "evil", HERE / "honest")
    present = {path for folder in folders for path in folder.iterdir() if path.suffix in (".hip", ".py")}
    assert {fixture.path for fixture in FIXTURES} == present
    assert len({fixture.name for fixture in FIXTURES}) == len(FIXTURES)


def test_every_known_cheat_is_shown() -> None:
    text = (HERE / "README.md").read_text("utf-8")
    known = re.findall(r"^\| ([TCDH]\d+) \|", text, re.MULTILINE)
    shown = {row for fixture in FIXTURES for row in fixture.rows}
    assert len(known) == 47
    assert shown | ELSEWHERE.keys() == set(known)
    for file, piece in ELSEWHERE.values():
        assert piece in (paths.root() / file).read_text("utf-8"), f"{file} has no {piece}"


def test_the_page_is_up_to_date() -> None:
    assert docs.PAGE.read_text("utf-8") == docs.page(), "run: python -m tests.adversarial.docs"
