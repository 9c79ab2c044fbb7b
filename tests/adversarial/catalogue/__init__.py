"""Every hostile candidate with what must refuse it, and the honest look-alikes that must pass."""

from __future__ import annotations

from akarena.records.task import TargetName
from tests.adversarial.catalogue.fixture import HERE, Expect, Fixture
from tests.adversarial.catalogue.hip import HIP
from tests.adversarial.catalogue.hip_process import HIP_PROCESS
from tests.adversarial.catalogue.hip_values import HIP_VALUES
from tests.adversarial.catalogue.honest import HONEST
from tests.adversarial.catalogue.newcomer_timing import NEWCOMER_TIMING
from tests.adversarial.catalogue.newcomer_values import NEWCOMER_VALUES
from tests.adversarial.catalogue.triton import TRITON

__all__ = ["ELSEWHERE", "FIXTURES", "HERE", "Expect", "Fixture", "on"]

FIXTURES = (*HIP, *HIP_VALUES, *HIP_PROCESS, *TRITON, *NEWCOMER_TIMING, *NEWCOMER_VALUES, *HONEST)

ELSEWHERE = {
    "C13": ("tests/unit/test_lint.py", '"ignores-input"'),
    "H3": ("tests/unit/test_workspace.py", "def test_only_declared_files_are_taken("),
    "H11": ("tests/e2e/test_agents.py", "def test_an_agent_can_write_its_workspace_alone_and_reach_no_network("),
}
"""Known cheats that candidates cannot show in full: the test that does, and a piece of its text."""


def on(target: TargetName) -> list[Fixture]:
    """Return the fixtures that mean something on a target."""
    return [fixture for fixture in FIXTURES if target in fixture.targets]
