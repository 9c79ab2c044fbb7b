"""From the plan to the report, and what verify, resume, replay and rejudge make of it."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import time
from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import BASELINE, SOFTMAX, Cli, attempt, copy_task, other_root, record, running
from tests.tasks import fixtures


def test_a_run_writes_both_reports_and_verifies(solved: Path, cli: Cli) -> None:
    assert {path.name for path in (solved / "report").iterdir()} == {"data.json", "report.md", "report.html"}
    done = cli("verify", "solved")
    assert (done.code, done.out) == (0, "runs/solved: verified\n")


def test_standard_output_is_json_alone_where_that_was_asked_for(solved: Path, cli: Cli) -> None:
    summary = json.loads((cli.folder / "solved.json").read_text())
    assert "solved" in json.dumps(summary)


def test_a_chosen_seed_is_recorded_as_chosen(solved: Path, cli: Cli) -> None:
    manifest, seed = record(solved, "manifest.json"), record(solved, "seed.json")
    assert (manifest["seed_source"], seed["seed_source"]) == ("chosen", "chosen")
    assert hashlib.sha256(bytes.fromhex(seed["seed"])).hexdigest() == manifest["seed_sha256"]
    assert list(cli.seeds.glob("solved-*")) == []
    assert "chosen" in (solved / "report" / "report.md").read_text("utf-8")


def test_the_solution_is_right_and_nop_wins_nothing(solved: Path) -> None:
    trials = sorted(solved.glob("trials/*/*/*/a1/t1"))
    assert len(trials) == 6
    for folder in trials:
        trial = record(folder, "trial.json")
        nop = folder.parts[-3] == "nop"
        assert trial["status"] == ("unchanged" if nop else "judged")
        # What an agent starts from in pytorch2hip is a signature without a body.
        state = "incorrect" if nop and trial["category"] == "pytorch2hip" else "correct"
        assert (trial["seen"]["state"], trial["unseen"]["state"]) == (state, state)
        assert trial["score"]["won"] is not True
        assert (folder / "patch.diff").read_bytes().startswith(b"" if nop else b"--- a/kernel.")
        cases = record(folder, "evaluation.json")["cases"]
        assert {case["configuration"]["split"] for case in cases} == {"seen", "unseen"}
        assert {case["baseline"]["verdict"] for case in cases} <= {"correct", "not_checked"}


def test_no_speed_is_invented_on_the_cpu_target(solved: Path) -> None:
    for path in solved.glob("trials/*/*/*/a1/t1/evaluation.json"):
        evaluation = json.loads(path.read_bytes())
        assert evaluation["quality"] is None
        reasons = {case["speed"]["reason"] for case in evaluation["cases"]}
        assert reasons <= {"not_measured_on_target", "earlier_gate_failed"}
    agents = record(solved, "report/data.json")["agents"]
    assert [row["planned"] for row in agents] == [3, 3]


@pytest.mark.parametrize("harm", ["trial removed", "byte changed", "candidate changed", "file added", "sum removed"])
def test_verify_names_what_was_done_to_a_sealed_run(solved: Path, cli: Cli, tmp_path: Path, harm: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(solved, run)
    victim = run / "trials" / SOFTMAX / "nop" / "a1" / "t1"
    match harm:
        case "trial removed":
            shutil.rmtree(victim.parent.parent)
            named = f"trials/{SOFTMAX}/nop"
        case "byte changed":
            path = victim / "evaluation.json"
            data = path.read_bytes()
            path.write_bytes(data.replace(b'"pass"', b'"past"', 1))
            assert path.read_bytes() != data
            named = f"trials/{SOFTMAX}/nop/a1/t1/evaluation.json"
        case "candidate changed":
            with (victim / "candidate" / "kernel.hip").open("a") as file:
                file.write("\n")
            named = f"trials/{SOFTMAX}/nop/a1/t1/candidate/kernel.hip"
        case "file added":
            (victim / "extra.json").write_text("{}")
            named = f"trials/{SOFTMAX}/nop/a1/t1/extra.json"
        case "sum removed":
            (run / "SHA256SUMS").unlink()
            named = "SHA256SUMS"
    done = cli("verify", str(run))
    assert done.code == 1
    assert any(line.startswith(named) for line in done.out.splitlines()), done.out
    assert len(done.told) == 1


def test_a_removed_trial_stays_in_every_rate(solved: Path, cli: Cli, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(solved, run)
    shutil.rmtree(run / "trials" / SOFTMAX / "solution")
    assert cli("report", str(run)).code == 0
    row = next(row for row in record(run, "report/data.json")["agents"] if row["configuration_id"] == "solution")
    assert (row["planned"], row["missing"]) == (3, 1)
    assert (row["correct_both"]["count"], row["correct_both"]["of"]) == (2, 3)


def test_a_replay_with_the_revealed_seed_sees_the_same_unseen_and_other_values(solved: Path, cli: Cli) -> None:
    run = cli.evaluate(
        *("again", "--agent", "replay", "--replay", "solved:solution", "--seed-of", "solved", "--tasks", SOFTMAX)
    )
    old, new = attempt(solved, SOFTMAX, "solution"), attempt(run, SOFTMAX, "replay")
    assert (new / "candidate" / "kernel.hip").read_bytes() == (old / "candidate" / "kernel.hip").read_bytes()
    assert record(new, "trial.json")["candidate_digest"] == record(old, "trial.json")["candidate_digest"]
    left, right = record(old, "evaluation.json"), record(new, "evaluation.json")
    assert [case["configuration"] for case in left["cases"]] == [case["configuration"] for case in right["cases"]]
    assert left["nonce"] != right["nonce"]
    assert record(run, "manifest.json")["seed_source"] == "revealed"
    # The same candidate again, in fresh processes, and what came of both is compared.
    done = cli("verify", "again", "--rejudge")
    assert done.code == 0, done.err
    assert done.out.count("correct  same") == 2
    assert record(cli.runs / "again-rejudged", "manifest.json")["tasks"] == [SOFTMAX]


def test_a_killed_run_is_resumed_without_doing_anything_twice(tmp_path: Path) -> None:
    cli = Cli(tmp_path, other_root(tmp_path / "root"))
    names = ["hip2hip/copy_0", "hip2hip/copy_1"]
    for name in names:
        copy_task(cli.root, SOFTMAX, name)
    code = "import time; time.sleep(86.25)"
    script = ("--command", shlex.join(["python3", "-c", code]), "--agent-seconds", "4")
    process = cli.start(*cli.evaluate_arguments("killed", "--agent", "solution", "--agent", "command", *script))
    try:
        # While an agent works, and another trial is complete; the order is random.
        end = time.monotonic() + 120
        complete = list[Path]()
        while not (complete and running(code)) and time.monotonic() < end and process.poll() is None:
            time.sleep(0.02)
            complete = list(cli.runs.glob("killed/trials/*/*/*/a1/attempt.json"))
        children = psutil.Process(process.pid).children(recursive=True)
    finally:
        process.kill()
        process.communicate()
    assert children
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert running(code) == []
    run = cli.runs / "killed"
    assert list(run.glob("trials/*/*/*/a1/attempt.json")) == complete
    kept = {path: path.read_bytes() for one in complete for path in one.parent.rglob("*") if path.is_file()}
    assert len([path for path in kept if path.name == "trial.json"]) == len(complete)
    (cut,) = [
        path.parents[1]
        for path in run.glob("trials/*/*/command/a1/t*/logs")
        if path.parents[1] / "attempt.json" not in kept
    ]
    assert len(list(cli.seeds.iterdir())) == 1
    refused = cli("verify", "killed")
    assert (refused.code, "not sealed" in refused.out) == (1, True)

    done = cli("resume", "killed", "--no-inspection")
    assert done.code == 0, done.err
    assert {path: path.read_bytes() for path in kept} == kept
    # The try that was cut short stays where it is, without an outcome, and does not count.
    assert sorted(path.parent.name for path in cut.glob("t*/logs")) == ["t1", "t2"]
    assert not (cut / "t1" / "trial.json").exists()
    assert record(cut, "attempt.json")["tries"] == [{"status": "unchanged", "try_number": 2}]
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    ended = [(event["task_id"], event["configuration_id"]) for event in events if event["kind"] == "try_ended"]
    assert sorted(ended) == sorted((name, agent) for name in names for agent in ("solution", "command"))
    row = record(run, "report/data.json")["agents"][0]
    assert (row["planned"], row["missing"]) == (2, 0)
    assert cli("verify", "killed").code == 0
    assert list(cli.seeds.iterdir()) == []
    again = cli("resume", "killed")
    assert (again.code, "sealed" in again.err) == (2, True)


def test_a_baseline_that_fails_its_own_space_is_no_fault_of_the_agent(tmp_path: Path) -> None:
    cli = Cli(tmp_path, other_root(tmp_path / "root"))
    folder = copy_task(cli.root, SOFTMAX)
    (folder / "agent" / "kernel.hip").write_text(BASELINE.replace("/ sum", "/ (sum + 1.0f)"))
    done = cli(*cli.evaluate_arguments("defect"))
    assert done.code == 0, done.err
    told = [line for line in done.err.splitlines() if "void: baseline_failed: baseline on seen-0" in line]
    assert len(told) == 1
    tries = record(cli.runs / "defect" / "trials" / SOFTMAX / "solution" / "a1", "attempt.json")["tries"]
    assert [found["status"] for found in tries] == ["void", "void"]
    row = record(cli.runs / "defect", "report/data.json")["agents"][0]
    assert (row["planned"], row["void"], row["correct_both"]["of"]) == (1, 1, 1)
    assert cli("verify", "defect").code == 0


def test_a_task_that_cannot_be_read_stops_everything(tmp_path: Path) -> None:
    cli = Cli(tmp_path, other_root(tmp_path / "root"))
    copy_task(cli.root, SOFTMAX, "hip2hip/fine")
    folder = copy_task(cli.root, SOFTMAX)
    fixtures.edit(folder / "task.toml", ("difficulty = ", "dificulty = "))
    done = cli(*cli.evaluate_arguments("broken"))
    assert done.code == 2
    assert len(done.told) == 1
    assert "softmax/task.toml" in done.told[0]
    assert "dificulty" in done.told[0]
    assert not (cli.runs / "broken").exists()
