"""From what a raid saw to a verdict on each escape. Used by the tests of every sandbox."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.redteam import catalogue
from tests.redteam.catalogue import BY_NAME, Where
from tests.redteam.raid import EDITABLE, Raid

_ASKED = {
    ("POST", "/v1/messages"),
    ("POST", "/v1/responses"),
    # The preflight of the run.
    ("GET", "/v1/models"),
}
_HEADERS = {"accept", "accept-encoding", "content-length", "content-type", "host", "user-agent"}
_KEY_HEADERS = {"x-api-key", "authorization"}
_LOG_BYTES = 4 << 20
_THROUGH_GATEWAY = ("gateway", "service", "key")
_NEARBY = ("network", "gateway")


TRIED = [one.name for one in catalogue.ESCAPES if one.where is not Where.DIRECT]
"""The names of all escapes that a raid tries."""


def check(raid: Raid, name: str) -> None:
    """Fail where an escape was not stopped, or was not tried."""
    escape = BY_NAME[name]
    line = raid.lines.get(name)
    assert line is not None, f"{name} printed nothing: {raid.answers}"
    if escape.open and not raid.may_forbid:
        # Known and in the docs; the day that it is stopped, the docs are wrong.
        assert line.outcome == "got", line
        pytest.xfail(f"{name}: not stopped {escape.open}")
    if escape.where in (Where.INSIDE, Where.NEIGHBOUR):
        assert line.outcome == "stopped", line
        if escape.group in _THROUGH_GATEWAY:
            check_service(raid)
        if escape.group in _NEARBY:
            assert raid.calls == 0, "somebody came to the host's own listeners"
    elif escape.where is Where.LEFT:
        assert line.seen == "alive", "it was never there"
        assert name not in raid.survivors
    else:
        assert line.outcome == "left"
        _check_trial(raid, name)


def check_service(raid: Raid) -> None:
    """Only what the gateway lists reached the services, with its own headers and the real key."""
    assert raid.seen
    unlisted = [request for request in raid.seen if (request.method, request.path) not in _ASKED]
    assert unlisted == []
    key = raid.secrets.value("key")
    for request in raid.seen:
        names = set(request.headers)
        assert names - _KEY_HEADERS - {"anthropic-version"} <= _HEADERS, names
        given = {request.headers[name] for name in names & _KEY_HEADERS}
        assert given in ({key}, {f"Bearer {key}"})
        assert request.headers["host"].startswith("127.0.0.1:")


def _check_trial(raid: Raid, name: str) -> None:
    folder = raid.tries[name]
    trial, trajectory = _record(folder, "trial.json"), _record(folder, "trajectory.json")
    assert trial["status"] == "not_built"
    match name.partition(".")[0]:
        case "candidate":
            assert not (folder / "candidate" / EDITABLE[name]).exists()
            assert EDITABLE[name] not in trial["candidate_files"]
        case "cleanup":
            assert raid.answers[0][0] == 0, raid.answers[0][1]
            assert raid.precious[0] == raid.precious[1]
            assert raid.remains == ()
        case _ if name == "exhaust.output":
            for stream in ("stdout", "stderr"):
                assert (folder / "logs" / f"agent.{stream}").stat().st_size < _LOG_BYTES + 1000
        case _:
            # The look may fall between two of its files.
            held = re.match(r"the workspace holds (\d+) MiB in \d+ files, over its limits", trajectory["detail"])
            assert held is not None, trajectory["detail"]
            assert 2048 < int(held[1]) <= 6144
            assert trial["agent_seconds"] < 15


def _record(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_bytes())
    return found


def check_every_probe_ran(raid: Raid) -> None:
    """No probe is broken, and none was not run."""
    assert [code for code, _ in raid.answers] == [0, 0], raid.answers
    broken = [line for line in raid.lines.values() if line.outcome not in ("stopped", "got", "left", "end")]
    assert broken == []
    assert len(raid.lines) >= 35


def check_host(raid: Raid) -> None:
    """Nothing of the raid is left on the host but the run folders, and nothing in them tells a secret."""
    assert raid.survivors == frozenset()
    assert raid.remains == ()
    assert raid.precious[0] == raid.precious[1]
    secret = {kind: raid.secrets.value(kind).encode() for kind in ("key", "host", "oracle", "solution", "other")}
    forms = {kind: (value, base64.b64encode(value)[:-4], value.hex().encode()) for kind, value in secret.items()}
    for run in ("raid", "beside"):
        for path in (raid.cli.runs / run).rglob("*"):
            assert not path.is_symlink()
            if path.is_file():
                data = path.read_bytes()
                told = [kind for kind, values in forms.items() if any(value in data for value in values)]
                assert told == [], path
                assert path.stat().st_mode & 0o6000 == 0


def check_records(raid: Raid) -> None:
    """Both run folders are whole and hold what took place."""
    for run in ("raid", "beside"):
        done = raid.cli("verify", run)
        assert done.code == 0, done.err
    audit = [json.loads(line) for line in (raid.tries["probes"] / "logs" / "gateway.jsonl").read_bytes().splitlines()]
    assert sum(line["verdict"] == "refused" for line in audit) > 100
    assert {line["path"] for line in audit if line["verdict"] == "allowed"} <= {"/v1/messages", "/v1/models"}
