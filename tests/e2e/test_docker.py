"""Whole runs in containers of a real daemon, on images that `akarena build --target cpu` made."""

from __future__ import annotations

import shlex
import signal
import time
from pathlib import Path

import docker
import pytest

from tests.e2e.conftest import SOFTMAX, Cli, attempt, record

pytestmark = pytest.mark.docker

TASKS = (SOFTMAX, "triton2triton/rms_norm", "pytorch2hip/cross_entropy")
WAIT_SECONDS = 120


OWNER = "org.akarena.owner"


def left_of(pid: int) -> list[str]:
    """Return the containers and volumes that a process of akarena made and the daemon still has."""
    client = docker.from_env()
    try:
        containers = client.containers.list(all=True, filters={"label": OWNER}, ignore_removed=True)
        volumes = client.volumes.list(filters={"label": OWNER})
        labelled = [(str(one.name), one.labels) for one in containers]
        labelled += [(str(one.name), one.attrs["Labels"]) for one in volumes]
        return [name for name, labels in labelled if labels[OWNER].split(":")[2] == str(pid)]
    finally:
        client.close()


def evaluate_arguments(cli: Cli, run_id: str, *arguments: str) -> tuple[str, ...]:
    return (*cli.evaluate_arguments(run_id, "--sandbox", "docker"), *arguments)


def test_the_solution_is_judged_in_containers(cli: Cli) -> None:
    process = cli.start(*evaluate_arguments(cli, "containers", "--tasks", *TASKS))
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    run = cli.runs / "containers"
    for task in TASKS:
        trial = record(attempt(run, task, "solution"), "trial.json")
        assert (trial["status"], trial["unseen"]["state"]) == ("judged", "correct")
    lock = record(run, "lock.json")
    engine = lock["container_engine"]
    assert set(engine["images"]) == {"agent", "build", "judge", "worker"}
    assert all(digest.startswith("sha256:") for digest in engine["images"].values())
    assert len(lock["preflight"]) >= 40
    assert all(check["ok"] for check in lock["preflight"])
    assert cli("verify", str(run)).code == 0
    assert left_of(process.pid) == []


def test_a_killed_run_leaves_no_container_and_is_resumed(cli: Cli) -> None:
    command = shlex.join(["sh", "-c", "echo begun > begun; sleep 20"])
    arguments = evaluate_arguments(
        cli, "killed-containers", "--agent", "solution", "--agent", "command", "--command", command
    )
    process = cli.start(*arguments, "--tasks", SOFTMAX)
    end = time.monotonic() + WAIT_SECONDS
    # The order is random: while one of the two has an outcome, and containers of the other are there.
    complete = list[Path]()
    while not (complete and left_of(process.pid)) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
        complete = list(cli.runs.glob("killed-containers/trials/*/*/*/a1/attempt.json"))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert left_of(process.pid) != []
    (first,) = complete
    before = first.read_bytes()
    assert cli("preflight", "--target", "cpu", "--sandbox", "docker").code == 0
    assert left_of(process.pid) == []
    done = cli("resume", "killed-containers", "--no-inspection")
    assert done.code == 0, done.err
    assert first.read_bytes() == before
    assert cli("verify", "killed-containers").code == 0


def test_a_daemon_that_is_gone_is_told_in_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    done = cli(*evaluate_arguments(cli, "no-daemon", "--tasks", SOFTMAX))
    assert (done.code, len(done.told)) == (3, 1)
    assert "Traceback" not in done.err
    assert not (cli.runs / "no-daemon").exists()


def test_an_image_that_is_gone_is_told_in_one_line(cli: Cli, tmp_path: Path) -> None:
    images = tmp_path / ".akarena" / "images"
    images.mkdir(parents=True)
    for name in ("tasks", "schemas", "reports"):
        (tmp_path / name).symlink_to(cli.root / name)
    text = (cli.root / ".akarena" / "images" / "cpu.json").read_text("utf-8")
    image = next(image for image in record(cli.root / ".akarena" / "images", "cpu.json")["images"])
    (images / "cpu.json").write_text(text.replace(image["id"], "sha256:" + "0" * 64), "utf-8")
    done = Cli(cli.folder, tmp_path)(*evaluate_arguments(cli, "no-image", "--tasks", SOFTMAX))
    assert (done.code, len(done.told)) == (3, 1), done.err
    assert "akarena build" in done.err
