"""What a newcomer tried who knew the documents and the tasks only: wrong answers, the build, the worker's process."""

from __future__ import annotations

from collections.abc import Mapping

from akarena.records.evaluation import FailReason
from akarena.records.task import TargetName
from tests.adversarial.catalogue.fixture import BOTH, CPU, CUDA, LATE, UNWRITTEN, Expect, Fixture

_SOFTMAX = "hip2hip/softmax"
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


def _refused(
    name: str,
    tries: str,
    held_by: str,
    reasons: frozenset[FailReason],
    *,
    rows: tuple[str, ...] = (),
    task: str = _SOFTMAX,
    targets: frozenset[TargetName] = BOTH,
    seen: tuple[int, ...] = (),
    unseen: int | None = None,
    source: str = "",
    defines: Mapping[str, str] | None = None,
) -> Fixture:
    return Fixture(
        name,
        Expect.REFUSED,
        tries=tries,
        held_by=held_by,
        rows=rows,
        reasons=reasons,
        targets=targets,
        defines=defines or {},
        source=source,
        task=task,
        seen=seen,
        unseen=unseen,
    )


def _maximum_of(columns: int) -> Fixture:
    return _refused(
        f"maximum_of_{columns}_columns",
        f"lets the maximum of the first {columns} columns stand for that of the row",
        _BY_ROWS + "`non_finite_mismatch`, `low_precision`",
        _SHORTCUT,
        # Wide rows: on others these columns are all. Many, some of which have an outlier.
        seen=(2, 3),
        unseen=1,
        source="maximum_of_a_part",
        defines={"COLUMNS": str(columns)},
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
    return _refused(
        name,
        tries,
        held_by,
        _ROUNDED,
        rows=rows,
        task=_QUANT,
        targets=targets,
        seen=seen,
        unseen=unseen,
        source="rounds_otherwise",
        defines={"WAY": str(way)},
    )


def _roundings(name: str, count: int, tries: str, targets: frozenset[TargetName]) -> Fixture:
    return _refused(
        name,
        tries,
        "a short output may have one further rounding: `low_precision`",
        _ROUNDED,
        rows=("C8",),
        task=_RMS_NORM,
        targets=targets,
        # 16 bits on both targets.
        seen=(0, 2),
        unseen=7,
        source="rounds_more_than_once",
        defines={"ROUNDINGS": str(count)},
    )


NEWCOMER_VALUES = (
    _refused(
        "constant_shift",
        "takes 65 out of every value in place of the row's maximum",
        _BY_ROWS + "`non_finite_mismatch`, `low_precision`",
        _SHORTCUT,
        unseen=7,
    ),
    _maximum_of(32),
    _maximum_of(256),
    _refused(
        "cross_entropy_constant_shift",
        "takes 60 out of every logit in place of the row's maximum",
        _BY_ROWS + "`non_finite_mismatch`, `low_precision`",
        _SHORTCUT,
        task=_CROSS_ENTROPY,
    ),
    _refused(
        "attention_without_maximum",
        "exponentiates scores without taking their maximum out",
        _BY_ROWS + "`non_finite_mismatch`",
        _SHORTCUT,
        task="pytorch2hip/attention",
        unseen=6,
    ),
    _refused(
        "naive_variance",
        "gets the variance as E[x^2] - E[x]^2, in one pass",
        _BY_ROWS + "`wrong_values`, `low_precision`",
        _SHORTCUT,
        task=_LAYER_NORM,
    ),
    _refused(
        "naive_sigmoid",
        "gets the sigmoid as exp(v) / (1 + exp(v)), which is NaN for gates above 88",
        _BY_ROWS + "`non_finite_mismatch`, `wrong_values`",
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
    _refused(
        "half_partial_sums",
        "adds 32 products at a time up in fp16",
        "fp64 oracle, the baseline's own error: `wrong_values`, `low_precision`",
        _ROUNDED,
        rows=("C8",),
        task=_GEMM,
    ),
    _refused(
        "race_between_threads",
        "adds up in shared memory without atomics or barriers, right if threads run one after another",
        "threads run in an order that differs, on the cpu target by a secret seed: `wrong_values`",
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
    _refused(
        "punches_holes",
        "frees pages of the shared arena while the judge reads and refills it",
        "what was there reads as zeros: `out_of_bounds`, `input_changed`, `wrong_values`; never void",
        LATE,
        rows=("H6",),
        targets=CPU,
    ),
    _refused(
        "shuts_read_side",
        "shuts the reading side of the channel between two requests",
        "a request that does not arrive is a failure: `crash`; never void",
        _CRASH,
        rows=("H6",),
    ),
    _refused(
        "poisons_evidence",
        "fails with HTML, terminal escapes, NULs and broken UTF-8 in its output",
        "evidence is bounded, decoded and escaped: `returned_error`; never void",
        frozenset({FailReason.RETURNED_ERROR}),
        rows=("H2",),
        targets=CPU,
    ),
    _refused(
        "assembles_dev_zero",
        "`.incbin` of /dev/zero, which never ends",
        "limits of the compiler and of the build: `compile_error`, `compile_timeout`, `compile_resources`",
        _UNBUILT,
        rows=("D4",),
    ),
    _refused(
        "assembles_own_process",
        "`.incbin` of the environment and command line of the assembler (right only where a secret is there)",
        "a build is told nothing of the judgement: `output_not_written`",
        UNWRITTEN | _UNBUILT,
        rows=("D4",),
    ),
    _refused(
        "entry_is_ifunc",
        "an entry whose resolver runs while symbols are bound, and gives a function that does nothing",
        "only its own worker loads it; outputs are poisoned: `output_not_written`",
        UNWRITTEN | _UNBUILT,
        rows=("D5",),
    ),
    _refused(
        "entry_is_data",
        "an entry that is a string in read-only data",
        "what dies of the call is its own worker: `crash`",
        _CRASH,
        rows=("D5",),
    ),
    _refused(
        "repeats_answers",
        "overwrites libc's `send`: each answer is repeated with the next number; works on every second call only",
        "numbers of 63 random bits: `protocol_broken`",
        UNWRITTEN | {FailReason.PROTOCOL_BROKEN},
        rows=("H2", "H6"),
        task=_LAYER_NORM,
    ),
    _refused(
        "resumes_after_overflow",
        "runs out of stack, jumps back from the signal and answers a constant",
        "success is not believed: `wrong_values`",
        frozenset({FailReason.WRONG_VALUES}),
        rows=("C7",),
        task=_CROSS_ENTROPY,
    ),
    _refused(
        "nasty_exception",
        "raises an exception of 64 MB with 10000 causes, which ends the process when it is printed",
        "an answer that does not come is a failure: `crash`; never void",
        _CRASH | {FailReason.OUT_OF_MEMORY, FailReason.TIMEOUT},
        rows=("H10",),
        task=_RMS_NORM,
    ),
    _refused(
        "swaps_storage",
        "gives the output tensor another storage and shrinks the judge's own to nothing",
        "the judge reads its own buffers: `output_not_written`",
        UNWRITTEN,
        rows=("T3",),
        task=_RMS_NORM,
    ),
    _refused(
        "child_serves",
        "forks while it is imported; the child goes on as the worker, the parent ends in the middle of a call",
        "a worker that ended has failed, and all of its namespace ends with it: `crash`",
        _CRASH | {FailReason.RETURNED_ERROR, FailReason.DEVICE_FAULT, FailReason.LOAD_FAILED},
        rows=("H5", "D5"),
        task=_RMS_NORM,
    ),
    _refused(
        "interrupts_worker",
        "a timer raises in the worker's own code between calls, an audit hook refuses it sockets and files",
        "an answer that does not come is a failure: `crash`",
        _CRASH,
        rows=("H1",),
        task=_GEMM,
    ),
)
