"""Bad candidates in one run, one after the other: each is refused with its reason and harms none that comes after it.

Every case is a copy of one task whose ``agent/act.sh`` leaves what the case is about; a ``command`` agent runs it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from akarena import cli as command_line
from akarena import judgement
from akarena.records.task import TargetName
from tests.e2e.conftest import BASELINE, SOFTMAX, Cli, attempt, copy_task, first_failure, other_root, record, running

HEAD = (
    '#include <hip/hip_runtime.h>\nextern "C" int softmax(float* y, const float* x, int rows, int cols, hipStream_t s) '
)
BARRIER = "        __syncthreads();\n    }\n    const float result"


def edited(*changes: tuple[str, str]) -> str:
    """Return the baseline with changes; each must apply."""
    text = BASELINE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def with_extra(kernel: str, launch: str) -> str:
    """Return the baseline with one more kernel and its launch at the end."""
    return edited(
        ("// y[rows][cols]", f"__global__ void extra(float* y, float* x, int n) {{ {kernel} }}\n// y[rows][cols]"),
        ("    return hipGetLastError", f"    {launch}\n    return hipGetLastError"),
    )


EXTRA = "extra<<<1, 1, 0, stream>>>(y, const_cast<float*>(x), rows * cols);"
KERNELS = {
    "compile_error": (edited(("float sum", "flaot sum")), "build", {"compile_error"}),
    "wrong_name": (edited(("int softmax(", "int softmay(")), "build", {"entry_not_found"}),
    "null_pointer": (with_extra("*(volatile float*)0 = 1;", EXTRA), "seen_correct", {"crash"}),
    "host_crash": (HEAD + "{ __builtin_trap(); }", "seen_correct", {"crash"}),
    "exits": ("#include <unistd.h>\n" + HEAD + "{ _exit(0); }", "seen_correct", {"crash"}),
    "behind": (with_extra("y[n] = 1.0f;", EXTRA), "seen_correct", {"crash", "out_of_bounds"}),
    "in_front": (with_extra("y[-1] = 1.0f;", EXTRA), "seen_correct", {"out_of_bounds"}),
    "far_behind": (
        with_extra("y[n + 5000] = 1.0f;", EXTRA),
        "seen_correct",
        {"crash", "out_of_bounds", "input_changed"},
    ),
    "no_barrier": (
        edited((BARRIER, "    }\n    const float result")),
        "seen_correct",
        {"wrong_values", "non_finite_mismatch"},
    ),
    "changes_input": (with_extra("x[n - 1] = 0.5f;", EXTRA), "seen_correct", {"input_changed"}),
    "nothing": (HEAD + "{ return 0; }", "seen_correct", {"output_not_written"}),
    "last_element_left": (
        with_extra('y[n - 1] = __builtin_nanf("");', EXTRA),
        "seen_correct",
        {"non_finite_mismatch"},
    ),
    "error_code": (HEAD + "{ return 801; }", "seen_correct", {"returned_error"}),
}
SCRIPTS = {
    "zeros": (
        # As an agent would do it, with Python in the sandbox.
        "python3 - <<'END'\n"
        "text = open('kernel.hip').read()\n"
        "end = text.index('extern \"C\"')\n"
        "open('kernel.hip', 'w').write(text[:end] + 'extern \"C\" int softmax(float* y, const float* x, int rows, '\n"
        "    'int cols, hipStream_t s) { return hipMemsetAsync(y, 0, sizeof(float) * rows * cols, s); }')\n"
        "END\n",
        "seen_correct",
        "wrong_values",
    ),
    "symlink": ("ln -sf /etc/passwd kernel.hip\n", "scope", "unreadable_file"),
    "removed": ("rm kernel.hip\n", "scope", "missing_file"),
    "pipe": ("rm kernel.hip; mkfifo kernel.hip\n", "scope", "unreadable_file"),
    "huge": ("head -c 2000000 /dev/zero > kernel.hip\n", "scope", "unreadable_file"),
}


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run over all cases; the last task is handed in as it was found."""
    folder = tmp_path_factory.mktemp("refused")
    cli = Cli(folder, other_root(folder / "root"))
    for name, (text, _, _) in KERNELS.items():
        agent = copy_task(cli.root, SOFTMAX, f"hip2hip/case_{name}") / "agent"
        (agent / "other.hip").write_text(text)
        (agent / "act.sh").write_text("cp other.hip kernel.hip\n")
    for name, (script, _, _) in SCRIPTS.items():
        (copy_task(cli.root, SOFTMAX, f"hip2hip/case_{name}") / "agent" / "act.sh").write_text(script)
    agent = copy_task(cli.root, SOFTMAX, "hip2hip/last") / "agent"
    (agent / "act.sh").write_text("echo '// mine' >> kernel.hip\n")
    run = cli.evaluate("refused", "--agent", "command", "--command", "sh act.sh")
    done = cli("verify", "refused")
    assert done.code == 0, done.out
    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_a_bad_kernel_is_refused_with_its_reason(name: str, refused: Path) -> None:
    text, gate, reasons = KERNELS[name]
    folder = attempt(refused, f"hip2hip/case_{name}", "command")
    failure = first_failure(folder)
    assert (failure["gate"], failure["reason"] in reasons) == (gate, True), failure
    assert (folder / "candidate" / "kernel.hip").read_text("utf-8") == text
    check_nothing_is_gained(folder, built=gate != "build")


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_what_an_agent_leaves_in_place_of_its_file_is_refused(name: str, refused: Path) -> None:
    _, gate, reason = SCRIPTS[name]
    folder = attempt(refused, f"hip2hip/case_{name}", "command")
    failure = first_failure(folder)
    assert (failure["gate"], failure["reason"]) == (gate, reason), failure
    assert [path.name for path in (folder / "candidate").iterdir()] == (["kernel.hip"] if name == "zeros" else [])
    check_nothing_is_gained(folder, built=gate != "scope")


def check_nothing_is_gained(folder: Path, *, built: bool) -> None:
    trial = record(folder, "trial.json")
    assert trial["status"] == ("judged" if built else "not_built")
    assert trial["score"]["won"] is False
    assert trial["score"]["bounded_reward"] == 0
    assert trial["score"]["paper_score"] == (20 if built else 0)
    if built:
        assert (trial["seen"]["state"], trial["unseen"]["state"]) == ("incorrect", "incorrect")


@pytest.mark.slow
def test_the_evidence_names_line_and_place(refused: Path) -> None:
    def evidence(name: str) -> str:
        return str(first_failure(attempt(refused, f"hip2hip/case_{name}", "command"))["evidence"])

    assert "flaot" in evidence("compile_error")
    assert "signal 11" in evidence("null_pointer")
    assert "801" in evidence("error_code")
    assert "expected" in evidence("zeros")
    assert "kernel.hip" in evidence("symlink")
    assert "root:" not in evidence("symlink")


@pytest.mark.slow
def test_an_honest_trial_after_all_of_them_is_right(refused: Path) -> None:
    trial = record(attempt(refused, "hip2hip/last", "command"), "trial.json")
    assert (trial["seen"]["state"], trial["unseen"]["state"]) == ("correct", "correct")
    row = record(refused, "report/data.json")["agents"][0]
    planned = len(KERNELS) + len(SCRIPTS) + 1
    assert (row["planned"], row["void"], row["missing"]) == (planned, 0, 0)
    assert (row["correct_both"]["count"], row["correct_both"]["of"]) == (1, planned)


def test_a_kernel_that_never_returns_is_stopped_and_the_next_one_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = Cli(tmp_path, other_root(tmp_path / "root"))
    agent = copy_task(cli.root, SOFTMAX, "hip2hip/a_hang") / "agent"
    (agent / "other.hip").write_text(
        with_extra("volatile float* p = y; while (p[0] == p[0] || p[0] != p[0]) {}", EXTRA)
    )
    (agent / "act.sh").write_text("cp other.hip kernel.hip\n")
    (copy_task(cli.root, SOFTMAX, "hip2hip/b_next") / "agent" / "act.sh").write_text("echo '//' >> kernel.hip\n")
    limits: dict[TargetName, Any] = {TargetName.CPU: 2.0}
    # The only knob there is; it is why this runs in the process of the test.
    monkeypatch.setattr(judgement, "_CALL_SECONDS", limits)
    monkeypatch.setenv("AKARENA_ROOT", str(cli.root))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    arguments = cli.evaluate_arguments("hang", "--agent", "command", "--command", "sh act.sh")
    assert command_line.main(arguments) == 0
    gates = record(attempt(cli.runs / "hang", "hip2hip/a_hang", "command"), "evaluation.json")["gates"]
    assert [gate["reason"] for gate in gates if gate["verdict"] == "fail"] == ["timeout", "timeout"]
    following = record(attempt(cli.runs / "hang", "hip2hip/b_next", "command"), "trial.json")
    assert (following["seen"]["state"], following["unseen"]["state"]) == ("correct", "correct")
    assert running("/kernel/kernel.so") == []
