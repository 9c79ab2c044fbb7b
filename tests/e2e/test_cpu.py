"""The real command line on the cpu target, from the flag to the exit code."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from akarena import paths

ROOT = paths.root()
BASELINE = (ROOT / "tasks" / "hip2hip" / "softmax" / "agent" / "kernel.hip").read_text("utf-8")
HEAD = (
    '#include <hip/hip_runtime.h>\nextern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t s) '
)


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


def start(arguments: Sequence[str], root: Path = ROOT) -> subprocess.Popen[str]:
    environment = {**os.environ, "AKARENA_ROOT": str(root), "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    argv = [sys.executable, "-m", "akarena", *arguments]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def akarena(*arguments: str, root: Path = ROOT) -> Answer:
    process = start(arguments, root)
    out, err = process.communicate(timeout=240)
    return Answer(process.returncode, out, err)


def evaluate(runs: Path, run_id: str, *arguments: str, root: Path = ROOT) -> Answer:
    common = ("--target", "cpu", "--runs-dir", str(runs), "--run-id", run_id, "--no-inspection")
    return akarena("evaluate", *common, *arguments, root=root)


def record(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_bytes())
    return found


def only_try(runs: Path, run_id: str, task: str, configuration: str) -> Path:
    return runs / run_id / "trials" / task / configuration / "a1" / "t1"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def first(runs: Path) -> Path:
    """One task of each category, solved by the solution and left alone by ``nop``."""
    tasks = ("hip2hip/softmax", "triton2triton/rms_norm", "pytorch2hip/cross_entropy")
    done = evaluate(runs, "first", "--agent", "solution", "--agent", "nop", "--seed", "1", "--tasks", *tasks)
    assert done.code == 0, done.err
    assert "report.html" in done.out
    return runs / "first"


def test_a_run_writes_both_reports_and_verifies(first: Path, runs: Path) -> None:
    assert {path.name for path in (first / "report").iterdir()} == {"data.json", "report.md", "report.html"}
    assert record(first, "manifest.json")["seed_source"] == "chosen"
    assert akarena("verify", "first", "--runs-dir", str(runs)).code == 0


def test_the_solution_is_right_and_nop_wins_nothing(first: Path) -> None:
    for trial in first.glob("trials/*/*/solution/a1/t1/trial.json"):
        found = json.loads(trial.read_bytes())
        assert (found["status"], found["seen"]["state"], found["unseen"]["state"]) == ("judged", "correct", "correct")
    for trial in first.glob("trials/*/*/nop/a1/t1"):
        assert record(trial, "trial.json")["status"] == "unchanged"
        assert record(trial, "trial.json")["score"]["won"] is not True
        for case in record(trial, "evaluation.json")["cases"]:
            assert case["baseline"]["verdict"] in ("correct", "not_checked")


def test_no_speed_is_invented_on_the_cpu_target(first: Path) -> None:
    for evaluation in first.glob("trials/*/*/*/a1/t1/evaluation.json"):
        found = json.loads(evaluation.read_bytes())
        assert found["quality"] is None
        assert all(case["speed"]["state"] == "absent" for case in found["cases"])


@pytest.mark.parametrize("harm", ["trial removed", "byte changed"])
def test_verify_names_what_was_done_to_a_sealed_run(first: Path, tmp_path: Path, harm: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(first, run)
    victim = run / "trials" / "hip2hip" / "softmax" / "nop"
    if harm == "trial removed":
        shutil.rmtree(victim)
    else:
        path = victim / "a1" / "t1" / "evaluation.json"
        path.write_bytes(path.read_bytes().replace(b'"pass"', b'"past"', 1))
    done = akarena("verify", str(run))
    assert done.code == 1
    assert "hip2hip/softmax" in done.out
    assert "nop" in done.out


def test_a_removed_trial_stays_in_every_rate(first: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(first, run)
    shutil.rmtree(run / "trials" / "hip2hip" / "softmax" / "solution")
    assert akarena("report", str(run)).code == 0
    row = next(row for row in record(run, "report/data.json")["agents"] if row["configuration_id"] == "solution")
    assert (row["planned"], row["missing"], row["correct_both"]["count"], row["correct_both"]["of"]) == (3, 1, 2, 3)


def test_the_same_seed_gives_the_same_unseen_and_other_values(first: Path, runs: Path) -> None:
    done = evaluate(runs, "again", "--seed-of", "first", "--tasks", "hip2hip/softmax")
    assert done.code == 0, done.err
    left, right = (
        record(only_try(runs, name, "hip2hip/softmax", "solution"), "evaluation.json") for name in ("first", "again")
    )
    assert [case["configuration"] for case in left["cases"]] == [case["configuration"] for case in right["cases"]]
    assert left["nonce"] != right["nonce"]


def write(text: str) -> str:
    """Return a command that leaves ``text`` as the candidate."""
    code = f"open('kernel.hip', 'wb').write(bytes.fromhex('{text.encode().hex()}'))"
    return shlex.join(["python3", "-c", code])


BAD = {
    "compile error": (BASELINE.replace("float sum", "flaot sum"), "build", {"compile_error"}),
    "wrong name": (BASELINE.replace("int softmax(", "int softmay("), "build", {"entry_not_found"}),
    "null pointer": (
        HEAD.replace("extern", "__global__ void k() { *(volatile float*)0 = 1; }\nextern")
        + "{ k<<<1, 1, 0, s>>>(); return hipGetLastError(); }",
        "seen_correct",
        {"crash"},
    ),
    "out of bounds": (
        BASELINE.replace(
            "    return hipGetLastError", "    spill<<<1, 1, 0, stream>>>(y, rows * cols);\n    return hipGetLastError"
        ).replace("// y[rows][cols]", "__global__ void spill(float* y, int n) { y[n] = 1.0f; }\n// y[rows][cols]"),
        "seen_correct",
        {"crash", "out_of_bounds"},
    ),
    "missing barrier": (
        BASELINE.replace("        __syncthreads();\n    }\n    const float result", "    }\n    const float result"),
        "seen_correct",
        {"wrong_values", "non_finite_mismatch"},
    ),
    "zeros": (
        HEAD + "{ return hipMemsetAsync(y, 0, sizeof(float) * rows * cols, s); }",
        "seen_correct",
        {"wrong_values"},
    ),
    "nothing": (HEAD + "{ return 0; }", "seen_correct", {"output_not_written"}),
    "error code": (HEAD + "{ return 801; }", "seen_correct", {"returned_error"}),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_candidate_is_refused_with_its_reason(name: str, runs: Path) -> None:
    text, gate, reasons = BAD[name]
    run_id = name.replace(" ", "-")
    done = evaluate(runs, run_id, "--agent", "command", "--command", write(text), "--tasks", "hip2hip/softmax")
    assert done.code == 0, done.err
    folder = only_try(runs, run_id, "hip2hip/softmax", "command")
    failed = [found for found in record(folder, "evaluation.json")["gates"] if found["verdict"] == "fail"]
    assert (failed[0]["gate"], failed[0]["reason"] in reasons) == (gate, True), failed[0]
    assert (folder / "candidate" / "kernel.hip").read_text("utf-8") == text
    trial = record(folder, "trial.json")
    assert trial["score"]["won"] is False
    assert trial["score"]["bounded_reward"] == 0


@pytest.mark.slow
def test_a_kernel_that_never_returns_is_stopped(runs: Path) -> None:
    text = HEAD + "{ volatile int on = 1; while (on) {} return 0; }"
    done = evaluate(runs, "loop", "--agent", "command", "--command", write(text), "--tasks", "hip2hip/softmax")
    assert done.code == 0, done.err
    gates = record(only_try(runs, "loop", "hip2hip/softmax", "command"), "evaluation.json")["gates"]
    assert [gate["reason"] for gate in gates if gate["verdict"] == "fail"] == ["timeout", "timeout"]


def test_an_agent_checks_and_leaves_nothing_behind(runs: Path) -> None:
    hidden = "-name site-packages -prune -o -name task.toml -print -o -path '*/judge/oracle.py' -print"
    script = f"python3 /akarena/check; sleep 1000 & find / {hidden} 2>/dev/null | wc -l; printf '\\377'"
    command = shlex.join(["sh", "-c", script])
    done = evaluate(runs, "checked", "--agent", "command", "--command", command, "--tasks", "hip2hip/softmax")
    assert done.code == 0, done.err
    folder = only_try(runs, "checked", "hip2hip/softmax", "command")
    trajectory = record(folder, "trajectory.json")
    assert (trajectory["end"], trajectory["check_calls"]) == ("finished", 1)
    said = (folder / "logs" / "agent.stdout").read_bytes()
    assert said.count(b"correct ") == 5
    assert b"19 calls left" in said
    assert said.endswith(b"0\n\xff")


def test_an_agent_has_its_time_and_no_more(runs: Path) -> None:
    command = "sh -c 'trap \"\" TERM; while true; do date >> kernel.hip; sleep 0.1; done'"
    began = time.monotonic()
    done = evaluate(
        *(runs, "late", "--agent", "command", "--command", command),
        *("--agent-seconds", "2", "--tasks", "hip2hip/softmax"),
    )
    assert done.code == 0, done.err
    assert time.monotonic() - began < 60
    assert record(only_try(runs, "late", "hip2hip/softmax", "command"), "trial.json")["agent_end"] == "timed_out"


def test_a_killed_run_is_resumed_without_doing_anything_twice(runs: Path) -> None:
    common = ("--target", "cpu", "--runs-dir", str(runs), "--run-id", "killed", "--no-inspection")
    process = start(("evaluate", *common, "--tasks", "hip2hip/softmax", "hip2hip/layer_norm"))
    first_trial = only_try(runs, "killed", "hip2hip/layer_norm", "solution") / "trial.json"
    end = time.monotonic() + 120
    while not first_trial.exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = first_trial.read_bytes()
    assert akarena("verify", "killed", "--runs-dir", str(runs)).code == 1
    done = akarena("resume", "killed", "--runs-dir", str(runs))
    assert done.code == 0, done.err
    assert first_trial.read_bytes() == before
    assert akarena("verify", "killed", "--runs-dir", str(runs)).code == 0
    refused = akarena("resume", "killed", "--runs-dir", str(runs))
    assert (refused.code, "sealed" in refused.err) == (2, True)


def test_a_baseline_that_fails_its_own_space_is_no_fault_of_the_agent(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tasks", tmp_path / "tasks")
    for name in ("schemas", "reports"):
        (tmp_path / name).symlink_to(ROOT / name)
    broken = tmp_path / "tasks" / "hip2hip" / "softmax" / "agent" / "kernel.hip"
    broken.write_text(BASELINE.replace("/ sum", "/ (sum + 1.0f)"))
    done = evaluate(runs, "defect", "--tasks", "hip2hip/softmax", root=tmp_path)
    assert done.code == 0, done.err
    assert "void: baseline_failed: baseline on seen-0" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("evaluate", "--agent", "solutoin"), "did you mean solution"),
        (("evaluate", "--tasks", "sofmax"), "did you mean softmax"),
        (("evaluate", "--target", "cpuu"), "did you mean cpu"),
        (("evaluate", "--sandbox", "bubblewarp"), "did you mean bubblewrap"),
        (("verify", "nope"), "run 'nope' does not exist"),
        (("resume", "nope"), "run 'nope' does not exist"),
        (("evaluate", "--attempts", "0"), "is not between 1 and 1000"),
        (("evaluate", "--agent", "command"), "needs --command"),
        (("evaluate", "--run-id", "A B"), "expected lower-case letters"),
        (("evaluat",), "invalid choice"),
    ],
)
def test_a_wrong_flag_is_told_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    done = akarena(*arguments)
    assert done.code == 2
    assert said in done.err
    message = [line for line in done.err.splitlines() if line.startswith("akarena: ")]
    assert len(message) == 1
    assert "Traceback" not in done.err
