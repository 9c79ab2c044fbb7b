"""Hostile and honest candidates on a CUDA device, timed where they aim at the clock."""

from __future__ import annotations

import pytest

from akarena.records.task import TargetName
from tests import judging
from tests.adversarial.bench import Bench, Outcome
from tests.adversarial.catalogue import Fixture, on

CUDA = on(TargetName.CUDA)

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> dict[str, Outcome]:
    """Judge the chosen fixtures; the device is calibrated once."""
    if missing := judging.missing("cuda"):
        # `.ci/run` fails where a test was skipped.
        pytest.skip(missing)
    items = {item.name for item in request.session.items if isinstance(item, pytest.Function)}
    chosen = [fixture for fixture in CUDA if f"test_on_gpu[{fixture.name}]" in items]
    return {outcome.name: outcome for outcome in Bench(TargetName.CUDA).judge_all(chosen, at_once=4)}


@pytest.mark.parametrize("fixture", CUDA, ids=[fixture.name for fixture in CUDA])
def test_on_gpu(fixture: Fixture, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[fixture.name]
    assert outcome.escaped is None, f"{outcome.line()}\n{outcome.evidence}"
