"""The ``command`` agent: what it can see, what it can leave behind, and how its end is told."""

from __future__ import annotations

import re
import shlex
import time
from pathlib import Path

import pytest

from akarena import configurations, paths, tasks
from akarena.records.task import TargetName
from tests.e2e.conftest import BASELINE, SOFTMAX, Cli, attempt, copy_task, other_root, record, running

SLEEP = "98761"
CHECKS = f"""\
sleep {SLEEP} &
setsid sleep {SLEEP} &
nohup sleep {SLEEP} >/dev/null 2>&1 &
echo "--- right"; python3 /akarena/check; echo "exit $?"
sed -i 's/float sum/flaot sum/' kernel.hip
echo "--- not built"; python3 /akarena/check; echo "exit $?"
rm kernel.hip
echo "--- gone"; python3 /akarena/check; echo "exit $?"
echo "--- none left"; python3 /akarena/check; echo "exit $?"
printf '\\377'
printf '\\377' >&2
cp pristine.hip kernel.hip
"""
LOOKS = """\
env > seen.txt
find / \\( -path /usr -o -path '/lib*' -o -path /proc -o -path /sys -o -name site-packages -o -name 'python3*' \\) \\
  -prune -o -print >> seen.txt
grep -E '/(oracle.py|task.toml|solution|SHA256SUMS|seeds|job.json|akarena/judge)(/|$)' seen.txt > forbidden.txt
cat /proc/mounts > mounts.txt
grep -rl akarena /etc /tmp /home /run /var 2>/dev/null | grep -vE '/site-packages/|/bin/akarena$' > written.txt
(echo > /akarena/prompt.md) 2> wrong.txt || echo refused >> wrong.txt
printf %s "$AKARENA_PROMPT" | cmp - "$AKARENA_PROMPT_FILE" && echo same > prompt.txt
python3 -c "
import socket
try:
    socket.create_connection(('127.0.0.1', 80), timeout=2)
except OSError as error:
    print(type(error).__name__)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    s.connect(('8.8.8.8', 53))
    print('reached')
except OSError as error:
    print('unreachable')
" > network.txt
for name in seen forbidden mounts written wrong prompt network; do echo "=== $name"; cat $name.txt; done
"""
FAILS = "echo sorry >&2; exit 1\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run in which each task's ``act.sh`` says what the agent does there."""
    folder = tmp_path_factory.mktemp("agents")
    cli = Cli(folder, other_root(folder / "root"))
    for name, script in {"checks": CHECKS, "looks": LOOKS, "fails": FAILS}.items():
        agent = copy_task(cli.root, SOFTMAX, f"hip2hip/agent_{name}") / "agent"
        (agent / "act.sh").write_text(script)
        (agent / "pristine.hip").write_text(BASELINE)
    done = cli.evaluate("agents", "--agent", "command", "--command", "sh act.sh", "--check-calls", "3")
    assert cli("verify", "agents").code == 0
    return done


def said(run: Path, name: str) -> bytes:
    return (attempt(run, f"hip2hip/agent_{name}", "command") / "logs" / "agent.stdout").read_bytes()


def test_an_agent_checks_as_often_as_it_may(run: Path) -> None:
    right, not_built, gone, none_left = said(run, "checks").decode(errors="replace").split("--- ")[1:]
    assert right.count("\ncorrect ") == 5
    assert right.count("rows = ") == 5
    assert "2 calls left\nexit 0" in right
    assert "build: compile_error" in not_built
    assert "flaot" in not_built
    assert "1 calls left\nexit 1" in not_built
    assert "kernel.hip is missing" in gone
    assert "0 calls left\nexit 1" in gone
    assert "no call is left of 3\nexit 2" in none_left
    trajectory = record(attempt(run, "hip2hip/agent_checks", "command"), "trajectory.json")
    assert (trajectory["end"], trajectory["check_calls"]) == ("finished", 3)
    assert [step["kind"] for step in trajectory["steps"]] == ["tool_call", "check", "check", "check"]


def test_a_check_tells_seen_configurations_and_no_others(run: Path) -> None:
    task = tasks.load(paths.root() / "tasks" / SOFTMAX).record
    seen = [case.values for case in configurations.seen(task, TargetName.CPU)]
    pairs = re.findall(r"cols = (\d+), rows = (\d+)", said(run, "checks").decode(errors="replace"))
    told: list[dict[str, object]] = [{"rows": int(rows), "cols": int(cols)} for cols, rows in pairs]
    assert [dict(values) for values in seen] == told


def test_bytes_that_are_no_text_are_kept_and_harm_nothing(run: Path) -> None:
    folder = attempt(run, "hip2hip/agent_checks", "command")
    assert said(run, "checks").endswith(b"\xff")
    assert (folder / "logs" / "agent.stderr").read_bytes().endswith(b"\xff")
    assert record(folder, "trial.json")["status"] == "unchanged"


def test_nothing_of_an_agent_runs_on(run: Path) -> None:
    assert said(run, "checks")
    assert running(SLEEP) == []


def sections(run: Path) -> dict[str, str]:
    parts = said(run, "looks").decode().split("=== ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}


def test_an_agent_sees_its_files_and_nothing_of_the_judge(run: Path) -> None:
    found = sections(run)
    assert found["forbidden"] == ""
    assert found["written"] == ""
    listed = set(found["seen"].splitlines())
    assert {"/workspace/kernel.hip", "/akarena/prompt.md", "/akarena/check", "/akarena/check.sock"} <= listed
    assert not any("layer_norm" in line or "/runs/" in line or line.endswith(".git") for line in listed)
    names = {line.split("=")[0] for line in found["seen"].splitlines() if "=" in line}
    assert not any(word in name for name in names for word in ("SEED", "NONCE", "XDG_STATE", "ROOT"))
    assert found["prompt"] == "same\n"


def test_an_agent_can_write_its_workspace_alone_and_reach_no_network(run: Path) -> None:
    found = sections(run)
    assert "refused" in found["wrong"]
    writable = {line.split()[1] for line in found["mounts"].splitlines() if "rw" in line.split()[3].split(",")} - {
        "/proc",
        "/dev",
    }
    assert all(path == "/workspace" or path.startswith(("/dev/", "/tmp", "/home", "/run")) for path in writable), (
        writable
    )
    assert found["network"].splitlines() == ["ConnectionRefusedError", "unreachable"]


def test_a_program_that_fails_and_changes_nothing_wins_nothing(run: Path) -> None:
    folder = attempt(run, "hip2hip/agent_fails", "command")
    trial, trajectory = record(folder, "trial.json"), record(folder, "trajectory.json")
    assert (trajectory["end"], trajectory["exit_code"]) == ("crashed", 1)
    assert (trial["status"], trial["agent_end"]) == ("unchanged", "crashed")
    assert trial["score"]["won"] is not True
    assert (folder / "logs" / "agent.stderr").read_bytes() == b"sorry\n"
    row = record(run, "report/data.json")["agents"][0]
    assert (row["planned"], row["won"]["count"] if row["won"] else 0) == (3, 0)


def test_an_agent_has_its_time_and_no_more(cli: Cli) -> None:
    marker = "87654.25"
    writer = "while true; do date >> kernel.hip; sleep 0.1; done"
    code = f"trap '' TERM INT HUP; ({writer}) & while true; do sleep {marker}; done"
    began = time.monotonic()
    run = cli.evaluate(
        *("late", "--agent", "command", "--command", shlex.join(["sh", "-c", code]), "--agent-seconds", "2"),
        *("--tasks", SOFTMAX),
    )
    assert time.monotonic() - began < 60
    assert running(marker) == []
    folder = attempt(run, SOFTMAX, "command")
    trial = record(folder, "trial.json")
    assert (trial["agent_end"], trial["status"], trial["reason"]) == ("timed_out", "not_built", "compile_error")
    assert 2 <= trial["agent_seconds"] < 15
    # What was judged is what was kept, although the file was being written to the last.
    assert record(folder, "evaluation.json")["candidate_digest"] == trial["candidate_digest"]
    assert cli("verify", "late").code == 0


def test_a_program_that_is_not_there_is_told(cli: Cli) -> None:
    run = cli.evaluate("nothing", "--agent", "command", "--command", "nosuchprogram", "--tasks", SOFTMAX)
    trajectory = record(attempt(run, SOFTMAX, "command"), "trajectory.json")
    assert trajectory["end"] == "crashed"
    assert "nosuchprogram" in trajectory["detail"]
