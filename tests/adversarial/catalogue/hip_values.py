"""Hostile HIP candidates that answer wrongly, write where they must not, or attack the compiler."""

from __future__ import annotations

from akarena.records.evaluation import FailReason
from tests.adversarial.catalogue.fixture import CUDA, EARLY, UNWRITTEN, Expect, Fixture, refused, variants

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
    reasons = _CLASS if "C5" in rows else _WRONG
    return refused(name, tries, held_by, rows, reasons, variant=("wrong_answers", "ANSWER", number))


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
    *variants(
        "wrong_shape",
        "SHAPE",
        "every element of the judge's own fp32 buffer counts: `output_not_written`, `wrong_values`",
        ("C14",),
        UNWRITTEN | _WRONG | _CLASS,
        (
            ("one_row_for_all", "writes one row, to be broadcast"),
            ("transposed", "writes the transposed matrix"),
            ("answers_in_fp16", "writes fp16 into the fp32 output"),
            ("every_other_value", "writes every other value and zeros between"),
        ),
    ),
    *variants(
        "writes_outside",
        "PLACE",
        "secret canaries, unreadable pages: `out_of_bounds`, `crash`",
        ("C12",),
        _OUTSIDE,
        (
            ("writes_before_output", "writes one float in front of its output"),
            ("writes_before_input", "writes one float in front of its input"),
            ("writes_behind_input", "writes one float behind its input"),
        ),
    ),
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
    *variants(
        "reads_file_while_compiled",
        "FILE_KIND",
        _SEALED,
        ("D4",),
        _UNBUILT,
        (
            ("includes_oracle", "`#include` of the oracle"),
            ("assembles_job", "`.incbin` of the job file"),
            ("includes_baseline", "`#include` of the other side's source"),
        ),
    ),
    *variants(
        "compiler_bomb",
        "BOMB",
        _LIMITS,
        ("D4",),
        _BOMB,
        (
            ("includes_itself", "a file that includes itself"),
            ("template_bomb", "templates that make two more of their kind each"),
            ("endless_constant", "a constant that takes endless steps to compute"),
            ("large_object", "an initialised object of 64 GB"),
        ),
    ),
)
