"""What counts as a kill, what the arguments for survivors must hold, and a sample through the real gate."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from akarena import paths
from akarena.judgement import Verdict
from akarena.records.evaluation import (
    EvaluationRecord,
    FailReason,
    Gate,
    GateFailed,
    GatePassed,
    GateResult,
    GateSkipped,
    GateVoid,
    SkipReason,
    VoidReason,
)
from akarena.records.task import TargetName
from tests import judging
from tests.mutation import docs, equivalent, identical, probe, verdicts
from tests.mutation.bench import Bench
from tests.mutation.equivalent import Equivalent
from tests.mutation.mutant import Mutant, Operator
from tests.mutation.results import Entry
from tests.mutation.tally import add, by_reason, tally
from tests.mutation.verdicts import End

ARGUMENT = "The row is read twice, and the second time gives what the first one gave."


def _verdict(*changed: GateResult) -> Verdict:
    own = {gate.gate: gate for gate in changed}
    gates = [own.get(gate, GatePassed(verdict="pass", gate=gate)) for gate in Gate]
    digest = "0" * 64
    record = EvaluationRecord(
        schema_version=1,
        task_id="hip2hip/softmax",
        task_digest=digest,
        candidate_digest=digest,
        judge_digest=digest,
        target=TargetName.CPU,
        architecture="x86_64",
        nonce=digest,
        gates=tuple(gates),
        cases=(),
        quality=None,
        stage_seconds={},
    )
    return Verdict(record, None, None, "")


def _failed(gate: Gate, reason: FailReason, evidence: str = "") -> GateFailed:
    return GateFailed(verdict="fail", gate=gate, reason=reason, evidence=evidence)


@pytest.mark.parametrize(
    ("gate", "reason", "end"),
    [
        (Gate.BUILD, FailReason.COMPILE_ERROR, End.STILLBORN),
        (Gate.BUILD, FailReason.CRASH, End.KILLED_SEEN),
        (Gate.BUILD, FailReason.LOAD_FAILED, End.KILLED_SEEN),
        (Gate.SEEN_CORRECT, FailReason.WRONG_VALUES, End.KILLED_SEEN),
        (Gate.UNSEEN_CORRECT, FailReason.LOW_PRECISION, End.KILLED_UNSEEN),
        (Gate.SEEN_SPEED, FailReason.FASTER_THAN_POSSIBLE, End.VOID),
    ],
)
def test_a_fault_of_the_candidate(gate: Gate, reason: FailReason, end: End) -> None:
    assert verdicts.assess(_verdict(_failed(gate, reason))).end is end


def test_void_is_no_kill() -> None:
    void = GateVoid(verdict="void", gate=Gate.SCOPE, reason=VoidReason.BASELINE_FAILED, evidence="")
    wrong = _failed(Gate.SEEN_CORRECT, FailReason.WRONG_VALUES)
    skipped = GateSkipped(verdict="skipped", gate=Gate.SEEN_CORRECT, reason=SkipReason.UNVERIFIED_ON_TARGET)
    assert verdicts.assess(_verdict(void, wrong)).end is End.VOID
    assert verdicts.assess(Verdict(None, None, VoidReason.JUDGE_CRASHED, "")).end is End.VOID
    assert verdicts.assess(_verdict(skipped)).end is End.VOID
    assert verdicts.assess(_verdict()).end is End.SURVIVED


def test_what_triton_cannot_compile_is_stillborn() -> None:
    said = "triton.runtime.errors.InterpreterError: ValueError('shapes')"
    assert verdicts.assess(_verdict(_failed(Gate.SEEN_CORRECT, FailReason.RETURNED_ERROR, said))).end is End.STILLBORN
    assert verdicts.assess(_verdict(_failed(Gate.SEEN_CORRECT, FailReason.WRONG_VALUES, said))).end is End.KILLED_SEEN


def _entry(number: int, end: End, reason: str = "") -> Entry:
    return Entry(f"m{number}", "solution", Operator.BOUND, 1, f"line {number}", "a -> b", end, reason, "")


def _mutant(number: int) -> Mutant:
    return Mutant("solution", Operator.BOUND, 1, f"line {number}", "a -> b", "", 0)


def _about(number: int, argument: str = ARGUMENT) -> Equivalent:
    return Equivalent("a/b", "solution", Operator.BOUND, f"line {number}", argument)


def test_tally() -> None:
    entries = [_entry(number, end, "crash") for number, end in enumerate(End)]
    counted = tally([*entries, _entry(20, End.SURVIVED)], [_about(20)])
    assert (counted.judged, counted.killed, counted.argued, len(counted.survivors), counted.void) == (8, 2, 1, 1, 1)
    # Of two killed, a survivor and one without a verdict.
    assert counted.rate == 0.5
    assert add([counted, counted]).rate == 0.5
    assert tally([], []).rate is None
    assert by_reason(entries) == {"crash": 2}


def test_arguments() -> None:
    killed = [_entry(number, End.KILLED_SEEN) for number in range(40)]
    mutants = {"a/b": [_mutant(number) for number in range(44)]}
    found = {"a/b": [*killed, *(_entry(number, End.SURVIVED) for number in (40, 41, 42))]}

    def faults(*entries: Equivalent) -> str:
        return "\n".join(equivalent.faults(entries, mutants, found))

    assert faults(_about(40), _about(41)) == ""
    assert "about no mutant" in faults(_about(99))
    assert "about no mutant" in faults(replace(_about(40), change="c -> d"))
    assert "has no argument" in faults(_about(40, "it is"))
    assert "m3 is right, but it was killed" in faults(_about(3))
    assert "3 of 43 mutants are argued away" in faults(_about(40), _about(41), _about(42))


def test_arguments_that_hold_on_one_target(tmp_path: Path) -> None:
    entry = 'task = "a/b"\nsource = "solution"\noperator = "bound"\nline = "l"\nargument = "a"\n'
    file = tmp_path / "equivalent.toml"
    file.write_text(f'[[mutant]]\n{entry}[[mutant]]\n{entry}target = "cpu"\n', "utf-8")
    assert len(equivalent.load(TargetName.CPU, file)) == 2
    assert len(equivalent.load(TargetName.CUDA, file)) == 1


def test_the_arguments_of_the_project_hold() -> None:
    for target in TargetName.CPU, TargetName.CUDA:
        assert equivalent.faults_of_all(target) == []


def test_the_page_is_up_to_date() -> None:
    assert docs.PAGE.read_text("utf-8") == docs.page(), "run: python -m tests.mutation.docs"


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ was not found")
def test_machine_code_is_compared() -> None:
    text = (paths.root() / "tasks" / "hip2hip" / "softmax" / "agent" / "kernel.hip").read_text("utf-8")
    assert identical.same_code(text, text.replace("float sum = 0.0f;", "float sum = 0.0f * 2.0f;"))
    assert not identical.same_code(text, text.replace("float sum = 0.0f;", "float sum = 1.0f;"))
    assert not identical.same_code("no code", "no code")


def _bench(task: str) -> Bench:
    if missing := judging.missing("cpu"):
        # `.ci/run` fails where a test was skipped.
        pytest.skip(missing)
    return Bench(TargetName.CPU, task)


def _first(bench: Bench, operator: Operator) -> Mutant:
    every = [mutant for own in bench.mutants.values() for mutant in own]
    return next(mutant for mutant in every if mutant.operator is operator)


def test_the_gate_takes_the_right_kernel_and_kills_mutants() -> None:
    bench = _bench("hip2hip/softmax")
    honest = bench.verdict(bench.texts["solution"])
    assert verdicts.assess(honest).end is End.SURVIVED
    assert 0 < verdicts.margins(honest).candidate < 1
    for operator in Operator.ONE_ELEMENT, Operator.STATEMENT_DELETED:
        chosen = _first(bench, operator)
        found = bench.judge(chosen)
        assert found.end in verdicts.KILLED, (chosen.id, chosen.change, found)


def test_the_gate_kills_mutants_of_triton() -> None:
    bench = _bench("triton2triton/silu_mul_quant")
    chosen = _first(bench, Operator.NOT_A_NUMBER)
    found = bench.judge(chosen)
    assert found.end in verdicts.KILLED, (chosen.id, chosen.change, found)


@pytest.mark.parametrize(
    ("task", "line"), [("hip2hip/softmax", "sum += expf"), ("triton2triton/rms_norm", "squares += x")]
)
def test_a_trap_in_a_line_that_is_run_does_not_pass(task: str, line: str) -> None:
    bench = _bench(task)
    text = bench.texts["baseline"]
    trap = probe.with_trap(text, text.index(line), hip=task.startswith("hip"))
    assert trap is not None
    assert verdicts.assess(bench.verdict(trap)).end is not End.SURVIVED
