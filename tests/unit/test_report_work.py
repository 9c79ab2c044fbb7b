"""What the report says of agents: their steps, time, tokens, ends and settings, and of inspections."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from akarena import store
from akarena.errors import UserError
from akarena.records import AuditRecord, ManifestRecord, TrajectoryRecord
from akarena.records import audit as au
from akarena.records.inspection import Failed, Unavailable
from akarena.records.report import AgentRow, ReportRecord
from akarena.records.report_trial import TrialLine
from akarena.records.run import AgentConfiguration, LockRecord, Package, Prices
from akarena.records.trial import AgentEnd, Cost, CostSource, Step, StepKind, Tokens
from akarena.report import render_run, tables, trial_tables
from akarena.report.build import build
from akarena.report.work import bar, work
from akarena.store import AUDIT_LOG, RunFolder, TryFolder
from tests.unit import builders
from tests.unit.builders import build_run

SOFTMAX, NORM = builders.TASKS
TOKENS = Tokens(input=12000, output=3400, cache_read=8000, cache_write=900, reasoning=1200)


def step(kind: StepKind, seconds: float = 1.0, text: str = "text", result: str | None = None) -> Step:
    return Step(
        kind=kind, seconds=seconds, text=text, tool="Bash" if kind is StepKind.TOOL_CALL else None, result=result
    )


def with_steps(steps: Sequence[Step], seconds: float = 100.0) -> TrajectoryRecord:
    return builders.trajectory("claude").model_copy(update={"steps": tuple(steps), "seconds": seconds})


def tries(run: RunFolder) -> list[TryFolder]:
    return [one for attempt in run.attempts() for one in attempt.tries()]


def change(one: TryFolder, **changes: object) -> None:
    record = one.attempt.run.read(TrajectoryRecord, one.trajectory)
    store.write_record(one.trajectory, record.model_copy(update=changes), replace=True)


def configure(run: RunFolder, *agents: AgentConfiguration, **changes: object) -> None:
    manifest = run.read(ManifestRecord, run.manifest)
    store.write_record(run.manifest, manifest.model_copy(update={"agents": agents, **changes}), replace=True)


def counted(one: TryFolder, tokens: Tokens | None) -> None:
    """Write the log of a gateway that saw one answer."""
    record = AuditRecord(
        schema_version=1,
        time=builders.TIME,
        service="anthropic",
        method="POST",
        path="/v1/messages",
        model="a-model",
        verdict=au.Verdict.ALLOWED,
        reason=None,
        detail="",
        status=200,
        bytes_up=1,
        bytes_down=1,
        tokens=tokens,
        milliseconds=1,
        streamed=True,
        complete=True,
        tools=(),
        dropped=(),
        upstream_request_id=None,
    )
    store.write_record(one.logs / AUDIT_LOG, record)


def rows(report: ReportRecord) -> dict[str, AgentRow]:
    return {row.configuration_id: row for row in report.agents}


def first(report: ReportRecord) -> TrialLine:
    return report.tasks[0].trials[0]


def test_a_hundred_thousand_steps_are_counted_and_few_are_shown() -> None:
    kinds = [StepKind.CHECK if index % 1000 == 999 else StepKind.TOOL_CALL for index in range(100_000)]
    found = work(
        with_steps([step(kind, index / 1000) for index, kind in enumerate(kinds)]), most_steps=40, gateway_counted=True
    )
    assert found.steps_total == 100_000
    assert len(found.steps) == 40
    assert [one.number for one in found.steps[:3]] == [1, 2, 3]
    assert found.steps[-1].number == 100_000
    assert sum(one.kind is StepKind.CHECK for one in found.steps) == 20
    assert sum(one.calls for one in found.stretches) == 99_900
    assert [one.checks for one in found.stretches] == [1] * 100
    table = trial_tables.steps(found, "", most=8)
    assert table.caption == "Steps: 8 of 100000; the run folder has the other 99992"
    assert len(table.rows) == 8
    assert len(bar(found)) < 8000


def test_room_that_checks_do_not_need_is_for_other_steps_and_the_other_way_round() -> None:
    messages = [step(StepKind.MESSAGE)] * 50
    checks = [step(StepKind.CHECK)] * 50
    few = work(with_steps([*messages, *checks[:1]]), most_steps=10, gateway_counted=True)
    assert [one.number for one in few.steps] == [1, 2, 3, 4, 5, 47, 48, 49, 50, 51]
    many = work(with_steps([*messages[:1], *checks]), most_steps=10, gateway_counted=True)
    assert [one.number for one in many.steps] == [1, 2, 3, 4, 5, 6, 48, 49, 50, 51]
    all_of_them = work(with_steps(messages), most_steps=50, gateway_counted=True)
    assert len(all_of_them.steps) == 50
    assert trial_tables.steps(all_of_them, "").caption == "Steps: 50"


def test_a_step_is_cut_and_says_so() -> None:
    long = step(StepKind.TOOL_CALL, text="x" * 20_000, result="\n".join(f"line {index}" for index in range(2000)))
    (shown,) = work(with_steps([long]), most_steps=10, gateway_counted=True).steps
    assert shown.text == "x" * 160 + " [... +19840 characters]"
    assert shown.result.split("\n")[4] == "[... 1992 lines left out ...]"
    assert len(shown.result) < 200
    cells = trial_tables.steps(work(with_steps([long]), most_steps=10, gateway_counted=True), "").rows[0]
    assert len(cells[4].text) < 160
    assert (cells[4].more, cells[5].text, cells[5].more) == (shown.text, "line 0", shown.result)


def test_the_bar_has_a_row_for_calls_and_one_for_checks() -> None:
    steps = [
        step(StepKind.TOOL_CALL, 0.0),
        step(StepKind.TOOL_CALL, 0.5),
        step(StepKind.CHECK, 50.0),
        step(StepKind.MESSAGE, 1e308),
    ]
    found = work(with_steps(steps, 100.0), most_steps=10, gateway_counted=True)
    assert [(one.at, one.calls, one.checks, one.other) for one in found.stretches] == [
        (0, 2, 0, 0),
        (50, 0, 1, 0),
        (99, 0, 0, 1),
    ]
    drawn = bar(found)
    assert 'aria-label="Over 100 s: 2 tool calls, 1 check, 1 other"' in drawn
    assert '<path class="t-calls" d="M80 20v-16h5v16z"/>' in drawn
    assert '<path class="t-checks" d="M380 40v-16h5v16z"/>' in drawn
    assert bar(work(with_steps([]), most_steps=10, gateway_counted=True)) == ""
    at_once = work(with_steps(steps, 0.0), most_steps=10, gateway_counted=True)
    assert [one.at for one in at_once.stretches] == [0]


def test_a_trial_tells_what_its_agent_did(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", tasks=(SOFTMAX,), agents=("claude",), seal=False)
    (one,) = tries(run)
    counted(one, TOKENS)
    change(
        one,
        end=AgentEnd.TIMED_OUT,
        exit_code=None,
        detail="1800 s are over",
        complete=False,
        tokens=TOKENS,
        reported_tokens=TOKENS.model_copy(update={"output": 4321}),
        cost=Cost(usd=0.1234567, source=CostSource.PRICED),
        notes=("the agent reports other numbers of tokens than the gateway counted",),
    )
    done = first(build(run.root)).work
    assert done is not None
    assert (done.tokens_counted_by, done.complete, done.steps_total) == ("gateway", False, 2)
    rendered = render_run(run.root)
    page, text = rendered["report.html"].decode(), rendered["report.md"].decode()
    assert "counted by the gateway" in page
    assert ">4321</td>" in page
    assert "timed out after 61.5 s; its stream of events broke off. It was told: <q>1800 s are over</q>" in page
    assert "Cost: 0.1235 USD, by the prices of the configuration." in page
    assert "the agent reports other numbers of tokens than the gateway counted" in page
    assert '<svg class="bar"' in page
    assert "timed out after 61.5 s; its stream of events broke off; cost 0.1235 USD, by the prices" in text
    assert "| 2      | 40 s   | check   | check  | check " in text
    assert "<svg" not in text


@pytest.mark.parametrize(("log", "expected"), [(None, "agent"), (TOKENS, "gateway")])
def test_tokens_that_only_the_agent_counted_are_marked(tmp_path: Path, log: Tokens | None, expected: str) -> None:
    run = build_run(tmp_path / "run", agents=("claude",), seal=False)
    for one in tries(run):
        counted(one, log)
    report = build(run.root)
    row = rows(report)["claude"]
    assert row.tokens_own == (2 if expected == "agent" else 0)
    done = first(report).work
    assert done is not None
    assert done.tokens_counted_by == expected
    marked = "the agent's own count"
    assert (marked in render_run(run.root)["report.md"].decode()) is (expected == "agent")
    cells = tables.agents(report.agents, speed=True, by_category=False).rows[0]
    assert any(marked in cell.text for cell in cells) is (expected == "agent")


def test_a_tunnel_is_marked_beside_its_row_by_its_service_or_by_its_note(tmp_path: Path) -> None:
    agents = ("by-service", "by-note", "seen-through")
    run = build_run(tmp_path / "run", agents=agents, seal=False)
    services = ("cursor", None, "anthropic")
    configure(
        run,
        *(
            AgentConfiguration(id=name, agent="x", service=service)
            for name, service in zip(agents, services, strict=True)
        ),
    )
    for one in tries(run):
        if one.attempt.configuration_id == "by-note" and one.attempt.task_id == NORM:
            change(one, notes=("vendor tunnel, not inspectable",))
    report = build(run.root)
    assert {name: row.inspectable for name, row in rows(report).items()} == {
        "by-service": False,
        "by-note": False,
        "seen-through": True,
    }
    names = [row[0].text for row in tables.agents(report.agents, speed=True, by_category=False).rows]
    assert names == [
        "by-service\nvendor tunnel, not inspectable",
        "by-note\nvendor tunnel, not inspectable",
        "seen-through",
    ]
    assert "| by-note<br>vendor tunnel, not inspectable " in render_run(run.root)["report.md"].decode()


def test_configurations_of_one_agent_are_told_apart(tmp_path: Path) -> None:
    ids = ("claude-high", "claude-low", "mine")
    run = build_run(tmp_path / "run", agents=ids, seal=False)
    prices = Prices(input=1.25, output=10.0, cache_read=0.125, cache_write=0.0)
    high = AgentConfiguration(id=ids[0], agent="claude", model="a-model", effort="high", token_budget=5_000_000)
    low = AgentConfiguration(
        id=ids[1],
        agent="claude",
        model="a-model",
        effort="low",
        arguments=("-c", "a b"),
        prices=prices,
        usd_budget=2.5,
        service="anthropic",
        service_url="http://127.0.0.1:8000",
    )
    configure(run, high, low, AgentConfiguration(id=ids[2], agent="command", command=("sh",)), suggested_iterations=5)
    lock = run.read(LockRecord, run.lock)
    programs = (Package(name="claude-high", version="2.1.0 (Claude Code)"),)
    store.write_record(run.lock, lock.model_copy(update={"programs": programs}), replace=True)
    table = tables.configurations(build(run.root))
    assert table.caption == "Configurations; each trial has 30 minutes and 20 calls of check, 5 rounds suggested"
    labels = [column.label for column in table.columns]
    assert "Replay of" not in labels
    one, other, mine = (dict(zip(labels, [cell.text for cell in row], strict=True)) for row in table.rows)
    assert (one["Id"], one["Agent"], one["Effort"], one["Token budget"]) == ("claude-high", "claude", "high", "5000000")
    assert one["Program"] == "2.1.0 (Claude Code)"
    assert (other["Effort"], other["Arguments"], other["Budget (USD)"]) == ("low", "-c 'a b'", "2.5")
    assert other["Prices (USD for a million tokens)"] == "input 1.25, output 10, cache read 0.125, cache write 0"
    assert other["Service"] == "anthropic at http://127.0.0.1:8000"
    assert (mine["Agent"], mine["Command"], mine["Model"]) == ("command", "sh", "\u2013")


def test_ends_are_counted_by_configuration_and_void_ones_too(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", agents=("claude", "mine"), outcomes={(SOFTMAX, "mine", 1): ["void"]}, seal=False)
    for attempt in run.attempts():
        path = attempt.try_folder(1).trial
        document = json.loads(path.read_bytes())
        if document["configuration_id"] == "mine":
            document["agent_end"] = {SOFTMAX: "rate_limited", NORM: "timed_out"}[document["task_id"]]
            path.write_text(json.dumps(document))
    (run.root / "trials" / NORM / "claude" / "a1" / "attempt.json").unlink()
    table = tables.ends(build(run.root))
    assert [column.label for column in table.columns] == ["Agent", "finished", "timed out", "rate limited", "missing"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["claude", "1", "0", "0", "1"],
        ["mine", "0", "1", "1", "0"],
    ]


def test_inspections_are_a_table_of_each_task(tmp_path: Path) -> None:
    outcomes = {(SOFTMAX, "mine", 1): ["void"]}
    run = build_run(tmp_path / "run", agents=("claude", "codex", "mine", "nop"), outcomes=outcomes, seal=False)
    for one in tries(run):
        if one.attempt.configuration_id in ("claude", "mine"):
            builders.build_inspection(one)
    task = build(run.root).tasks[0]
    table = trial_tables.inspections(task, "t")
    assert [[cell.text for cell in row][:5] for row in table.rows] == [
        ["baseline", "baseline_kernel", "gfx942, gfx950", "16", "0"],
        ["claude, attempt 1", "large_rows\nsmall_rows", "gfx942", "62", "0"],
        ["claude, attempt 1", "large_rows\nsmall_rows", "gfx950", "64", "0"],
        [
            "codex, attempt 1; nop, attempt 1",
            "not run: no usable inspection.json: it was switched off, or the file is at fault",
            *["\u2013"] * 3,
        ],
        ["mine, attempt 1", "not run: the trial is void", *["\u2013"] * 3],
    ]
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert "large_rows" in render_run(run.root)["report.md"].decode()


def test_a_spill_is_named_and_a_side_that_does_not_compile_says_why(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", tasks=(SOFTMAX,), agents=("claude", "codex"), seal=False)
    one, other = tries(run)
    record = builders.build_inspection(one)
    assert record is not None
    spilling = builders.inspection(SOFTMAX, record.candidate_digest, spills=17).candidate
    none = Unavailable(status="unavailable", reason="clang is not installed")
    store.write_record(
        one.inspection, record.model_copy(update={"candidate": spilling, "baseline": none}), replace=True
    )
    second = builders.build_inspection(other)
    assert second is not None
    broken = Failed(status="failed", reason="clang exited with 1 for gfx942", log="")
    store.write_record(other.inspection, second.model_copy(update={"candidate": broken}), replace=True)
    rows = trial_tables.inspections(build(run.root).tasks[0], "t").rows
    assert [row[0].text for row in rows] == [
        "baseline",
        "claude, attempt 1",
        "claude, attempt 1",
        "baseline, as compiled with codex, attempt 1",
        "codex, attempt 1",
    ]
    assert rows[0][1].text == "not run: clang is not installed"
    assert [(row[6].text, row[6].tone) for row in rows[1:3]] == [("17", "bad"), ("0", "")]
    assert rows[4][1].text == "does not compile: clang exited with 1 for gfx942"


def test_an_inspection_of_another_candidate_is_flagged_and_not_shown(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", tasks=(SOFTMAX,), agents=("claude",), seal=False)
    (one,) = tries(run)
    store.write_record(one.inspection, builders.inspection(SOFTMAX, builders.digest("another")))
    report = build(run.root)
    assert first(report).inspection is None
    assert any("inspection.json is about another candidate" in flag.what for flag in report.flags)


def test_a_trajectory_that_cannot_be_read_is_flagged_and_the_trial_stays(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", tasks=(SOFTMAX,), agents=("claude",), seal=False)
    (one,) = tries(run)
    one.trajectory.write_bytes(one.trajectory.read_bytes().replace(b"I will", b"\\ud800"))
    report = build(run.root)
    assert (first(report).status, first(report).work) == ("judged", None)
    assert any("trajectory.json" in flag.what for flag in report.flags)


def test_tokens_of_a_foreign_run_that_overflow_together_are_refused_in_one_line(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", agents=("claude",), seal=False)
    for one in tries(run):
        change(one, tokens=TOKENS.model_copy(update={"input": 2**63 - 1, "output": 0}))
    with pytest.raises(UserError, match=r"cannot be summed up: .*64 bits"):
        build(run.root)


def test_six_configurations_on_three_tasks_are_one_row_each(tmp_path: Path) -> None:
    ids = tuple(f"agent-{index}-with-{'a-rather-long-' * 2}name" for index in range(6))
    tasks = (SOFTMAX, NORM, "pytorch2hip/gelu")
    run = build_run(tmp_path / "run", tasks=tasks, agents=ids, attempts=2, seal=False)
    for one in tries(run):
        steps = [step(StepKind.TOOL_CALL, index, "look\nagain", "seen\n" * 50) for index in range(400)]
        change(one, steps=tuple(steps), seconds=400.0)
    report = build(run.root)
    assert len(tables.configurations(report).rows) == len(tables.ends(report).rows) == 6
    assert len(tables.heat(report).rows) == 3
    assert [column.label for column in tables.heat(report).columns[1:]] == list(ids)
    assert all(len(task.trials) == 12 for task in report.tasks)
    rendered = render_run(run.root)
    assert len(rendered["report.html"]) < 4_000_000
    assert len(rendered["report.md"]) < 600_000
