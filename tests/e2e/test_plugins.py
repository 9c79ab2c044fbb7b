"""The guide for agents of one's own, followed to the letter."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import ROOT, SOFTMAX, Cli, attempt, record

GUIDE = (ROOT / "docs" / "plugins.md").read_text("utf-8")
BLOCKS = re.findall(r"^```([^\n]*)\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
"""What stands behind the fence, and the text within."""
COMMANDS = [shlex.split(line) for words, block in BLOCKS if not words for line in block.splitlines()]


def files(folder: Path) -> Path:
    """Write the files of the guide."""
    folder.mkdir()
    for words, text in BLOCKS:
        if words:
            (folder / words.split()[1]).write_text(text)
    return folder


def evaluate(cli: Cli, run_id: str, command: list[str], *further: str) -> Path:
    assert command[:2] == ["akarena", "evaluate"]
    assert command[-2:] == ["--tasks", "softmax"]
    return cli.evaluate(run_id, "--sandbox", "bubblewrap", *further, *command[2:])


def candidate(run: Path, configuration: str) -> str:
    return (attempt(run, SOFTMAX, configuration) / "candidate" / "kernel.hip").read_text("utf-8")


def test_every_command_of_the_guide_is_followed_here() -> None:
    assert [command[:2] for command in COMMANDS] == [
        ["akarena", "evaluate"],
        ["akarena", "evaluate"],
        ["pip", "install"],
        ["akarena", "evaluate"],
    ]


def test_an_agent_by_a_command(cli: Cli) -> None:
    run = evaluate(cli, "by-command", COMMANDS[0])
    assert candidate(run, "command").endswith("\n// faster\n")
    assert record(attempt(run, SOFTMAX, "command"), "trial.json")["status"] == "judged"


def test_agents_by_a_file(cli: Cli, tmp_path: Path) -> None:
    folder = files(tmp_path / "guide")
    command = [str(folder / word) if word == "mine.toml" else word for word in COMMANDS[1]]
    run = evaluate(cli, "by-file", command)
    assert candidate(run, "adds-a-comment").endswith("\n// faster\n")
    assert record(attempt(run, SOFTMAX, "does-nothing"), "trial.json")["status"] == "unchanged"
    assert "adds-a-comment" in (run / "report" / "report.md").read_text("utf-8")


def test_an_agent_by_a_package(cli: Cli, tmp_path: Path) -> None:
    folder, site = files(tmp_path / "akarena-commenter"), tmp_path / "site"
    offline = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(site))
    assert COMMANDS[2] == ["pip", "install", "./akarena-commenter"]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run([sys.executable, "-m", "pip", "install", *offline, str(folder)], check=True, env=environment)

    installed = Cli(cli.folder, python_path=site)
    listed = installed("agents", "list")
    assert (listed.code, "adds a comment" in listed.out) == (0, True)
    refused = installed(*installed.evaluate_arguments("no-model", "--agent", "commenter"))
    assert (refused.code, refused.told) == (2, ["akarena: commenter needs --model NAME"])
    run = evaluate(installed, "by-package", COMMANDS[3])
    assert candidate(run, "commenter").endswith("\n// fast\n")
    trajectory = record(attempt(run, SOFTMAX, "commenter"), "trajectory.json")
    assert (trajectory["agent"], trajectory["steps"][0]["tool"]) == ("commenter", "append")
    assert cli("verify", "by-package").code == 0
