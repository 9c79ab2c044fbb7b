"""The table of outcomes: who decides, what is void, and that the docs say the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akarena import paths, store, trial
from akarena.agents import outcomes, program
from akarena.agents.base import Assignment
from akarena.agents.command import CommandAgent
from akarena.agents.outcomes import TABLE, Decider
from akarena.agents.program import Ran
from akarena.agents.replay import ReplayAgent
from akarena.errors import InfrastructureError
from akarena.records import AttemptRecord
from akarena.records.evaluation import VoidReason
from akarena.records.run import AgentConfiguration, Prices
from akarena.records.trial import AgentEnd, Cost, CostSource, Tokens, VoidTrial
from akarena.sandbox.base import End, Result
from akarena.store import AUDIT_LOG, RunFolder
from tests.unit import builders

REFUSED, LIMITED, OVER = ("upstream_error", 401), ("upstream_error", 429), ("out_of_budget", 429)
ALLOWED, FAILED, DENIED = ("allowed", 200), ("upstream_error", 500), ("refused", 403)


def log(*requests: tuple[str, int | None], model: str | None = "m") -> bytes:
    lines = ({"verdict": verdict, "status": status, "model": model} for verdict, status in requests)
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def ran(exit_code: int | None, audit: bytes = b"", how: End = End.EXITED, tokens: Tokens | None = None) -> Ran:
    result = Result(how, exit_code, None, b"", b"Error: 429 Too Many Requests\n", 0, 1.0, "")
    end = AgentEnd.FINISHED if exit_code == 0 else AgentEnd.CRASHED
    return Ran(result, end, "", (), 0, tokens, {AUDIT_LOG: audit} if audit else {})


def test_every_end_has_a_row_and_no_two_rows_of_one_end_decide_alike() -> None:
    assert {row.end for row in TABLE} == {*AgentEnd, None}
    for end in AgentEnd:
        deciders = [row.decider for row in TABLE if row.end is end]
        assert len(deciders) == len(set(deciders))
        assert deciders[1:].count(Decider.GATEWAY) == 0, "the row of the gateway comes first"


def test_only_our_side_makes_a_trial_void() -> None:
    void = [row for row in TABLE if row.void is not None]
    assert {row.decider for row in void} == {Decider.GATEWAY, Decider.AKARENA}
    assert {row.end for row in void} == {AgentEnd.INFRASTRUCTURE, AgentEnd.REFUSED, AgentEnd.RATE_LIMITED}
    assert [row for row in TABLE if row.words is not None and row.void is not None] == []


@pytest.mark.parametrize(
    ("audit", "end"),
    [
        (b"", None),
        (log(REFUSED), AgentEnd.REFUSED),
        (log(("upstream_error", 403)), AgentEnd.REFUSED),
        (log(LIMITED), AgentEnd.RATE_LIMITED),
        (log(("upstream_error", 503)), AgentEnd.RATE_LIMITED),
        (log(("upstream_error", 529)), AgentEnd.RATE_LIMITED),
        (log(OVER), AgentEnd.OUT_OF_BUDGET),
        (log(("out_of_budget", None)), AgentEnd.OUT_OF_BUDGET),
        (log(ALLOWED, ALLOWED, LIMITED), AgentEnd.RATE_LIMITED),
        (log(REFUSED, ALLOWED), None),
        (log(REFUSED, FAILED), None),
        (log(REFUSED, DENIED), None),
        (log(("upstream_error", None)), None),
        (log(("allowed", 429)), None),
        (log(DENIED), None),
        (log(REFUSED) + log(ALLOWED, DENIED, model=None), AgentEnd.REFUSED),
        (log(REFUSED, LIMITED, OVER, model=None), None),
    ],
)
def test_what_the_gateway_saw_of_the_last_request(audit: bytes, end: AgentEnd | None) -> None:
    assert outcomes.seen_by_gateway(audit) is end


@pytest.mark.parametrize(
    ("end", "audit", "reason"),
    [
        (AgentEnd.REFUSED, log(REFUSED), VoidReason.SERVICE_REFUSED),
        (AgentEnd.REFUSED, log(REFUSED, ALLOWED), None),
        (AgentEnd.REFUSED, log(LIMITED), None),
        (AgentEnd.REFUSED, b"", None),
        (AgentEnd.RATE_LIMITED, log(LIMITED), VoidReason.SERVICE_LIMITED),
        (AgentEnd.REFUSED, log(ALLOWED, REFUSED), None),
        (AgentEnd.RATE_LIMITED, log(LIMITED, ALLOWED, LIMITED), None),
        (AgentEnd.RATE_LIMITED, log(DENIED, LIMITED), VoidReason.SERVICE_LIMITED),
        (AgentEnd.RATE_LIMITED, log(OVER), None),
        (AgentEnd.RATE_LIMITED, b"", None),
        (AgentEnd.INFRASTRUCTURE, b"", VoidReason.AGENT_NOT_RUN),
        (AgentEnd.OUT_OF_BUDGET, log(OVER), None),
        (AgentEnd.OUT_OF_BUDGET, b"", None),
        (AgentEnd.FINISHED, log(REFUSED), None),
        (AgentEnd.CRASHED, log(LIMITED), None),
        (AgentEnd.TIMED_OUT, log(LIMITED), None),
        (AgentEnd.STALLED, log(REFUSED), None),
        (AgentEnd.OUT_OF_MEMORY, log(REFUSED), None),
    ],
)
def test_what_is_void(end: AgentEnd, audit: bytes, reason: VoidReason | None) -> None:
    assert outcomes.void_reason(end, audit) is reason


def test_the_words_of_an_agent_name_its_end_and_buy_nothing() -> None:
    for said, end in (
        ("API Error: 429 too many requests", AgentEnd.RATE_LIMITED),
        ("Invalid API key", AgentEnd.REFUSED),
        ("boom", AgentEnd.CRASHED),
    ):
        assert outcomes.why_failed(ran(1), said) is end
        assert outcomes.void_reason(end, b"") is None
    assert outcomes.why_failed(ran(1, log(ALLOWED)), "429") is AgentEnd.RATE_LIMITED
    assert outcomes.void_reason(AgentEnd.RATE_LIMITED, log(ALLOWED)) is None
    assert outcomes.why_failed(ran(1, log(REFUSED)), "429", AgentEnd.OUT_OF_BUDGET) is AgentEnd.REFUSED
    assert outcomes.why_failed(ran(1, log(ALLOWED)), "429", AgentEnd.OUT_OF_BUDGET) is AgentEnd.OUT_OF_BUDGET


@pytest.mark.parametrize("how", sorted(set(End) - {End.EXITED, End.SIGNALLED}))
def test_an_agent_that_had_to_be_stopped_has_crashed_whatever_its_service_did(how: End) -> None:
    assert outcomes.why_failed(ran(None, log(LIMITED), how), "429", AgentEnd.REFUSED) is AgentEnd.CRASHED


def test_the_docs_hold_the_table() -> None:
    text = (paths.root() / outcomes.PAGE).read_text("utf-8")
    assert outcomes.updated(text) == text, "run python -m akarena.agents.outcomes"
    with pytest.raises(ValueError, match="lacks the markers"):
        outcomes.updated("# Agents\n")


def test_an_agent_that_our_side_could_not_run_is_void(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        program = None

        def work(self, assignment: Assignment) -> Any:
            (assignment.workspace / "left.txt").write_text("as it was")
            raise InfrastructureError("the gateway ended without its totals")

    manifest = SimpleNamespace(
        check_calls=1, contract_in_prompt=True, agent_wall_seconds=1.0, suggested_iterations=None
    )
    site = SimpleNamespace(for_program=lambda program: SimpleNamespace(sandbox=None, target=None))
    bench: Any = SimpleNamespace(
        manifest=manifest, site=site, target=SimpleNamespace(name="cpu"), architecture="x86_64"
    )
    task: Any = SimpleNamespace(record=None)
    monkeypatch.setattr("akarena.agents.get", lambda name: Broken())
    monkeypatch.setattr("akarena.prompt.render", lambda *positional, **named: "prompt")
    work = tmp_path / "work"
    work.mkdir()
    folder = RunFolder(tmp_path).attempt(builders.TASKS[0], "mine", 1).new_try()
    outcome = trial._let_work(bench, task, AgentConfiguration(id="mine", agent="command"), folder, work)
    assert (outcome.end, outcome.detail) == (AgentEnd.INFRASTRUCTURE, "the gateway ended without its totals")
    assert outcomes.void_reason(outcome.end, b"") is VoidReason.AGENT_NOT_RUN
    assert (work / "left.txt").is_file()


class TestCommand:
    def outcome(self, found: Ran, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Any:
        monkeypatch.setattr(program, "run", lambda assignment, wanted: found)
        configuration = AgentConfiguration(id="mine", agent="command", command=("my-agent",), **settings)
        return CommandAgent().work(assignment(configuration, Path()))

    @pytest.mark.parametrize(
        ("found", "end"),
        [
            (ran(0), AgentEnd.FINISHED),
            (ran(1), AgentEnd.CRASHED),
            (ran(1, log(ALLOWED)), AgentEnd.CRASHED),
            (ran(1, log(REFUSED)), AgentEnd.REFUSED),
            (ran(137, log(LIMITED), End.SIGNALLED), AgentEnd.RATE_LIMITED),
            (ran(1, log(OVER)), AgentEnd.OUT_OF_BUDGET),
            (ran(None, log(LIMITED), End.STOPPED), AgentEnd.CRASHED),
            (replace(ran(None, log(LIMITED), End.TIMEOUT), end=AgentEnd.TIMED_OUT), AgentEnd.TIMED_OUT),
        ],
    )
    def test_the_gateway_tells_why_it_failed(self, found: Ran, end: AgentEnd, monkeypatch: pytest.MonkeyPatch) -> None:
        outcome = self.outcome(found, monkeypatch)
        assert (outcome.end, outcome.notes) == (end, ())

    def test_one_that_says_it_is_done_is_done(self, monkeypatch: pytest.MonkeyPatch) -> None:
        outcome = self.outcome(ran(0, log(LIMITED)), monkeypatch)
        assert outcome.end is AgentEnd.FINISHED
        assert outcome.notes == ("its last request of a model ended with: rate_limited",)

    def test_its_cost_is_priced(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tokens = Tokens(input=10, output=5, cache_read=0, cache_write=0, reasoning=0)
        prices = Prices(input=1e6, output=2e6, cache_read=0.0, cache_write=0.0)
        assert self.outcome(ran(0, tokens=tokens), monkeypatch).cost is None
        priced = self.outcome(ran(0, tokens=tokens), monkeypatch, prices=prices)
        assert priced.cost == Cost(usd=20.0, source=CostSource.PRICED)
        assert self.outcome(ran(0), monkeypatch, prices=prices).cost is None


def assignment(configuration: AgentConfiguration, workspace: Path, task: Any = None) -> Assignment:
    """An assignment of an agent that needs neither sandbox nor target."""
    nothing: Any = None
    return Assignment(
        task=task,
        configuration=configuration,
        workspace=workspace,
        prompt="",
        sandbox=nothing,
        target=nothing,
        seconds=1.0,
        check=lambda: b"",
        check_calls=0,
        attempt=1,
    )


class TestReplay:
    @pytest.fixture
    def run(self, tmp_path: Path) -> RunFolder:
        outcomes_of = {(builders.TASKS[0], "solution", 1): ("void",)}
        return builders.build_run(tmp_path / "run", tasks=builders.TASKS[:1], outcomes=outcomes_of)

    def replay(self, run: RunFolder, tmp_path: Path) -> Any:
        configuration = AgentConfiguration(id="again", agent="replay", replay_of=f"{run.root}:solution")

        class OneTask:
            id = builders.TASKS[0]
            record = type("R", (), {"editable": ("kernel.hip",)})

        return ReplayAgent().work(assignment(configuration, tmp_path, OneTask))

    def test_a_void_end_comes_again(self, run: RunFolder, tmp_path: Path) -> None:
        attempt = run.attempt(builders.TASKS[0], "solution", 1)
        folder = attempt.try_folder(run.read(AttemptRecord, attempt.attempt).counted_try)
        before = json.loads(folder.trial.read_bytes())
        assert VoidTrial.model_fields.keys() == before.keys()
        changes = {"reason": "service_limited", "agent_end": "rate_limited", "evidence": "no room"}
        folder.trial.write_text(json.dumps(before | changes))
        store.write_bytes(folder.logs / AUDIT_LOG, log(LIMITED))
        outcome = self.replay(run, tmp_path)
        assert (outcome.end, outcome.detail) == (AgentEnd.RATE_LIMITED, "void in run already: no room")
        assert outcomes.void_reason(outcome.end, outcome.logs[AUDIT_LOG]) is VoidReason.SERVICE_LIMITED

    def test_a_candidate_that_the_judge_failed_on_is_judged_again(self, run: RunFolder, tmp_path: Path) -> None:
        assert self.replay(run, tmp_path).end is AgentEnd.FINISHED
        assert (tmp_path / "kernel.hip").is_file()
