"""Hostile HIP candidates that answer wrongly, write where they must not, or attack the compiler."""

from __future__ import annotations

from akarena.records.evaluation import FailReason
from tests.adversarial.catalogue.fixture import CUDA, EARLY, UNWRITTEN, Expect, Fixture

_WRONG = frozenset({FailReason.WRONG_VALUES})
_CLASS = frozenset({FailReason.NON_FINITE_MISMATCH})
_OUTSIDE = frozenset({FailReason.OUT_OF_BOUNDS, FailReason.CRASH})
_UNBUILT = frozenset({FailReason.COMPILE_ERROR})
_BOMB = _UNBUILT | {FailReason.COMPILE_TIMEOUT, FailReason.COMPILE_RESOURCES}
_TOLERANCE = "the tolerance follows the size of the answer: `wrong_values`"
_BY_CLASS = "values are compared by class, place by place: `non_finite_mismatch`"
_SEALED = "a build sees its one source file and headers: `compile_error`"
_LIMITS = "limits of the compiler and of the build: `compile_error`, `compile_timeout`, `compile_resources`"


def _answers(name: str, number: int, tries: str, held_by: str, rows: tuple[str, ...]) -> Fixture:
    return Fixture(
        name,
        Expect.REFUSED,
        tries=tries,
        held_by=held_by,
        rows=rows,
        reasons=_CLASS if "C5" in rows else _WRONG,
        defines={"ANSWER": str(number)},
        source="wrong_answers",
    )


def _shaped(name: str, number: int, tries: str) -> Fixture:
    return Fixture(
        name,
        Expect.REFUSED,
        tries=tries,
        held_by="every element of the judge's own fp32 buffer counts: `output_not_written`, `wrong_values`",
        rows=("C14",),
        reasons=UNWRITTEN | _WRONG | _CLASS,
        defines={"SHAPE": str(number)},
        source="wrong_shape",
    )


def _outside(name: str, number: int, tries: str) -> Fixture:
    return Fixture(
        name,
        Expect.REFUSED,
        tries=tries,
        held_by="secret canaries, unreadable pages: `out_of_bounds`, `crash`",
        rows=("C12",),
        reasons=_OUTSIDE,
        defines={"PLACE": str(number)},
        source="writes_outside",
    )


def _reads(name: str, number: int, tries: str) -> Fixture:
    return Fixture(
        name,
        Expect.REFUSED,
        tries=tries,
        held_by=_SEALED,
        rows=("D4",),
        reasons=_UNBUILT,
        defines={"FILE_KIND": str(number)},
        source="reads_file_while_compiled",
    )


def _bomb(name: str, number: int, tries: str) -> Fixture:
    return Fixture(
        name,
        Expect.REFUSED,
        tries=tries,
        held_by=_LIMITS,
        rows=("D4",),
        reasons=_BOMB,
        defines={"BOMB": str(number)},
        source="compiler_bomb",
    )


HIP_VALUES = (
    _answers("answers_zeros", 0, "answers zeros", _TOLERANCE, ("C7",)),
    _answers("answers_mean", 1, "answers the mean of every row", _TOLERANCE, ("C7",)),
    _answers("answers_nan", 2, "answers NaN, which is not above any tolerance", _BY_CLASS, ("C5",)),
    _answers("answers_infinity", 3, "answers infinity", _BY_CLASS, ("C5",)),
    _answers(
        "answers_denormals", 4, "answers denormals, and sets its process to take them for zero", _TOLERANCE, ("C7",)
    ),
    Fixture(
        "spoils_reference",
        Expect.REFUSED,
        tries="fills input and output with NaN, so that a reference of this input is NaN too",
        held_by="the reference uses the judge's own copies: `input_changed`, `non_finite_mismatch`",
        rows=("C4", "C2"),
        reasons=_CLASS | {FailReason.INPUT_CHANGED},
    ),
    Fixture(
        "knows_sizes",
        Expect.SEEN_ONLY,
        tries="right on the sizes that the task lists, the mean on all others",
        held_by="unseen configurations, drawn after the candidate was handed in: `wrong_values`",
        rows=("C10",),
        reasons=_WRONG,
    ),
    Fixture(
        "right_when_small",
        Expect.REFUSED,
        tries="leaves out the columns after the 16th",
        held_by="each configuration is checked at its own size: `output_not_written`",
        rows=("C11",),
        reasons=UNWRITTEN,
    ),
    _shaped("one_row_for_all", 0, "writes one row, to be broadcast"),
    _shaped("transposed", 1, "writes the transposed matrix"),
    _shaped("answers_in_fp16", 2, "writes fp16 into the fp32 output"),
    _shaped("every_other_value", 3, "writes every other value and zeros between"),
    _outside("writes_before_output", 0, "writes one float in front of its output"),
    _outside("writes_before_input", 1, "writes one float in front of its input"),
    _outside("writes_behind_input", 2, "writes one float behind its input"),
    Fixture(
        "every_second_call",
        Expect.REFUSED,
        tries="works on every second call only",
        held_by="outputs are poisoned before each call: `output_not_written`, `answered_early`",
        rows=("C9", "T10"),
        reasons=UNWRITTEN | EARLY,
    ),
    Fixture(
        "sampled_places",
        Expect.REFUSED,
        tries="writes only places that look like a sample",
        held_by="every element of a checked call is compared: `output_not_written`",
        reasons=UNWRITTEN,
    ),
    Fixture(
        "records_nothing",
        Expect.REFUSED,
        tries="right where called plainly, and takes no time at all in a graph",
        held_by="outputs poisoned before each replay: `answered_early`",
        rows=("T13", "T9"),
        reasons=EARLY | {FailReason.FASTER_THAN_POSSIBLE},
        targets=CUDA,
        timed=True,
    ),
    _reads("includes_oracle", 0, "`#include` of the oracle"),
    _reads("assembles_job", 1, "`.incbin` of the job file"),
    _reads("includes_baseline", 2, "`#include` of the other side's source"),
    _bomb("includes_itself", 0, "a file that includes itself"),
    _bomb("template_bomb", 1, "templates that make two more of their kind each"),
    _bomb("endless_constant", 2, "a constant that takes endless steps to compute"),
    _bomb("large_object", 3, "an initialised object of 64 GB"),
)
