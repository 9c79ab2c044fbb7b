"""The red-team agent in every sandbox."""

from __future__ import annotations

import pytest

from tests.redteam import raid as raids
from tests.redteam import verdicts
from tests.redteam.catalogue import BUBBLEWRAP, DOCKER
from tests.redteam.raid import Raid


@pytest.fixture(scope="module", params=[BUBBLEWRAP, pytest.param(DOCKER, marks=pytest.mark.docker)])
def raid(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Raid:
    return raids.carry_out(request.param, tmp_path_factory.mktemp("raid"))


@pytest.mark.parametrize("name", verdicts.TRIED)
def test_an_escape_is_stopped(raid: Raid, name: str) -> None:
    verdicts.check(raid, name)


def test_every_probe_ran(raid: Raid) -> None:
    verdicts.check_every_probe_ran(raid)


def test_nothing_is_left_on_the_host(raid: Raid) -> None:
    verdicts.check_host(raid)


def test_the_records_are_whole(raid: Raid) -> None:
    verdicts.check_records(raid)
