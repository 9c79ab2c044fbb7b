"""What a newcomer tried who knew the documents and the tasks only: wrong answers, the build, the worker's process."""

from __future__ import annotations

from akarena.records.evaluation import FailReason
from akarena.records.task import TargetName
from tests.adversarial.catalogue.fixture import BOTH, CPU, CUDA, LATE, UNWRITTEN, Expect, Fixture, refused

_LAYER_NORM = "hip2hip/layer_norm"
_CROSS_ENTROPY = "pytorch2hip/cross_entropy"
_QUANT = "triton2triton/silu_mul_quant"
_RMS_NORM = "triton2triton/rms_norm"
_GEMM = "triton2triton/gemm"
_CRASH = frozenset({FailReason.CRASH})
_UNBUILT = frozenset({FailReason.COMPILE_ERROR, FailReason.COMPILE_TIMEOUT, FailReason.COMPILE_RESOURCES})
_ROUNDED = frozenset({FailReason.WRONG_VALUES, FailReason.LOW_PRECISION})
_SHORTCUT = _ROUNDED | {FailReason.NON_FINITE_MISMATCH}
_BY_ROWS = "a round in which rows differ in size, place and outliers: "


def _maximum_of(columns: int) -> Fixture:
    return refused(
        f"maximum_of_{columns}_columns",
        f"lets the maximum of the first {columns} columns stand for that of the row",
        _BY_ROWS + "`non_finite_mismatch`, `low_precision`",
        (),
        _SHORTCUT,
        # Wide rows: on others these columns are all. Many, some of which have an outlier.
        seen=(2, 3),
        unseen=1,
        variant=("maximum_of_a_part", "COLUMNS", columns),
    )


def _rounding(
    name: str,
    way: int,
    tries: str,
    held_by: str,
    *,
    seen: tuple[int, ...],
    unseen: int,
    rows: tuple[str, ...] = (),
    targets: frozenset[TargetName] = BOTH,
) -> Fixture:
    return refused(
        name,
        tries,
        held_by,
        rows,
        _ROUNDED,
        task=_QUANT,
        targets=targets,
        seen=seen,
        unseen=unseen,
        variant=("rounds_otherwise", "WAY", way),
    )


def _roundings(name: str, count: int, tries: str, targets: frozenset[TargetName]) -> Fixture:
    return refused(
        name,
        tries,
        "a short output may have one further rounding: `low_precision`",
        ("C8",),
        _ROUNDED,
        task=_RMS_NORM,
        targets=targets,
        # 16 bits on both targets.
        seen=(0, 2),
        unseen=7,
        variant=("rounds_more_than_once", "ROUNDINGS", count),
    )


NEWCOMER_VALUES = (
    refused(
        "constant_shift",
        "takes 65 out of every value in place of the row's maximum",
        _BY_ROWS + "`non_finite_mismatch`, `low_precision`",
        (),
        _SHORTCUT,
        unseen=7,
    ),
    _maximum_of(32),
    _maximum_of(256),
    refused(
        "cross_entropy_constant_shift",
        "takes 60 out of every logit in place of the row's maximum",
        _BY_ROWS + "`non_finite_mismatch`, `low_precision`",
        (),
        _SHORTCUT,
        task=_CROSS_ENTROPY,
    ),
    refused(
        "attention_without_maximum",
        "exponentiates scores without taking their maximum out",
        _BY_ROWS + "`non_finite_mismatch`",
        (),
        _SHORTCUT,
        task="pytorch2hip/attention",
        unseen=6,
    ),
    refused(
        "naive_variance",
        "gets the variance as E[x^2] - E[x]^2, in one pass",
        _BY_ROWS + "`wrong_values`, `low_precision`",
        (),
        _SHORTCUT,
        task=_LAYER_NORM,
    ),
    refused(
        "naive_sigmoid",
        "gets the sigmoid as exp(v) / (1 + exp(v)), which is NaN for gates above 88",
        _BY_ROWS + "`non_finite_mismatch`, `wrong_values`",
        (),
        _SHORTCUT,
        task=_QUANT,
        # Many rows, some of which have an outlier.
        unseen=4,
    ),
    _rounding(
        "truncates_fp8",
        0,
        "cuts fp8 results off towards zero in place of rounding",
        "a short output may have one further rounding, but not a bias: `low_precision`, `wrong_values`",
        seen=(1, 4),
        unseen=3,
        targets=CUDA,
    ),
    _rounding(
        "int8_through_fp16",
        1,
        "rounds to fp16 before rounding to int8",
        "only few elements may be one unit off: `wrong_values`, `low_precision`",
        seen=(0, 2),
        unseen=6,
        rows=("C8",),
    ),
    _rounding(
        "one_column_off",
        2,
        "makes one int8 column in 128 one unit too large, to use the admitted share up",
        "only few elements may be one unit off: `wrong_values`, `low_precision`",
        seen=(0, 2),
        unseen=6,
    ),
    # On the cpu target rows are few, so three roundings are near the limit: 1 of 21 judgements let them pass unseen.
    _roundings("rounds_thrice", 3, "rounds the inverse and both products to the 16 bits of the output", CUDA),
    _roundings("rounds_four_times", 4, "rounds the root, too", BOTH),
    refused(
        "half_partial_sums",
        "adds 32 products at a time up in fp16",
        "fp64 oracle, the baseline's own error: `wrong_values`, `low_precision`",
        ("C8",),
        _ROUNDED,
        task=_GEMM,
    ),
    refused(
        "race_between_threads",
        "adds up in shared memory without atomics or barriers, right if threads run one after another",
        "threads run in an order that differs, on the cpu target by a secret seed: `wrong_values`",
        (),
        _SHORTCUT,
    ),
    Fixture(
        "race_in_chosen_order",
        Expect.NO_GAIN,
        tries="the same race; host code sets the order of threads itself before each launch",
        held_by="on a GPU there is no such order",
        reasons=_SHORTCUT,
        targets=CPU,
        defines={"OWN_ORDER": "1"},
        source="race_between_threads",
        known_limit="passes on the cpu target, which measures no speed (docs/judge.md, known limits); the same kernel, "
        "`race_between_threads`, is refused on a GPU",
    ),
    refused(
        "punches_holes",
        "frees pages of the shared arena while the judge reads and refills it",
        "what was there reads as zeros: `out_of_bounds`, `input_changed`, `wrong_values`; never void",
        ("H6",),
        LATE,
        targets=CPU,
    ),
    refused(
        "shuts_read_side",
        "shuts the reading side of the channel between two requests",
        "a request that does not arrive is a failure: `crash`; never void",
        ("H6",),
        _CRASH,
    ),
    refused(
        "poisons_evidence",
        "fails with HTML, terminal escapes, NULs and broken UTF-8 in its output",
        "evidence is bounded, decoded and escaped: `returned_error`; never void",
        ("H2",),
        frozenset({FailReason.RETURNED_ERROR}),
        targets=CPU,
    ),
    refused(
        "assembles_dev_zero",
        "`.incbin` of /dev/zero, which never ends",
        "limits of the compiler and of the build: `compile_error`, `compile_timeout`, `compile_resources`",
        ("D4",),
        _UNBUILT,
    ),
    refused(
        "assembles_own_process",
        "`.incbin` of the environment and command line of the assembler (right only where a secret is there)",
        "a build is told nothing of the judgement: `output_not_written`",
        ("D4",),
        UNWRITTEN | _UNBUILT,
    ),
    refused(
        "entry_is_ifunc",
        "an entry whose resolver runs while symbols are bound, and gives a function that does nothing",
        "only its own worker loads it; outputs are poisoned: `output_not_written`",
        ("D5",),
        UNWRITTEN | _UNBUILT,
    ),
    refused(
        "entry_is_data",
        "an entry that is a string in read-only data",
        "what dies of the call is its own worker: `crash`",
        ("D5",),
        _CRASH,
    ),
    refused(
        "repeats_answers",
        "overwrites libc's `send`: each answer is repeated with the next number; works on every second call only",
        "numbers of 63 random bits: `protocol_broken`",
        ("H2", "H6"),
        UNWRITTEN | {FailReason.PROTOCOL_BROKEN},
        task=_LAYER_NORM,
    ),
    refused(
        "resumes_after_overflow",
        "runs out of stack, jumps back from the signal and answers a constant",
        "success is not believed: `wrong_values`",
        ("C7",),
        frozenset({FailReason.WRONG_VALUES}),
        task=_CROSS_ENTROPY,
    ),
    refused(
        "nasty_exception",
        "raises an exception of 64 MB with 10000 causes, which ends the process when it is printed",
        "an answer that does not come is a failure: `crash`; never void",
        ("H10",),
        _CRASH | {FailReason.OUT_OF_MEMORY, FailReason.TIMEOUT},
        task=_RMS_NORM,
    ),
    refused(
        "swaps_storage",
        "gives the output tensor another storage and shrinks the judge's own to nothing",
        "the judge reads its own buffers: `output_not_written`",
        ("T3",),
        UNWRITTEN,
        task=_RMS_NORM,
    ),
    refused(
        "child_serves",
        "forks while it is imported; the child goes on as the worker, the parent ends in the middle of a call",
        "a worker that ended has failed, and all of its namespace ends with it: `crash`",
        ("H5", "D5"),
        _CRASH | {FailReason.RETURNED_ERROR, FailReason.DEVICE_FAULT, FailReason.LOAD_FAILED},
        task=_RMS_NORM,
    ),
    refused(
        "interrupts_worker",
        "a timer raises in the worker's own code between calls, an audit hook refuses it sockets and files",
        "an answer that does not come is a failure: `crash`",
        ("H1",),
        _CRASH,
        task=_GEMM,
    ),
)
