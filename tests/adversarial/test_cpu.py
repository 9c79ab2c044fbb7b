"""Hostile and honest candidates on the cpu target: what can be refused without a GPU is refused there too."""

from __future__ import annotations

import re

import pytest

from akarena import sandbox, targets
from akarena.records.task import TargetName
from tests.adversarial import docs
from tests.adversarial.bench import Bench, Outcome
from tests.adversarial.catalogue import FIXTURES, HERE, Fixture, on

CPU = on(TargetName.CPU)


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> dict[str, Outcome]:
    """Judge the chosen fixtures, two at a time."""
    usable = getattr(sandbox.get("bubblewrap"), "usable", None)
    if usable is not None and not usable():
        pytest.skip("bubblewrap is not usable on this machine")
    if missing := targets.create("cpu").missing():
        pytest.skip("; ".join(missing))
    items = {item.name for item in request.session.items if isinstance(item, pytest.Function)}
    chosen = [fixture for fixture in CPU if f"test_on_cpu[{fixture.name}]" in items]
    return {outcome.name: outcome for outcome in Bench(TargetName.CPU).judge_all(chosen, at_once=2)}


@pytest.mark.parametrize("fixture", CPU, ids=[fixture.name for fixture in CPU])
def test_on_cpu(fixture: Fixture, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[fixture.name]
    assert outcome.escaped is None, f"{outcome.line()}\n{outcome.evidence}"


def test_every_file_is_a_fixture_and_every_known_cheat_has_one() -> None:
    used = {fixture.path for fixture in FIXTURES}
    present = {
        path for folder in ("evil", "honest") for kind in ("hip", "py") for path in (HERE / folder).glob(f"*.{kind}")
    }
    known = set(re.findall(r"^\| ([TCDH]\d+) \|", (HERE / "README.md").read_text("utf-8"), re.MULTILINE))
    assert used == present
    assert len(known) == 47
    assert {row for fixture in FIXTURES for row in fixture.rows} == known
    assert len({fixture.name for fixture in FIXTURES}) == len(FIXTURES)


def test_the_page_is_up_to_date() -> None:
    assert docs.PAGE.read_text("utf-8") == docs.page(), "run: python -m tests.adversarial.docs"
