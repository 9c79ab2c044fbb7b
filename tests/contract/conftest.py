"""Every contract test runs on every registered sandbox; those on Docker are marked so."""

from __future__ import annotations

import pytest

from akarena import sandbox as registry
from akarena.sandbox.base import Sandbox
from tests.contract import helpers
from tests.contract.helpers import Runner

SANDBOXES = [pytest.param(name, marks=pytest.mark.docker) if name == "docker" else name for name in registry.names()]


@pytest.fixture(params=SANDBOXES)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return helpers.get(request.param)


@pytest.fixture
def runner(sandbox: Sandbox) -> Runner:
    return Runner(sandbox)
