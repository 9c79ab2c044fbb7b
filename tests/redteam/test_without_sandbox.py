"""The probes can succeed: outside any sandbox they get what they look for. And the catalogue fits them and the docs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.redteam import agent, catalogue, docs, host
from tests.redteam.catalogue import ESCAPES, GROUPS, Where
from tests.redteam.probes import main as probes_main
from tests.redteam.probes import outlive
from tests.redteam.probes.kit import PROBES, Stopped, doors, nothing
from tests.redteam.raid import EDITABLE
from tests.redteam.told import echo_turns, error_turns, facts
from tests.services import StandIn, Turn

SHOWN = [escape.name for escape in ESCAPES if escape.self_test]
SEED = "5eed" * 16
UNSEEN = {"names": ["rows", "cols"], "values": [37, 1021]}


def _plant(folder: Path, secrets: host.Secrets, traces: host.Traces) -> None:
    for kind in host.KINDS:
        (folder / f"{kind}.txt").write_text(secrets.value(kind))
    (folder / "job.json").write_text(json.dumps({"seed": SEED, "values": dict(zip(*UNSEEN.values(), strict=True))}))
    (folder / "akarena-work-x").mkdir()
    (folder / "start" / traces.name).write_text("left")


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the probes print without a sandbox, with a service in the place of the gateway."""
    folder = tmp_path_factory.mktemp("open") / "here"
    start = folder / "start"
    start.mkdir(parents=True)
    secrets, traces = host.Secrets(), host.Traces()
    _plant(folder, secrets, traces)
    key = secrets.value("key")
    script = (Turn(), *error_turns(key), *echo_turns(key))
    with ExitStack() as stack:
        listeners = stack.enter_context(host.Listeners())
        service = stack.enter_context(StandIn(*script))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        abstract.bind("\0" + traces.name)
        abstract.listen()
        given = {"secret": str(folder / "host.txt"), "hidden": [str(folder)], "gateway": "", "check": ""}
        plan = {
            "acts": ["probes"],
            "names": SHOWN,
            "marks": secrets.marks,
            "seed": SEED[:16],
            "unseen": [UNSEEN],
            "roots": [str(folder)],
            "facts": facts({**given, **traces.facts("other"), **traces.facts("earlier")}, listeners, service),
        }
        agent.assemble(start, plan)
        argument = stack.enter_context(subprocess.Popen(["sleep", "60", "-", key], stderr=subprocess.DEVNULL))
        done = subprocess.run(
            [sys.executable, agent.PROGRAM, key],
            cwd=start,
            env={**os.environ, "AKARENA_SERVICE_URL": service.url, "SOME_KEY": key},
            capture_output=True,
            timeout=120,
            check=False,
        )
        argument.kill()
    assert done.returncode == 0, done.stderr
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", SHOWN)
def test_a_probe_gets_it_without_a_sandbox(lines: dict[str, dict[str, Any]], name: str) -> None:
    assert lines[name]["outcome"] == "got", lines[name]


def test_many_probes_are_shown_to_work() -> None:
    assert len(SHOWN) >= 30
    assert {name.partition(".")[0] for name in SHOWN} >= {
        "network",
        "gateway",
        "service",
        "key",
        "files",
        "judge",
        "trials",
    }


def test_a_refusal_that_was_not_named_is_no_refusal() -> None:
    def gone() -> None:
        Path("/nowhere/at/all").read_text()

    with pytest.raises(Stopped, match="No such file"):
        doors({"file": gone}, 2)
    with pytest.raises(OSError, match="file"):
        doors({"file": gone}, 1)
    assert doors({"file": gone, "open": lambda: None}, 2) == "open"
    assert nothing("x", "y") == "x"


def test_every_probe_has_its_place_in_the_catalogue() -> None:
    by_where = {where: set(catalogue.names(where)) for where in Where}
    assert set(PROBES) == by_where[Where.INSIDE] | by_where[Where.NEIGHBOUR]
    assert set(outlive.KINDS) == by_where[Where.LEFT]
    assert by_where[Where.TRIAL] == set(probes_main.ACTS) | set(EDITABLE)
    assert len(ESCAPES) == len(catalogue.BY_NAME) >= 35
    assert {escape.group for escape in ESCAPES} == set(GROUPS)


def test_hardly_any_escape_is_known_to_succeed() -> None:
    assert [escape.name for escape in ESCAPES if escape.open] == ["exhaust.first_to_die"]


def test_the_docs_hold_the_current_tables() -> None:
    text = docs.PAGE.read_text("utf-8")
    assert docs.updated(text) == text, "run python -m tests.redteam.docs"
