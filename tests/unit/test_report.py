"""The report as a whole: what is counted, what it depends on, and that its bytes are stable."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from akarena import paths, store
from akarena.errors import UserError
from akarena.records import LockRecord, ManifestRecord
from akarena.records.report import AgentRow, Answer, PublishedRecord, ReportRecord
from akarena.records.report_trial import TrialLine
from akarena.records.task import TargetName
from akarena.report import render_run, write_report
from akarena.report.build import build
from akarena.report.figures import plots
from akarena.report.published import published_cells
from tests.unit import builders
from tests.unit.builders import build_run, digest

SOFTMAX, NORM, GELU = "hip2hip/softmax", "triton2triton/rms_norm", "pytorch2hip/gelu"
Outcomes = Mapping[tuple[str, str, int], Sequence[str]]


def agent(report: ReportRecord, name: str) -> AgentRow:
    return next(row for row in report.agents if row.configuration_id == name)


def trials(report: ReportRecord) -> list[TrialLine]:
    return [trial for task in report.tasks for trial in task.trials]


def rewrite(path: Path, **changes: object) -> None:
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps(document | changes))


def on_cpu(root: Path, outcomes: Outcomes) -> Path:
    run = build_run(root, outcomes=outcomes, target=TargetName.CPU, seal=False)
    lock = run.read(LockRecord, run.lock)
    store.write_record(run.lock, lock.model_copy(update={"calibration": None}), replace=True)
    return root


def test_same_folder_same_bytes_in_any_process(tmp_path: Path) -> None:
    root = tmp_path / "run"
    build_run(root, agents=("cursor", "claude", "nop"), outcomes={(SOFTMAX, "claude", 1): ["wrong_unseen"]})
    once = render_run(root)
    assert set(once) == {"data.json", "report.md", "report.html"}
    assert render_run(root) == once
    moved = tmp_path / "elsewhere" / "copy"
    shutil.copytree(root, moved)
    code = (
        "import sys, hashlib; from pathlib import Path; from akarena.report import render_run\n"
        "for name, data in sorted(render_run(Path(sys.argv[1])).items()): print(name, hashlib.sha256(data).hexdigest())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "4242", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    result = subprocess.run(
        [sys.executable, "-c", code, str(moved)], capture_output=True, text=True, check=True, env=environment
    )
    expected = [f"{name} {hashlib.sha256(data).hexdigest()}" for name, data in sorted(once.items())]
    assert result.stdout.splitlines() == expected
    assert str(tmp_path).encode() not in b"".join(once.values())


def test_report_needs_no_docker_torch_or_runner(tmp_path: Path) -> None:
    build_run(tmp_path / "run")
    code = (
        "import sys; from pathlib import Path\n"
        "for name in ('docker', 'torch', 'triton', 'akarena.runner'): sys.modules[name] = None\n"
        "from akarena.report import render_run; render_run(Path(sys.argv[1]))\n"
        "loaded = {name for name, module in sys.modules.items() if module is not None}\n"
        "print(sorted(loaded & {'docker', 'torch', 'triton', 'akarena.runner', 'matplotlib.pyplot', 'tkinter'}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run")], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_the_example_has_the_report_that_its_records_give() -> None:
    root = Path(__file__).parents[2] / "reports" / "example" / "h200-solution"
    rendered = render_run(root)
    # The plots depend on the version of matplotlib, so that the page is left to `akarena verify`.
    for name in ("data.json", "report.md"):
        assert (root / "report" / name).read_bytes() == rendered[name], f"akarena report {root.name} writes it anew"


def test_data_json_is_a_valid_strict_record(tmp_path: Path) -> None:
    build_run(tmp_path / "run")
    data = render_run(tmp_path / "run")["data.json"]

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(data, parse_constant=refuse)
    assert ReportRecord.model_validate_json(data) == build(tmp_path / "run")


def test_write_report_replaces_and_leaves_the_sums_whole(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run")
    written = write_report(run.root)
    assert sorted(path.name for path in written) == ["data.json", "report.html", "report.md"]
    assert write_report(run.root) == written
    assert {path.name: path.read_bytes() for path in written} == render_run(run.root)
    assert store.check_sums(run) == []


def test_write_report_does_not_follow_a_link(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", seal=False)
    (tmp_path / "outside").mkdir()
    run.report.symlink_to(tmp_path / "outside")
    with pytest.raises(UserError, match="is a link"):
        write_report(run.root)
    assert list((tmp_path / "outside").iterdir()) == []


def test_every_number_is_rounded_in_the_data(tmp_path: Path) -> None:
    build_run(tmp_path / "run", agents=("cursor", "claude", "nop"), outcomes={(SOFTMAX, "claude", 1): ["slower"]})
    found: list[float] = []

    def keep(text: str) -> float:
        found.append(float(text))
        return found[-1]

    json.loads(render_run(tmp_path / "run")["data.json"], parse_float=keep)
    assert len(found) > 300
    assert all(value == float(f"{value:.4g}") for value in found)


def test_plots_are_labelled_and_inline(tmp_path: Path) -> None:
    build_run(tmp_path / "run", agents=("cursor", "claude"))
    found = plots(build(tmp_path / "run"))
    assert [plot.id for plot in found] == ["fast-p", "seen-unseen", "intervals-1"]
    for plot in found:
        assert plot.svg.startswith("<svg ")
        assert f'aria-labelledby="{plot.id}-title {plot.id}-desc"' in plot.svg
        assert f'<title id="{plot.id}-title">{plot.title}</title>' in plot.svg
        assert "<metadata" not in plot.svg
        ids = set(re.findall(r'\bid="([^"]+)"', plot.svg))
        assert all(name.startswith(f"{plot.id}-") for name in ids)
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', plot.svg)) <= ids


def test_f31_a_missing_trial_stays_in_every_rate(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", tasks=(SOFTMAX, NORM, GELU), agents=("cursor", "claude"), seal=False)
    shutil.rmtree(run.root / "trials" / NORM / "cursor")
    report = build(run.root)
    row = agent(report, "cursor")
    assert (row.planned, row.judged, row.missing) == (3, 2, 1)
    for rate in (row.built, row.correct_seen, row.correct_unseen, row.correct_both, row.won, row.fast[0].seen):
        assert rate is not None
        assert (rate.count, rate.of) == (2, 3)
    assert row.correct_both_of_judged is not None
    assert (row.correct_both_of_judged.count, row.correct_both_of_judged.of) == (2, 2)
    assert row.keep_baseline is not None
    assert row.keep_baseline.n == 3
    lost = next(trial for trial in trials(report) if trial.status == "missing")
    assert (lost.task_id, lost.configuration_id, lost.note) == (NORM, "cursor", "no result on disk")
    assert any("cursor is incomplete: 0 void, 1 missing of 3" in line for line in report.verdict.lines)
    html = render_run(run.root)["report.html"].decode()
    assert "0/1 MISSING" in html


def test_f25_a_failure_stays_in_the_denominator(tmp_path: Path) -> None:
    outcomes = {(NORM, "cursor", 1): ["wrong_unseen"], (GELU, "cursor", 1): ["not_built"]}
    build_run(tmp_path / "run", tasks=(SOFTMAX, NORM, GELU), agents=("cursor",), outcomes=outcomes)
    row = agent(build(tmp_path / "run"), "cursor")
    assert (row.built.count, row.correct_seen.count, row.correct_unseen.count, row.correct_both.of) == (2, 2, 1, 3)
    assert row.speed_seen is not None
    assert row.speed_unseen is not None
    assert row.keep_baseline is not None
    assert (row.speed_seen.n, row.speed_unseen.n, row.keep_baseline.n) == (2, 1, 3)
    assert [(fast.seen.count, fast.both.count, fast.both.of) for fast in row.fast] == [(2, 1, 3), (2, 1, 3), (0, 0, 3)]
    overall = next(t.overall for task in build(tmp_path / "run").tasks for t in task.trials if t.overall)
    assert row.keep_baseline.geomean == pytest.approx(overall ** (1 / 3), rel=0.01)


def test_void_is_a_column_and_unchanged_is_never_fast(tmp_path: Path) -> None:
    outcomes = {(SOFTMAX, "cursor", 1): ["void", "void"], (NORM, "cursor", 1): ["void", "win"]}
    report_root = build_run(tmp_path / "run", agents=("cursor", "nop"), outcomes=outcomes).root
    report = build(report_root)
    row, nop = agent(report, "cursor"), agent(report, "nop")
    assert (row.void, row.judged, row.correct_both.count, row.correct_both.of) == (1, 1, 1, 2)
    assert (nop.unchanged, nop.control) == (2, True)
    assert nop.won is not None
    assert nop.won.count == 0
    assert [fast.seen.count for fast in nop.fast] == [0, 0, 0]
    assert nop.keep_baseline is not None
    assert (nop.keep_baseline.geomean, nop.bounded_reward) == (1.0, 0.0)
    assert next(t for t in trials(report) if t.status == "void").note.startswith("device_not_idle: another process")


def test_cpu_run_states_no_speed(tmp_path: Path) -> None:
    names = ("solution", "nop")
    root = on_cpu(tmp_path / "run", {(task, name, 1): ["unmeasured"] for task in (SOFTMAX, NORM) for name in names})
    report = build(root)
    assert report.verdict.answer is Answer.SPEED_NOT_MEASURED
    row = agent(report, "solution")
    assert (row.won, row.speed_seen, row.keep_baseline, row.bounded_reward, row.fast) == (None, None, None, None, ())
    assert row.correct_both.count == 2
    assert report.pairs == ()
    rendered = render_run(root)
    for name in ("report.md", "report.html"):
        text = rendered[name].decode()
        assert "Speed not measured on this target" in text
        assert "fast_1" not in text
    assert b"<figure" not in rendered["report.html"]
    assert all("other hardware" in " ".join(cell.reasons) for cell in report.published)
    assert not any(cell.comparable for cell in report.published)


def test_a_speed_without_calibration_is_not_believed(tmp_path: Path) -> None:
    report = build(on_cpu(tmp_path / "run", {}))
    assert all(trial.overall is None and trial.won is None for trial in trials(report))
    assert any("no calibration" in flag.what for flag in report.flags)


@pytest.mark.parametrize(
    ("file", "change", "expected"),
    [
        ("trial.json", {"task_digest": digest("other")}, "cannot be pooled"),
        ("trial.json", {"attempt": 2}, "another trial than its folder"),
        ("trial.json", {"run_id": "other"}, "another try or run"),
        ("trial.json", {"target": "rocm"}, "of target rocm"),
        ("trial.json", {"agent_seconds": -1.0}, "agent_seconds"),
        ("../attempt.json", {"configuration_id": "nop"}, "another attempt"),
        ("../attempt.json", {"counted_try": 7}, "cannot be read"),
    ],
)
def test_what_cannot_be_trusted_is_missing_with_the_reason(
    tmp_path: Path, file: str, change: dict[str, object], expected: str
) -> None:
    run = build_run(tmp_path / "run", agents=("cursor",), seal=False)
    rewrite(run.root / "trials" / SOFTMAX / "cursor" / "a1" / "t1" / file, **change)
    report = build(run.root)
    lost = trials(report)[0]
    assert lost.status == "missing"
    assert expected in lost.note
    assert str(tmp_path) not in lost.note
    assert agent(report, "cursor").missing == 1
    assert any(expected in flag.what for flag in report.flags)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999"])
def test_f15_a_number_that_is_none_is_never_shown(tmp_path: Path, text: str) -> None:
    run = build_run(tmp_path / "run", agents=("cursor",), seal=False)
    path = run.root / "trials" / SOFTMAX / "cursor" / "a1" / "t1" / "trial.json"
    document = json.loads(path.read_bytes())
    document["seen"]["geomean_speedup"] = 12345.5
    path.write_text(json.dumps(document).replace("12345.5", text))
    report = build(run.root)
    assert trials(report)[0].status == "missing"
    assert agent(report, "cursor").speed_seen is not None
    lowered = render_run(run.root)["data.json"].decode().replace(text, "")
    assert "Infinity" not in lowered
    assert "NaN" not in lowered


def test_numbers_that_overflow_together_are_refused_in_one_line(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", agents=("cursor",), seal=False)
    for task in (SOFTMAX, NORM):
        rewrite(run.root / "trials" / task / "cursor" / "a1" / "t1" / "trial.json", agent_seconds=1.7e308)
    for task in (SOFTMAX, NORM):
        path = run.root / "trials" / task / "cursor" / "a1" / "t1" / "trial.json"
        document = json.loads(path.read_bytes())
        document["score"]["paper_score"] = 1.7e308
        path.write_text(json.dumps(document))
    with pytest.raises(UserError, match="cannot be summed up"):
        build(run.root)


def test_a_changed_evaluation_is_flagged_and_not_shown(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", agents=("cursor",), seal=False)
    with (run.root / "trials" / SOFTMAX / "cursor" / "a1" / "t1" / "evaluation.json").open("a") as file:
        file.write("\n")
    report = build(run.root)
    assert trials(report)[0].gates == ()
    assert trials(report)[1].gates != ()
    assert any("its sum is not the one in trial.json" in flag.what for flag in report.flags)


def test_a_trial_that_its_evaluation_does_not_give_is_flagged(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", agents=("cursor",), seal=False)
    path = run.root / "trials" / SOFTMAX / "cursor" / "a1" / "t1" / "trial.json"
    document = json.loads(path.read_bytes())
    document["seen"]["geomean_speedup"] = 50.0
    path.write_text(json.dumps(document))
    found = [flag.what for flag in build(run.root).flags]
    assert "trial.json differs from what its evaluation.json gives" in found
    assert "50x faster on seen configurations" in found
    assert "the unseen speedup is less than half of the seen one" in found


def test_remarkable_names_in_a_candidate_are_flagged_and_decide_nothing(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", agents=("cursor",), seal=False)
    before = build(run.root)
    candidate = run.root / "trials" / SOFTMAX / "cursor" / "a1" / "t1" / "candidate"
    candidate.mkdir(exist_ok=True)
    (candidate / "kernel.hip").write_text("#include <hip/hip_runtime.h>\nint pid = fork();\n")
    after = build(run.root)
    added = [flag for flag in after.flags if flag not in before.flags]
    assert [flag.what for flag in added] == ["kernel.hip:2: starts or signals processes"]
    assert added[0].where == f"{SOFTMAX}, cursor, attempt 1"
    assert after.model_copy(update={"flags": before.flags}) == before


def test_quality_of_the_measurement_is_shown_where_something_was_timed(tmp_path: Path) -> None:
    example = build(paths.root() / "reports" / "example" / "h200-solution")
    for trial in trials(example):
        assert trial.quality is not None
        assert len(trial.quality.beside_over_alone) == 3
        assert all(0.9 < ratio < 1.1 for ratio in trial.quality.beside_over_alone)
        assert trial.quality.busy_looks < trial.quality.idle_looks
    assert all(trial.quality is None for trial in trials(build(on_cpu(tmp_path / "run", {}))))


def test_run_flags(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", agents=("cursor",), seal=False)
    rewrite(run.manifest, seed_source="chosen", source={"commit": "unknown", "dirty": True})
    shutil.copytree(run.root / "trials" / SOFTMAX / "cursor" / "a1", run.root / "trials" / SOFTMAX / "cursor" / "a2")
    found = " ".join(flag.what for flag in build(run.root).flags if flag.where == "run")
    for text in ("chosen by the operator", "differed from its commit", "not sealed", "1 attempts on disk are not in"):
        assert text in found


def test_a_wrong_seed_is_flagged(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", agents=("cursor",))
    assert build(run.root).provenance.seed_state == "revealed and matches the commitment"
    rewrite(run.seed, seed="00" * 32)
    assert any("does not match the commitment" in flag.what for flag in build(run.root).flags)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"attempts": 10**9}, "less than or equal to 1000"),
        ({"tasks": [SOFTMAX, SOFTMAX]}, "expected each id once"),
        ({"run_id": "other"}, "expected that of manifest.json"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(tmp_path: Path, changes: dict[str, object], expected: str) -> None:
    run = build_run(tmp_path / "run", seal=False)
    rewrite(run.manifest, **changes)
    with pytest.raises(UserError, match=expected):
        build(run.root)


def test_a_folder_without_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="manifest"):
        render_run(tmp_path)


def test_links_out_of_the_run_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.txt").write_text("TOP-SECRET")
    run = build_run(tmp_path / "run", agents=("cursor",), seal=False)
    attempt = run.root / "trials" / SOFTMAX / "cursor" / "a1" / "t1"
    shutil.rmtree(attempt / "logs")
    (attempt / "logs").symlink_to(secret)
    shutil.rmtree(attempt / "candidate", ignore_errors=True)
    (attempt / "candidate").symlink_to(secret)
    (attempt / "patch.diff").unlink()
    (attempt / "patch.diff").symlink_to(secret / "key.txt")
    rendered = b"".join(render_run(run.root).values())
    assert b"TOP-SECRET" not in rendered
    assert b"key.txt" not in rendered


def test_verdicts(tmp_path: Path) -> None:
    tasks = tuple(f"hip2hip/t{index}" for index in range(8))
    better = {(task, "claude", 1): ["slower"] for task in tasks}
    build_run(tmp_path / "best", tasks=tasks, agents=("cursor", "claude", "nop"), outcomes=better)
    best = build(tmp_path / "best").verdict
    assert best.answer is Answer.BEST_AGENT
    assert best.headline.startswith("cursor is best: it beats claude")
    build_run(tmp_path / "one", tasks=tasks, agents=("cursor", "nop"))
    assert build(tmp_path / "one").verdict.answer is Answer.FASTER_THAN_BASELINE
    build_run(tmp_path / "none", tasks=tasks[:1], agents=("cursor", "claude"))
    assert build(tmp_path / "none").verdict.answer is Answer.INCONCLUSIVE
    build_run(tmp_path / "controls", tasks=tasks[:2])
    assert any("Only controls were run" in line for line in build(tmp_path / "controls").verdict.lines)


def test_published_numbers_stand_beside_ours_with_a_reason(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", agents=("claude", "nop"), seal=False)
    manifest = json.loads(run.manifest.read_bytes())
    manifest["agents"][0] |= {"model": "claude-opus-4-6"}
    run.manifest.write_text(json.dumps(manifest))
    report = build(run.root)
    matched = [cell for cell in report.published if cell.ours_agent == "claude"]
    assert {cell.published_agent for cell in matched} == {"claude-code/opus-4.6"}
    quantities = {cell.quantity: cell for cell in matched if cell.category == "hip2hip"}
    assert quantities["mean speedup, seen"].published == "6.69x"
    assert quantities["mean speedup, seen"].ours == "1.54x"
    assert quantities["unseen: only the baseline passes"].ours == "0 %"
    for cell in report.published:
        assert cell.comparable is (not cell.reasons)
        assert not cell.comparable
    unmatched = [cell for cell in report.published if cell.published_agent == "cursor/composer-2"]
    assert all(cell.reasons[0] == "this agent and model were not run" for cell in unmatched)


def test_a_number_is_comparable_only_under_the_same_conditions(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", tasks=(SOFTMAX,), agents=("claude",), seal=False)
    rows = build(run.root).by_category
    source = Path(__file__).parents[2] / "reports" / "published" / "agentkernelarena.json"
    published = PublishedRecord.model_validate_json(source.read_bytes())
    manifest = builders.manifest((SOFTMAX,), ("claude",), 3, TargetName.ROCM)
    agents = (manifest.agents[0].model_copy(update={"model": "Claude Opus 4.6"}),)
    manifest = manifest.model_copy(update={"agent_wall_seconds": 3600.0, "contract_in_prompt": False, "agents": agents})
    same = {"target": TargetName.ROCM, "architecture": "gfx942:sramecc+:xnack-", "device": "AMD Instinct MI300X"}
    lock = builders.lock((SOFTMAX,), TargetName.ROCM).model_copy(update=same)
    alike = published.model_copy(update={"same_tasks": True, "tasks": dict.fromkeys(published.tasks, 1)})

    def reasons(
        published: PublishedRecord, manifest: ManifestRecord = manifest, lock: LockRecord = lock
    ) -> tuple[str, ...]:
        cells = published_cells(published, manifest, lock, rows)
        cell = next(cell for cell in cells if cell.ours_agent == "claude")
        assert cell.comparable is (not cell.reasons)
        return cell.reasons

    assert reasons(alike) == ()
    assert reasons(published) == (
        "other tasks: those of this repository were written anew",
        "1 tasks in this category, not 24",
    )
    other = lock.model_copy(update={"target": TargetName.CUDA, "architecture": "sm_90", "device": "NVIDIA H200"})
    assert reasons(alike, lock=other) == ("other hardware: NVIDIA H200 (cuda), not AMD Instinct MI300X (gfx942)",)
    assert reasons(alike, lock=lock.model_copy(update={"device": "AMD Instinct MI300A"}))[0].startswith("other device")
    assert reasons(alike, manifest=manifest.model_copy(update={"attempts": 1})) == ("attempts: 1, not 3",)
    short = manifest.model_copy(update={"agent_wall_seconds": 1800.0, "contract_in_prompt": True})
    assert reasons(alike, manifest=short) == (
        "agents had 1800 s, not 3600 s",
        "the prompt states which sizes are legal",
    )


def test_long_names_and_absurd_speeds_can_be_drawn(tmp_path: Path) -> None:
    names = ("c" * 64, "d" + "e" * 63)
    run = build_run(tmp_path / "run", tasks=("triton2triton/" + "t" * 64, NORM), agents=names, seal=False)
    for index, attempt in enumerate(run.attempts()):
        path = attempt.try_folder(1).trial
        document = json.loads(path.read_bytes())
        for side in ("seen", "unseen"):
            document[side] |= {"geomean_speedup": (1e-300, 1e150)[index % 2], "low": 5e-324, "high": 1.7e308}
        path.write_text(json.dumps(document))
    rendered = render_run(run.root)
    assert b"inf" not in rendered["report.html"].split(b"<svg", 1)[1].split(b"</svg>", 1)[0]
    assert b"1e+150x" in rendered["report.html"]
