"""The real command line in a subprocess, and small ways to look at what a run left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from akarena import paths
from tests.tasks import fixtures

ROOT = paths.root()
SOFTMAX = "hip2hip/softmax"
BASELINE = (ROOT / "tasks" / SOFTMAX / "agent" / "kernel.hip").read_text("utf-8")


@dataclass(frozen=True)
class Answer:
    """How one call of the command line ended."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> list[str]:
        """Lines that tell an error."""
        return [line for line in self.err.splitlines() if line.startswith("akarena: ")]


@dataclass(frozen=True)
class Cli:
    """The command line on the cpu target, with a folder for runs and one for the user's state."""

    folder: Path
    root: Path = ROOT
    python_path: Path = ROOT
    """A folder with further packages."""

    @property
    def runs(self) -> Path:
        """Where run folders lie."""
        return self.folder / "runs"

    @property
    def seeds(self) -> Path:
        """Where the seeds of unsealed runs lie."""
        return self.folder / "state" / "akarena" / "seeds"

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command."""
        environment = {
            **os.environ,
            "AKARENA_ROOT": str(self.root),
            "PYTHONPATH": os.pathsep.join(dict.fromkeys((str(ROOT), str(self.python_path)))),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "NO_COLOR": "1",
        }
        return subprocess.Popen(
            [sys.executable, "-m", "akarena", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=environment,
        )

    def __call__(self, *arguments: str) -> Answer:
        """Run a command to its end."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=240)
        return Answer(process.returncode, out, err)

    def evaluate_arguments(self, run_id: str, *arguments: str) -> Sequence[str]:
        """Return the arguments of an evaluation."""
        return ("evaluate", "--target", "cpu", "--run-id", run_id, "--no-inspection", *arguments)

    def evaluate(self, run_id: str, *arguments: str) -> Path:
        """Evaluate, expect that it succeeds, and return the run folder."""
        done = self(*self.evaluate_arguments(run_id, *arguments))
        assert done.code == 0, done.err
        return self.runs / run_id


def record(folder: Path, name: str) -> dict[str, Any]:
    """Read a JSON file."""
    found: dict[str, Any] = json.loads((folder / name).read_bytes())
    return found


def attempt(run: Path, task: str, configuration: str, number: int = 1) -> Path:
    """Return the folder of the try that counts."""
    folder = run / "trials" / task / configuration / f"a{number}"
    return folder / f"t{record(folder, 'attempt.json')['counted_try']}"


def first_failure(folder: Path) -> dict[str, Any]:
    """Return the first gate that failed in a try."""
    found: dict[str, Any] = next(
        gate for gate in record(folder, "evaluation.json")["gates"] if gate["verdict"] == "fail"
    )
    return found


def running(argument: str) -> list[psutil.Process]:
    """Return the processes of this machine that were given an argument."""
    return [process for process in psutil.process_iter(["cmdline"]) if argument in (process.info["cmdline"] or ())]


def other_root(folder: Path) -> Path:
    """Make a checkout without tasks, for ``AKARENA_ROOT``."""
    (folder / "tasks").mkdir(parents=True)
    for name in ("schemas", "reports"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def copy_task(root: Path, task: str, new_id: str | None = None) -> Path:
    """Copy a real task into another checkout, under another id if one is given; return its folder."""
    target = root / "tasks" / (new_id or task)
    shutil.copytree(ROOT / "tasks" / task, target, ignore=shutil.ignore_patterns("__pycache__"))
    if new_id:
        fixtures.edit(target / "task.toml", (f'id = "{task}"', f'id = "{new_id}"'))
    return target


@pytest.fixture(scope="session")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """The command line on this checkout's tasks."""
    return Cli(tmp_path_factory.mktemp("e2e"))


@pytest.fixture(scope="session")
def solved(cli: Cli) -> Path:
    """A run: one task of each category, solved by the solution and left alone by ``nop``."""
    tasks = (SOFTMAX, "triton2triton/rms_norm", "pytorch2hip/cross_entropy")
    done = cli(
        *cli.evaluate_arguments("solved", "--agent", "solution", "--agent", "nop", "--seed", "1", "--json"),
        *("--tasks", *tasks),
    )
    assert done.code == 0, done.err
    (cli.folder / "solved.json").write_text(done.out)
    return cli.runs / "solved"
