"""Agents that behave badly, on the real command line: programs that act as those of vendors, and two sandboxes."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import SOFTMAX, Cli, attempt
from tests.services import StandIn

VENDORS = {"claude": "claude", "codex": "codex", "cursor": "cursor-agent"}
"""Agents, each with the name of its program."""
SANDBOXES = ("bubblewrap", pytest.param("docker", marks=pytest.mark.docker))
FAKE = Path(__file__).parent / "fakes" / "vendor.py"
GRACE_SECONDS = 1.0
STALL_SECONDS = 3.0
_SHORTER = f"""\
from akarena.agents import vendor
vendor.GRACE_SECONDS, vendor.STALL_SECONDS = {GRACE_SECONDS}, {STALL_SECONDS}
"""


@dataclass(frozen=True)
class Stage:
    """The command line with fake programs on the PATH, keys, and a service that answers."""

    cli: Cli
    service: StandIn

    def play(self, run_id: str, plays: Mapping[str, tuple[str, ...]], *further: str) -> dict[str, Path]:
        """Let vendors' programs play, all in one run on one task.

        Args:
            run_id: The run's name.
            plays: Names of agents, each with the arguments of its program.
            further: More arguments of ``evaluate``.

        Returns:
            The folder of the try that counts, by agent.
        """
        tables = ["schema_version = 1\n"]
        for agent, arguments in plays.items():
            service = "" if agent == "cursor" else f'service_url = "{self.service.url}"\nservice_key = "FIELD_KEY"\n'
            words = json.dumps(arguments)
            tables.append(f'[[agents]]\nid = "{agent}"\nagent = "{agent}"\narguments = {words}\n{service}')
        file = self.cli.folder / f"{run_id}.toml"
        file.write_text("\n".join(tables))
        run = self.cli.evaluate(
            *(run_id, "--agents-file", str(file), "--sandbox", "bubblewrap", "--tasks", SOFTMAX, *further)
        )
        return {agent: attempt(run, SOFTMAX, agent) for agent in plays}


@pytest.fixture(scope="session")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """The command line, on which agents have less patience to expect."""
    folder = tmp_path_factory.mktemp("field")
    further = folder / "further"
    further.mkdir()
    (further / "sitecustomize.py").write_text(_SHORTER)
    return Cli(folder, python_path=further)


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the fake programs on the PATH, and a key of each vendor into the environment."""
    for name in VENDORS.values():
        path = tmp_path / "fakes" / name / name
        path.parent.mkdir(parents=True)
        shutil.copy(FAKE, path)
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(path.parent), prepend=os.pathsep)
    for variable in ("FIELD_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CURSOR_API_KEY"):
        monkeypatch.setenv(variable, f"sk-{variable.lower()}-4471")


@pytest.fixture
def stage(cli: Cli, fakes: None) -> Iterator[Stage]:
    """Everything that a vendor's program needs."""
    with StandIn() as service:
        yield Stage(cli, service)


def run_command(cli: Cli, run_id: str, sandbox: str, script: str, *further: str) -> Path:
    """Let a shell script work on the task as the agent `command`; returns the folder of the try that counts."""
    command = shlex.join(["sh", "-c", script])
    arguments = ("--agent", "command", "--command", command, "--sandbox", sandbox, "--tasks", SOFTMAX, *further)
    return attempt(cli.evaluate(run_id, *arguments), SOFTMAX, "command")
