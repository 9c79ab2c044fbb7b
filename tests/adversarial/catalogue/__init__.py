"""Every hostile candidate with what must refuse it, and the honest look-alikes that must pass."""

from __future__ import annotations

from akarena.records.task import TargetName
from tests.adversarial.catalogue.fixture import HERE, Expect, Fixture
from tests.adversarial.catalogue.hip import HIP
from tests.adversarial.catalogue.honest import HONEST
from tests.adversarial.catalogue.triton import TRITON

__all__ = ["FIXTURES", "HERE", "Expect", "Fixture", "on"]

FIXTURES = (*HIP, *TRITON, *HONEST)


def on(target: TargetName) -> list[Fixture]:
    """Return the fixtures that mean something on a target."""
    return [fixture for fixture in FIXTURES if target in fixture.targets]
