"""Judges one fixture as an ordinary candidate for its task and says whether what came of it is acceptable."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache

from akarena import paths, sandbox, targets, tasks
from akarena.judgement import Court, Verdict
from akarena.records.evaluation import (
    Configuration,
    EvaluationRecord,
    FailReason,
    Gate,
    GateFailed,
    GatePassed,
    GateVoid,
    SpeedMeasured,
    SpeedUnknown,
    SpeedVerdict,
    Split,
)
from akarena.records.run import Calibration
from akarena.records.task import TargetName
from tests.adversarial.catalogue import HERE, Expect, Fixture
from tests.judging import judge_text

SEED = b"adversarial fixtures, 32 bytes.."
SEEN = {TargetName.CPU: (0, 1), TargetName.CUDA: (1, -1)}
"""Which seen configurations of the task are judged; the last one is where the baseline is also timed alone."""
UNSEEN = {TargetName.CPU: 2, TargetName.CUDA: 1}
CLOSE = 0.03

_CORRECT = (Gate.SEEN_CORRECT, Gate.UNSEEN_CORRECT)
_SPEED = (Gate.SEEN_SPEED, Gate.UNSEEN_SPEED)


@dataclass(frozen=True)
class Outcome:
    """What came of one fixture.

    Attributes:
        name: Name of the fixture.
        gate: The first gate that did not pass because of the candidate, or ``passed``.
        reason: Its reason.
        speedups: Speedup of each configuration that has one.
        escaped: Why this is not acceptable; None where it is.
        evidence: What the judge says, for a person.
        seconds: How long it took.
    """

    name: str
    gate: str
    reason: str
    speedups: tuple[float, ...]
    escaped: str | None
    evidence: str
    seconds: float = 0.0

    def line(self) -> str:
        """Return one line for a table."""
        speeds = ",".join(f"{speedup:.3f}" for speedup in self.speedups) or "-"
        end = "ok" if self.escaped is None else f"ESCAPED: {self.escaped}"
        return f"{self.name:24} {self.gate:16} {self.reason:22} {speeds:20} {self.seconds:5.1f} s  {end}"


class Bench:
    """Judges fixtures on one target.

    Args:
        target: Name of the target.
        calibration: Measured before; None to measure it when it is first needed.
    """

    def __init__(self, target: TargetName, calibration: Calibration | None = None) -> None:
        self._target = targets.get(target.value)
        self._sandbox = sandbox.get("bubblewrap")
        self._task = cache(lambda task: tasks.load(paths.root() / "tasks" / task))
        self._untimed = Court(self._sandbox, self._target)
        self._timed = Court(self._sandbox, self._target, calibration)

    def calibrate(self) -> Calibration | None:
        """Measure the instrument, once, where the target measures speed."""
        if self._target.measures_speed and self._timed.calibration is None:
            self._timed.calibration = self._timed.calibrate()
        return self._timed.calibration

    def judge_all(self, fixtures: Iterable[Fixture], at_once: int, seconds: float = float("inf")) -> Iterator[Outcome]:
        """Judge fixtures: first those that are timed, one by one, then the others together.

        Args:
            fixtures: What to judge.
            at_once: How many of the others are judged at the same time.
            seconds: Start no further one after this time.
        """
        until = time.monotonic() + seconds
        chosen = list(fixtures)
        for fixture in filter(self._is_timed, chosen):
            if time.monotonic() < until:
                yield self.judge(fixture)
        others = [fixture for fixture in chosen if not self._is_timed(fixture)]
        with ThreadPoolExecutor(at_once) as pool:
            yield from filter(None, pool.map(lambda one: self.judge(one) if time.monotonic() < until else None, others))

    def judge(self, fixture: Fixture) -> Outcome:
        """Judge a fixture as often as it asks for; returns the first outcome that is not acceptable, or the last."""
        began = time.monotonic()
        for _ in range(fixture.judgements):
            outcome = assess(fixture, self.verdict(fixture), timed=self._is_timed(fixture))
            if outcome.escaped is not None:
                break
        return replace(outcome, seconds=time.monotonic() - began)

    def verdict(self, fixture: Fixture) -> Verdict:
        """Judge a fixture once."""
        timed = self._is_timed(fixture)
        if timed:
            self.calibrate()
        court = self._timed if timed else self._untimed
        task = self._task(fixture.task)
        cases = _cases(court.configurations(task.record, SEED), self._target.name, fixture)
        return judge_text(court, task, expanded(fixture, task), cases)

    def _is_timed(self, fixture: Fixture) -> bool:
        return fixture.timed and self._target.measures_speed


def expanded(fixture: Fixture, task: tasks.Task) -> str:
    """Return the text of a candidate: its file with the texts that it may include, since a build sees one file.

    A line ``#include "baseline.h"`` (``# include baseline`` in Python) stands for the task's own baseline with
    ``honest_`` in front of its entry's name, and ``#include "tools.h"`` for ``evil/tools.h``.
    """
    entry = task.record.entry
    text = fixture.path.read_text("utf-8")
    if fixture.path.suffix == ".py":
        constants = "".join(f"{key} = {value}\n" for key, value in fixture.defines.items())
        return constants + _including(text, "# include baseline\n", task, f"def {entry}(", f"def honest_{entry}(")
    text = _including(text, '#include "baseline.h"\n', task, f'extern "C" int {entry}(', f"static int honest_{entry}(")
    text = text.replace('#include "tools.h"\n', (HERE / "evil" / "tools.h").read_text("utf-8"))
    return "".join(f"#define {key} {value}\n" for key, value in fixture.defines.items()) + text


def _including(text: str, line: str, task: tasks.Task, entry: str, renamed: str) -> str:
    if line not in text:
        return text
    honest = task.baseline.read_text("utf-8")
    if entry not in honest:
        raise ValueError(f"{task.baseline}: there is no {entry!r}")
    return text.replace(line, honest.replace(entry, renamed))


def assess(fixture: Fixture, verdict: Verdict, *, timed: bool) -> Outcome:
    """Hold a verdict against what is expected."""
    evaluation = verdict.evaluation
    if evaluation is None:
        reason = verdict.void.value if verdict.void else "no record"
        return Outcome(fixture.name, "none", reason, (), f"void: {reason}", verdict.log)
    bad = [gate for gate in evaluation.gates if isinstance(gate, GateFailed | GateVoid)]
    speedups = tuple(case.speed.speedup for case in evaluation.cases if isinstance(case.speed, SpeedMeasured))
    unknown = [case.speed for case in evaluation.cases if isinstance(case.speed, SpeedUnknown)]
    said = [*(gate.evidence for gate in bad), *(f"{one.reason.value}: {one.evidence}" for one in unknown)]
    return Outcome(
        name=fixture.name,
        gate=bad[0].gate.value if bad else "passed",
        reason=bad[0].reason.value if bad else (unknown[0].reason.value if unknown else "-"),
        speedups=speedups,
        escaped=_escape(fixture, evaluation, timed=timed),
        evidence="; ".join(said),
    )


def _escape(fixture: Fixture, evaluation: EvaluationRecord, *, timed: bool) -> str | None:
    void = [gate for gate in evaluation.gates if isinstance(gate, GateVoid)]
    if void:
        return f"void: {void[0].reason.value}"
    if fixture.expect is Expect.SEEN_ONLY:
        return _not_refused_unseen(fixture, evaluation)
    failed = _failed(evaluation)
    if fixture.expect is Expect.REFUSED or (failed and fixture.expect is not Expect.NO_GAIN):
        return _not_refused(fixture, evaluation)
    if failed and (other := _other_reason(fixture, failed.values())):
        return other
    if not failed and not all(_passed(evaluation, gate) for gate in _CORRECT):
        return "correctness was not checked"
    if not timed:
        # Where nothing is timed, a limit that is known shows in that the candidate passes.
        known = failed or fixture.expect is Expect.PASSES or fixture.known_limit
        return None if known else "a fixture about speed was not timed"
    speeds = [case.speed for case in evaluation.cases]
    measured = [speed for speed in speeds if isinstance(speed, SpeedMeasured)]
    if fixture.expect is Expect.PASSES:
        return None if all(_passed(evaluation, gate) for gate in _SPEED) else "an honest candidate has no speed"
    gained = [speed.speedup for speed in measured if speed.verdict is SpeedVerdict.FASTER]
    faster = [f"{speedup:.3f}" for speedup in gained if speedup > fixture.most_gain]
    if faster:
        return f"faster: {', '.join(faster)}"
    if fixture.expect is Expect.NO_DIFFERENCE:
        if len(measured) < len(speeds):
            return "not measured everywhere"
        apart = [f"{speed.speedup:.3f}" for speed in measured if abs(speed.speedup - 1) > CLOSE]
        return f"differs: {', '.join(apart)}" if apart else None
    return None


def _not_refused(fixture: Fixture, evaluation: EvaluationRecord) -> str | None:
    passed = [gate.value for gate in (*_CORRECT, *_SPEED) if _passed(evaluation, gate)]
    if passed:
        return f"passed {', '.join(passed)}"
    failed = _failed(evaluation)
    if Gate.BUILD in failed:
        # Nothing was loaded, so nothing else could fail.
        return _other_reason(fixture, [failed[Gate.BUILD]])
    if missing := [gate.value for gate in _CORRECT if gate not in failed]:
        return f"did not fail {', '.join(missing)}"
    return _other_reason(fixture, failed.values())


def _not_refused_unseen(fixture: Fixture, evaluation: EvaluationRecord) -> str | None:
    failed = _failed(evaluation)
    if not _passed(evaluation, Gate.SEEN_CORRECT):
        return "the seen configurations were to pass, or it shows nothing"
    if Gate.UNSEEN_CORRECT not in failed:
        return "did not fail unseen_correct"
    return _other_reason(fixture, [failed[Gate.UNSEEN_CORRECT]])


def _failed(evaluation: EvaluationRecord) -> dict[Gate, FailReason]:
    return {gate.gate: gate.reason for gate in evaluation.gates if isinstance(gate, GateFailed)}


def _other_reason(fixture: Fixture, reasons: Iterable[FailReason]) -> str | None:
    other = sorted(reason.value for reason in reasons if reason not in fixture.reasons)
    return f"refused for another reason: {', '.join(other)}" if other else None


def _passed(evaluation: EvaluationRecord, gate: Gate) -> bool:
    return any(isinstance(result, GatePassed) and result.gate is gate for result in evaluation.gates)


def _cases(all_: list[Configuration], target: TargetName, fixture: Fixture) -> list[Configuration]:
    seen, unseen = ([case for case in all_ if case.split is split] for split in Split)
    last = UNSEEN[target] if fixture.unseen is None else fixture.unseen
    return [*(seen[index] for index in fixture.seen or SEEN[target]), unseen[last]]
