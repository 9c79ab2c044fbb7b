from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akarena import paths, report, store
from akarena.errors import UserError
from akarena.store import RunFolder
from akarena.verify import verify
from tests.unit import builders

TASK, OTHER = builders.TASKS
TRY = f"trials/{TASK}/solution/a1/t1"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid run in which every outcome appears once."""
    outcomes = {
        (TASK, "nop", 1): ("void", "unchanged"),
        (OTHER, "solution", 1): ("wrong_unseen",),
        (OTHER, "nop", 1): ("not_built",),
    }
    return builders.build_run(tmp_path_factory.mktemp("runs") / "run", outcomes=outcomes).root


@pytest.fixture
def run(pristine: Path, tmp_path: Path) -> RunFolder:
    shutil.copytree(pristine, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def edit(path: Path, **changes: Any) -> None:
    """Change keys of a JSON file; ``a__b__0`` reaches inside, and a function gets the old value."""
    document = json.loads(path.read_bytes())
    for key, value in changes.items():
        *parents, last = [int(part) if part.isdigit() else part for part in key.split("__")]
        place = document
        for parent in parents:
            place = place[parent]
        place[last] = value(place[last]) if callable(value) else value
    path.write_text(json.dumps(document))


def found(run: RunFolder, *, seal: bool = True) -> list[str]:
    """Seal the folder again, as someone who edits records would, and verify it."""
    if seal:
        run.sums.unlink(missing_ok=True)
        store.write_sums(run)
    return [str(finding) for finding in verify(run.root)]


def test_a_valid_run_has_no_findings(run: RunFolder) -> None:
    assert found(run, seal=False) == []


@pytest.mark.parametrize("name", builders.OUTCOMES)
def test_every_outcome_verifies(tmp_path: Path, name: str) -> None:
    outcomes = {(TASK, "solution", 1): (name,)}
    run = builders.build_run(tmp_path / "run", tasks=(TASK,), agents=("solution",), outcomes=outcomes)
    assert found(run, seal=False) == []


def test_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no run folder, expected manifest\.json"):
        verify(tmp_path)


def test_an_edit_without_a_new_sum_is_found_twice(run: RunFolder) -> None:
    edit(run.root / TRY / "trial.json", judge_seconds=1.0, score__won=False)
    assert found(run, seal=False) == [
        f"{TRY}/trial.json: changed: its sum differs",
        f"{TRY}/trial.json: score.won is False, but evaluation.json gives True",
    ]


def test_an_unsealed_run_is_a_finding(run: RunFolder) -> None:
    run.sums.unlink()
    assert found(run, seal=False) == ["SHA256SUMS: missing or unreadable: the run is not sealed"]


TRIAL, EVALUATION, SAMPLES = f"{TRY}/trial.json", f"{TRY}/evaluation.json", f"{TRY}/samples.json"
ATTEMPT = f"trials/{TASK}/nop/a1/attempt.json"


@pytest.mark.parametrize(
    ("file", "changes", "expected"),
    [
        ("manifest.json", {"attempts": 2}, f"missing: task {TASK}, configuration solution, attempt 2"),
        ("manifest.json", {"tasks": [TASK]}, f"surplus, manifest.json has no such: task {OTHER}, configuration nop"),
        ("manifest.json", {"tasks": [TASK]}, "lock.json: its tasks are not those of manifest.json"),
        ("manifest.json", {"tasks": [TASK, OTHER, TASK]}, f"task {TASK} is listed 2 times"),
        ("manifest.json", {"run_id": "another"}, f"{TRIAL}: run_id is {builders.RUN_ID}, expected another"),
        ("manifest.json", {"schema_version": 7}, "schema_version 7 is not known; this akarena reads 1"),
        ("manifest.json", {"attempts": 10**12}, "1000000000000"),
        ("manifest.json", {"tries": 1}, f"{ATTEMPT}: has more tries than manifest.json allows (1)"),
        ("seed.json", {"seed": "0" * 64}, "is not the seed that manifest.json committed to"),
        ("seed.json", {"seed_source": "chosen"}, "seed.json: seed_source differs from manifest.json"),
        ("lock.json", {"tasks__0__digest": "0" * 64}, f"{TRIAL}: task_digest is "),
        ("lock.json", {"judge_digest": "0" * 64}, f"{EVALUATION}: judge_digest differs from lock.json"),
        ("lock.json", {"architecture": "gfx942"}, f"{EVALUATION}: target or architecture differs from lock.json"),
        (ATTEMPT, {"counted_try": 1}, "counted_try is 1, expected 2: the first that is not void, else the last"),
        (ATTEMPT, {"counted_try": 3}, "counted_try is 3, expected 2"),
        (ATTEMPT, {"tries__0__status": "judged"}, f"{ATTEMPT}: try 1 is void in its trial.json"),
        (ATTEMPT, {"tries__1__try_number": 3}, f"{ATTEMPT}: try 3 is listed but has no trial.json"),
        (ATTEMPT, {"tries__1__try_number": 3}, f"{ATTEMPT}: try 2 is on disk but not listed"),
        (ATTEMPT, {"attempt": 2}, f"{ATTEMPT}: names another attempt than task {TASK}"),
        (TRIAL, {"score__paper_score": 500.0}, "score.paper_score is 500.0, but evaluation.json gives "),
        (TRIAL, {"seen__geomean_speedup": 9.0}, "seen.geomean_speedup is 9.0, but evaluation.json gives "),
        (TRIAL, {"seen__low": lambda low: low * (1 + 1e-6)}, "seen.low is "),
        (TRIAL, {"unseen__verdict": "slower"}, "unseen.verdict is slower, but evaluation.json gives faster"),
        (TRIAL, {"candidate_digest": "0" * 64}, "candidate_digest is not that of candidate/"),
        (TRIAL, {"candidate_digest": "0" * 64}, "candidate_digest differs from evaluation.json"),
        (TRIAL, {"candidate_files": ["other.hip"]}, "candidate_files are not those on disk"),
        (TRIAL, {"attempt": 4}, f"{TRIAL}: attempt is 4, expected 1"),
        (TRIAL, {"configuration_id": "nop"}, f"{TRIAL}: configuration_id is nop, expected solution"),
        (TRIAL, {"extra": 1}, "'extra' was unexpected"),
        (EVALUATION, {"nonce": "0" * 64}, f"{TRIAL}: evaluation_sha256 is not that of evaluation.json"),
        (EVALUATION, {"gates__2__gate": "build"}, "its gates are not the six in order"),
        (EVALUATION, {"cases__0__speed__speedup": 3.0}, "seen-0: the speedup is outside its interval"),
        (EVALUATION, {"cases__0__speed__speedup": 1.52}, "seen-0: the speedup is not the ratio of the medians"),
        (EVALUATION, {"cases__0__configuration__split": "unseen"}, "seen-0 is called unseen"),
        (EVALUATION, {"cases__1__configuration__id": "seen-0"}, "a configuration is judged twice"),
        (SAMPLES, {"series__0__candidate_us": [1.0] * 10}, "seen-0: no series in samples.json has these medians"),
    ],
)
def test_each_edit_is_found(run: RunFolder, file: str, changes: dict[str, Any], expected: str) -> None:
    edit(run.root / file, **changes)
    findings = found(run)
    assert any(expected in finding for finding in findings), findings


def remove_trial(run: RunFolder) -> None:
    (run.root / TRIAL).unlink()


def remove_attempt(run: RunFolder) -> None:
    shutil.rmtree((run.root / TRY).parent)


def void_without_cause(run: RunFolder) -> None:
    document = json.loads((run.root / TRIAL).read_bytes())
    for key in ("candidate_digest", "candidate_files", "evaluation_sha256", "seen", "unseen", "score"):
        del document[key]
    void = {"status": "void", "reason": "device_not_idle", "evidence": ""}
    (run.root / TRIAL).write_text(json.dumps(document | void))


def refused(run: RunFolder, *, void: bool = True, status: int = 401) -> None:
    """Make the try that of an agent whose key was refused, as the gateway saw, and which was not judged."""
    folder = run.root / TRY
    line = json.loads((paths.root() / "schemas/examples/valid/audit-answered.json").read_bytes())
    line |= {"verdict": "upstream_error", "status": status, "tokens": None}
    (folder / "logs/gateway.jsonl").write_text(json.dumps(line) + "\n")
    edit(folder / "trajectory.json", end="refused")
    edit(run.root / TRIAL, agent_end="refused")
    if void:
        void_without_cause(run)
        edit(run.root / TRIAL, reason="service_refused")
        edit(run.root / TRY / "../attempt.json", tries__0__status="void")
        (run.root / EVALUATION).unlink()
        (run.root / SAMPLES).unlink()


def refused_and_judged(run: RunFolder) -> None:
    refused(run, void=False)


def refused_by_its_own_words(run: RunFolder) -> None:
    refused(run)
    (run.root / TRY / "logs/gateway.jsonl").unlink()


def refused_by_another_status(run: RunFolder) -> None:
    refused(run, status=429)


def refused_for_another_reason(run: RunFolder) -> None:
    refused(run)
    edit(run.root / TRIAL, reason="service_limited")


def refused_with_an_evaluation(run: RunFolder) -> None:
    kept = (run.root / EVALUATION).read_bytes()
    refused(run)
    (run.root / EVALUATION).write_bytes(kept)


def refused_without_a_trajectory(run: RunFolder) -> None:
    refused(run)
    (run.root / TRY / "trajectory.json").unlink()


def another_end(run: RunFolder) -> None:
    edit(run.root / TRIAL, agent_end="crashed")


def test_a_void_end_of_the_agent_verifies(run: RunFolder) -> None:
    refused(run)
    assert found(run) == []


def test_an_end_that_counts_verifies(run: RunFolder) -> None:
    refused(run, void=False)
    (run.root / TRY / "logs/gateway.jsonl").write_text("")
    assert found(run) == []


def change_candidate(run: RunFolder) -> None:
    (run.root / TRY / "candidate/kernel.hip").write_text("better")


def tear_events(run: RunFolder) -> None:
    with run.events.open("ab") as file:
        file.write(b"{")


def break_event(run: RunFolder) -> None:
    with run.events.open("ab") as file:
        file.write(b'{"schema_version": 1}\n')


def not_a_number(run: RunFolder) -> None:
    text = (run.root / TRIAL).read_text()
    (run.root / TRIAL).write_text(text.replace('"agent_seconds": 61.5', '"agent_seconds": NaN'))


def repeat_key(run: RunFolder) -> None:
    text = (run.root / TRIAL).read_text()
    (run.root / TRIAL).write_text(text.replace("{", '{"attempt": 1,', 1))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (remove_trial, f"trials/{TASK}/solution/a1: no trial is complete: task {TASK}, configuration solution"),
        (remove_trial, f"{TRY}: was judged, but its trial.json is missing"),
        (remove_attempt, f"missing: task {TASK}, configuration solution, attempt 1"),
        (void_without_cause, f"{TRIAL}: is void, though evaluation.json has no void gate"),
        (refused_and_judged, f"{TRIAL}: is judged, but the end of its agent makes it void: service_refused"),
        (refused_by_its_own_words, f"{TRIAL}: is void for service_refused, but neither its agent's end nor"),
        (refused_by_another_status, f"{TRIAL}: is void for service_refused, but neither its agent's end nor"),
        (refused_for_another_reason, "is service_limited, but the end of its agent makes it void: service_refused"),
        (refused_with_an_evaluation, f"{EVALUATION}: is there, though the end of the agent made it void"),
        (refused_without_a_trajectory, f"{TRY}/trajectory.json: missing, though the end of the agent made it void"),
        (another_end, f"{TRIAL}: agent_end is crashed, but trajectory.json has finished"),
        (change_candidate, f"{TRIAL}: candidate_digest is not that of candidate/"),
        (tear_events, "events.jsonl: its last line is torn"),
        (break_event, "events.jsonl: line 3: "),
        (not_a_number, f"{TRIAL}: agent_seconds: NaN is not a number in JSON"),
        (repeat_key, f"{TRIAL}: attempt: the key appears more than once"),
        (lambda run: run.lock.unlink(), "lock.json: cannot be read (No such file or directory)"),
        (lambda run: run.seed.unlink(), "seed.json: cannot be read (No such file or directory)"),
        (lambda run: (run.root / EVALUATION).unlink(), f"{EVALUATION}: missing, though the trial is not void"),
        (lambda run: (run.root / SAMPLES).unlink(), "seen-0 has a speedup, but there is no samples.json"),
        (lambda run: shutil.rmtree(run.root / TRY / "candidate"), "candidate: missing, though the trial is not void"),
    ],
)
def test_each_damage_is_found(run: RunFolder, change: Callable[[RunFolder], None], expected: str) -> None:
    change(run)
    findings = found(run)
    assert any(expected in finding for finding in findings), findings


def test_a_linked_record_is_found_and_not_read(run: RunFolder) -> None:
    path = run.root / EVALUATION
    path.rename(run.root.parent / "evaluation.json")
    path.symlink_to(run.root.parent / "evaluation.json")
    findings = found(run, seal=False)
    assert f"{EVALUATION}: is not a regular file with a plain name" in findings
    assert any(finding.startswith(f"{EVALUATION}: cannot be read") for finding in findings)


def test_a_linked_log_of_the_gateway_is_found_and_not_read(run: RunFolder) -> None:
    (run.root / TRY / "logs/gateway.jsonl").symlink_to("agent.txt")
    findings = found(run, seal=False)
    told = [finding for finding in findings if finding.startswith(f"{TRY}/logs/gateway.jsonl: ")]
    assert len(told) == len(findings) == 2, findings
    assert all("regular file" in finding for finding in told)


def test_control_characters_do_not_reach_the_terminal(run: RunFolder) -> None:
    (run.root / "\x1b[2J").write_text("")
    assert found(run, seal=False) == ["'\\x1b[2J': is not a regular file with a plain name"]


def test_a_rendered_report_verifies_and_an_edit_of_it_does_not(run: RunFolder) -> None:
    report.write_report(run.root)
    assert found(run, seal=False) == []
    path = run.report / "report.md"
    path.write_text(path.read_text().replace("softmax", "softmix", 1))
    (finding,) = found(run, seal=False)
    assert finding.startswith("report/report.md: differs from the report of these records, first in line ")


class TestReport:
    @pytest.fixture
    def rendered(self, run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
        """A renderer whose output is known, in place of the real one."""
        content = {"data.json": b'{"renderer_version": "2"}\n', "report.md": b"# One\ntwo\n"}
        fake = SimpleNamespace(render_run=lambda root: dict(content))
        monkeypatch.setitem(sys.modules, "akarena.report", fake)
        monkeypatch.setattr("akarena.report", fake, raising=False)
        for name, data in content.items():
            store.write_bytes(run.report / name, data)
        return content

    @pytest.mark.usefixtures("rendered")
    def test_the_same_bytes(self, run: RunFolder) -> None:
        assert found(run) == []

    @pytest.mark.usefixtures("rendered")
    def test_a_difference_names_the_line(self, run: RunFolder) -> None:
        (run.report / "report.md").write_bytes(b"# One\nthree\n")
        assert found(run) == ["report/report.md: differs from the report of these records, first in line 2"]

    @pytest.mark.usefixtures("rendered")
    def test_another_version(self, run: RunFolder) -> None:
        (run.report / "data.json").write_bytes(b'{"renderer_version": "1"}\n')
        assert found(run) == ["report/data.json: rendered by another version"]

    @pytest.mark.usefixtures("rendered")
    def test_missing_and_surplus_files(self, run: RunFolder) -> None:
        (run.report / "report.md").rename(run.report / "other.md")
        assert found(run) == [
            "report/other.md: is no part of the report of these records",
            "report/report.md: missing, though the report has it",
        ]
