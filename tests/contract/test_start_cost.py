"""What a fresh container costs over a bare ``docker run`` of the same image, measured side by side."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time

import pytest

from tests.contract import helpers
from tests.contract.helpers import IMAGE, Runner

pytestmark = pytest.mark.docker

ROUNDS = 7
MOST_SECONDS = 1.5


def test_a_fresh_container_costs_little_more_than_a_bare_one() -> None:
    docker = shutil.which("docker")
    assert docker is not None, "the docker command line is what is compared with"
    runner = Runner(helpers.get("docker"))
    bare, ours = [], []
    for _ in range(ROUNDS):
        began = time.monotonic()
        subprocess.run([docker, "run", "--rm", "--network", "none", IMAGE, "python3", "-c", "pass"], check=True)
        middle = time.monotonic()
        result = runner.run("pass")
        bare.append(middle - began)
        ours.append(time.monotonic() - middle)
        assert result.exit_code == 0
    cost = statistics.median(ours) - statistics.median(bare)
    print(f"bare {statistics.median(bare):.2f} s, ours {statistics.median(ours):.2f} s, {ROUNDS} of each in turn")
    assert cost < MOST_SECONDS
