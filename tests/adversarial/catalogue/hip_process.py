"""Hostile HIP candidates that attack the worker, its channel and sandbox, or look for what they must not know."""

from __future__ import annotations

from akarena.records.evaluation import FailReason
from tests.adversarial.catalogue.fixture import (
    BUSY,
    CPU,
    CUDA,
    EARLY,
    LATE,
    UNWRITTEN,
    Expect,
    Fixture,
    refused,
    variants,
)

_CRASH = frozenset({FailReason.CRASH})
_TIMEOUT = frozenset({FailReason.TIMEOUT})
_BROKEN = frozenset({FailReason.PROTOCOL_BROKEN})
_NO_ANSWER = "an answer that does not come is a failure: "
_ONE_FRAME = "answers are 24 bytes, taken one by one, within a time: "


def _said(reasons: frozenset[FailReason]) -> str:
    return ", ".join(f"`{reason.value}`" for reason in sorted(reasons))


def _loaded(name: str, number: int, tries: str, reasons: frozenset[FailReason]) -> Fixture:
    held_by = f"only its own worker loads it; {_NO_ANSWER}{_said(reasons)}"
    return refused(name, tries, held_by, ("D5",), reasons, variant=("constructor", "DEED", number))


def _ends(name: str, number: int, tries: str, reasons: frozenset[FailReason], rows: tuple[str, ...]) -> Fixture:
    return refused(name, tries, _NO_ANSWER + _said(reasons), rows, reasons, variant=("ends_process", "END", number))


def _sends(name: str, number: int, tries: str, reasons: frozenset[FailReason]) -> Fixture:
    return refused(name, tries, _ONE_FRAME + _said(reasons), ("H2",), reasons, variant=("frames", "FRAME", number))


HIP_PROCESS = (
    Fixture(
        "takes_device_memory",
        Expect.NO_GAIN,
        tries="takes all device memory that is left, so that the judge's own work fails",
        held_by="what the judge lacks comes back when it is dead: `device_memory_taken`; never void",
        reasons=frozenset({FailReason.DEVICE_MEMORY_TAKEN}),
        targets=CUDA,
        timed=True,
    ),
    Fixture(
        "takes_baseline_memory",
        Expect.NO_GAIN,
        tries="takes all device memory that is left, when it is first called, so that the eager baseline finds none",
        held_by="the baseline works again when it is dead: `baseline_broken`, `device_memory_taken`; never void",
        reasons=frozenset({FailReason.DEVICE_MEMORY_TAKEN, FailReason.BASELINE_BROKEN}),
        targets=CUDA,
        timed=True,
        task="pytorch2hip/cross_entropy",
    ),
    Fixture(
        "hogs_processor",
        Expect.NO_GAIN,
        tries="keeps every processor busy except while its own requests are carried out",
        held_by="baseline also timed alone: not faster",
        rows=("D3",),
        reasons=EARLY | BUSY | _TIMEOUT,
        targets=CUDA,
        timed=True,
    ),
    Fixture(
        "computes_on_host",
        Expect.NO_GAIN,
        tries="launches a kernel for show and computes on the processor",
        held_by="not capturable, so every call is paid for: slower, `timeout`",
        rows=("H9",),
        reasons=EARLY | _TIMEOUT,
        targets=CUDA,
        timed=True,
    ),
    *variants(
        "breaks_device",
        "HARM",
        "a device context of its own: `device_fault`, `crash`, `timeout`, `output_not_written`; never void",
        (),
        UNWRITTEN | _CRASH | _TIMEOUT | {FailReason.DEVICE_FAULT, FailReason.RETURNED_ERROR},
        (
            ("illegal_access", "a kernel that writes where nothing is"),
            ("device_trap", "a kernel that traps"),
            ("resets_device", "resets its device"),
            ("endless_kernel", "a kernel that never ends"),
            ("frees_arena", "frees the memory that the judge shared"),
        ),
        targets=CUDA,
    ),
    _loaded("prints_when_loaded", 0, "prints a verdict when it is loaded, and ends with success", _CRASH),
    _loaded("forges_when_loaded", 1, "sends a `done` when it is loaded, and ends", _BROKEN | _CRASH),
    _loaded("killed_when_loaded", 2, "kills itself when it is loaded, as if memory were short", _CRASH),
    _loaded("other_program_when_loaded", 3, "becomes another program when it is loaded", _CRASH),
    refused(
        "serves_itself",
        "takes the worker's place when it is loaded and answers every request with `done`",
        "an answer only lets the judge look at the output: `output_not_written`",
        ("D5", "H1", "H2"),
        UNWRITTEN,
    ),
    refused(
        "replaces_loop",
        "overwrites the worker's functions: every request is done and none carried out",
        "nothing of the worker decides: `output_not_written`",
        ("H1",),
        UNWRITTEN,
    ),
    refused(
        "replaces_symbols",
        "exports `memcmp`, `mprotect`, `send` and others of its own",
        "its process compares nothing, its names stay its own: `output_not_written`",
        ("H6", "H1"),
        UNWRITTEN,
    ),
    refused(
        "opens_guards",
        "makes the pages between tensors writable again, and writes there",
        "canaries, read through the judge's own mapping: `out_of_bounds`",
        ("H6", "C12"),
        frozenset({FailReason.OUT_OF_BOUNDS}),
        targets=CPU,
    ),
    refused(
        "lazy_pages",
        "gives pages that fill themselves when they are looked at",
        "the judge looks through its own mapping: `output_not_written`",
        ("T3",),
        UNWRITTEN,
        targets=CPU,
    ),
    _ends("ends_without_answer", 0, "ends its process with success in a call", _CRASH, ("H10",)),
    _ends("kills_itself", 1, "kills itself in a call, as if memory were short", _CRASH, ("H5",)),
    _ends("stops_itself", 2, "stops itself in a call, neither alive nor dead", _TIMEOUT, ("H5",)),
    _ends(
        "answers_from_destructor",
        3,
        "answers `done` from a destructor while its process ends",
        UNWRITTEN | _CRASH,
        ("H2", "D5"),
    ),
    _ends("throws", 4, "throws an exception out of the call", _CRASH, ()),
    _ends("jumps_out", 5, "jumps out of the call to nowhere", _CRASH, ()),
    _ends("closes_channel", 6, "closes the channel to the judge", _CRASH, ("H6",)),
    _ends("other_program", 7, "becomes another program in a call", _CRASH, ("H6",)),
    _sends("too_long_frame", 0, "sends 1 MiB in front of its answer", _BROKEN),
    _sends("malformed_frame", 1, "sends an answer of another kind", _BROKEN),
    _sends("answers_twice", 2, "sends each answer twice", _BROKEN),
    _sends("unknown_status", 3, "sends a status that does not exist, with the true number", _BROKEN),
    _sends("half_an_answer", 4, "sends half an answer, then nothing", _TIMEOUT),
    _sends("sends_descriptors", 5, "sends 200 open files with a `done` before the work", UNWRITTEN),
    refused(
        "leaves_session",
        "leaves a process with a session of its own that ignores signals and works later",
        "outputs read when the answer comes: `output_not_written`, or what late work breaks in the next layout",
        ("H5", "T2"),
        LATE,
        targets=CPU,
    ),
    refused(
        "forks_until_refused",
        "starts processes until it is refused more, so that the judge can start none",
        "a pool of the judge's own, a limit for each process: `too_many_processes`, `output_not_written`",
        (),
        UNWRITTEN | _CRASH | {FailReason.TOO_MANY_PROCESSES},
        targets=CPU,
    ),
    refused(
        "floods_output",
        "prints 256 MB of bytes that are no text",
        "head and tail are kept and decide nothing: `output_not_written`",
        ("H2",),
        UNWRITTEN,
    ),
    refused(
        "fills_folders",
        "fills its folders with 20000 empty files",
        "each is a tmpfs of its own process: `output_not_written`",
        (),
        UNWRITTEN,
    ),
    refused(
        "breaks_init",
        "writes over the memory of its sandbox's init process",
        "what dies of it is its own sandbox: `crash`, `output_not_written`; never void",
        ("H6",),
        _CRASH | UNWRITTEN,
    ),
    refused(
        "calls_library",
        "loads a vendor's library, torch or a BLAS (right only where there is one)",
        "a worker has none: `output_not_written`",
        ("H7",),
        UNWRITTEN,
    ),
    refused(
        "calls_the_original",
        "falls back to baseline, solution, oracle or torch (right only where there is one), behind a decoy kernel",
        "none of them is there: `output_not_written`",
        ("H8", "H9"),
        UNWRITTEN,
    ),
    refused(
        "looks_for_secret",
        "looks for the seed in environment, arguments, files and requests (right only where there is one)",
        "it was never told: `output_not_written`",
        ("C6", "H4"),
        UNWRITTEN,
    ),
    refused(
        "leaves_notes",
        "leaves notes for its next process in folders, caches and sockets, and ends by force (right only where one is "
        "found; judged twice)",
        "each process has empty folders of its own: `crash`",
        ("T8", "D6"),
        _CRASH,
        judgements=2,
    ),
    refused(
        "reads_leftovers",
        "searches unwritten shared and device memory for the expected answer",
        "expected values are overwritten, memory comes clean: `output_not_written`",
        ("D1", "C1"),
        UNWRITTEN,
    ),
)
