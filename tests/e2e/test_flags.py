"""What a user can get wrong: exit code 2 and one line that says what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import SOFTMAX, Cli

ON_CPU = ("evaluate", "--target", "cpu", "--tasks", SOFTMAX)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("evaluate", "--agent", "solutoin"), "agent 'solutoin' does not exist; did you mean solution?"),
        (("evaluate", "--tasks", "sofmax"), "task 'sofmax' does not exist; did you mean softmax"),
        (("evaluate", "--target", "cpuu"), "target 'cpuu' does not exist; did you mean cpu"),
        (("evaluate", "--sandbox", "bubblewarp"), "sandbox 'bubblewarp' does not exist; did you mean bubblewrap?"),
        (("verify", "nope"), "run 'nope' does not exist (known: none)"),
        (("resume", "nope"), "run 'nope' does not exist"),
        (("report", "nope"), "run 'nope' does not exist"),
        (("verify",), "holds no sealed run"),
        (("evaluate", "--agent", "command"), "needs --command 'PROGRAM ARGUMENT ...'"),
        (("evaluate", "--agent", "command", "--command", "''"), "needs --command"),
        (("evaluate", "--agent", "command", "--command", "sh '"), "No closing quotation"),
    ],
)
def test_a_wrong_name_is_told_in_one_line(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    done = cli(*arguments)
    assert done.code == 2
    assert len(done.told) == 1
    assert said in done.told[0]
    assert done.out == ""
    assert "Traceback" not in done.err
    assert not cli.runs.exists()


def test_what_is_wrong_with_an_earlier_run_is_told_before_anything_starts(solved: Path, cli: Cli) -> None:
    before = sorted(cli.runs.iterdir())
    for arguments, said in (
        ((*ON_CPU, "--agent", "replay", "--replay", "solved:solutoin"), "did you mean solution?"),
        ((*ON_CPU, "--agent", "replay", "--replay", "solved"), "expected RUN:CONFIGURATION"),
        ((*ON_CPU, "--agent", "replay"), "needs --replay RUN:CONFIGURATION"),
        ((*ON_CPU, "--run-id", "solved"), "exists already"),
        (("resume", "solved"), "is sealed"),
    ):
        done = cli(*arguments)
        assert (done.code, said in done.err) == (2, True), done.err
        assert len(done.told) == 1
    assert sorted(cli.runs.iterdir()) == before
    assert solved in before


def test_a_place_that_cannot_hold_runs_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = Cli(tmp_path)(*ON_CPU, "--runs-dir", "file")
    assert (done.code, len(done.told)) == (2, 1)
    assert "--runs-dir file: cannot hold the run" in done.told[0]


def test_a_root_without_tasks_is_told(tmp_path: Path) -> None:
    done = Cli(tmp_path, tmp_path)("tasks", "list")
    assert (done.code, len(done.told)) == (2, 1)
    assert f"AKARENA_ROOT={tmp_path} holds no folder tasks/" in done.told[0]
