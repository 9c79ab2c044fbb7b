"""What a newcomer tried against the clock. All but the last leave the arithmetic as it is; none may gain anything."""

from __future__ import annotations

import functools

from akarena.records.evaluation import FailReason
from tests.adversarial.catalogue.fixture import BUSY, CUDA, EARLY, LATE, Expect, Fixture

_MATMUL = "hip2hip/matmul"
_RMS_NORM = "triton2triton/rms_norm"
_TIMEOUT = frozenset({FailReason.TIMEOUT})
_BROKEN = frozenset({FailReason.CRASH, FailReason.DEVICE_FAULT, FailReason.RETURNED_ERROR})
_APART = "each call is a graph of its own in a secret order, some are replayed alone: no gain, or `calls_not_apart`"
_LOOKS = "idle device before each block, baseline timed alone: not faster, or `device_kept_busy`; never void"
_OVERHEAD = "both sides are credited with the same, and both wait awake: not faster"


_timed = functools.partial(Fixture, targets=CUDA, timed=True)


def _knows(
    name: str,
    trick: int,
    expect: Expect,
    tries: str,
    held_by: str,
    reasons: frozenset[FailReason],
    rows: tuple[str, ...],
) -> Fixture:
    defines = {"TRICK": str(trick)}
    return _timed(name, expect, tries, held_by, rows, reasons, source="knows_all_calls", defines=defines)


NEWCOMER_TIMING = (
    _timed(
        "cuts_dependencies",
        Expect.NO_GAIN,
        "takes the dependency on the call before away from each recorded call; the baseline's kernel",
        _APART,
        reasons=EARLY,
        rows=("T9",),
        # Small calls leave most of the device idle.
        seen=(0, 5),
    ),
    _timed(
        "cuts_matmul_dependencies",
        Expect.NO_GAIN,
        "the same where a call leaves most of the device idle",
        _APART,
        reasons=EARLY,
        rows=("T9",),
        task=_MATMUL,
        seen=(2, 5),
        source="cuts_dependencies",
        defines={"MATMUL": "1"},
    ),
    _timed(
        "cuts_triton_dependencies",
        Expect.NO_GAIN,
        "the same through the driver, from Python",
        _APART,
        reasons=EARLY,
        rows=("T9",),
        task=_RMS_NORM,
        seen=(0, 5),
    ),
    _timed(
        "overlaps_launches",
        Expect.NO_GAIN,
        "programmatic launches: each call begins while the one before runs",
        _APART,
        reasons=EARLY,
        rows=("T9",),
        seen=(0, 5),
    ),
    _timed(
        "overlaps_triton_launches",
        Expect.NO_GAIN,
        "the same with `launch_pdl`",
        _APART,
        reasons=EARLY,
        rows=("T9",),
        task="triton2triton/silu_mul_quant",
        seen=(0, 5),
    ),
    _timed(
        "overlaps_plain_calls",
        Expect.NO_GAIN,
        "refuses to be recorded; each plain call goes to another of 16 streams",
        "plain calls are waited for one by one, and pay for their launches: not faster",
        reasons=EARLY,
        rows=("T1", "T12"),
        task=_MATMUL,
        seen=(2, 5),
    ),
    _knows(
        "one_launch_for_all_calls",
        0,
        Expect.REFUSED,
        "the first recorded call does all of them in one launch, the others record nothing",
        "some calls are replayed without the others: `answered_early`, `calls_not_apart`",
        EARLY,
        ("T9", "H1"),
    ),
    _timed(
        "one_triton_launch_for_all",
        Expect.REFUSED,
        "the same in Triton, with the worker's own bindings",
        "some calls are replayed without the others: `answered_early`, `calls_not_apart`",
        reasons=EARLY,
        rows=("T9", "H1"),
        task=_RMS_NORM,
    ),
    _knows(
        "fetches_next_call",
        1,
        Expect.NO_GAIN,
        "each recorded call fetches the inputs of the next recorded one into L2",
        "calls are replayed in a secret order: not faster",
        EARLY,
        ("T9",),
    ),
    _knows(
        "refines_later",
        2,
        Expect.REFUSED,
        "recorded calls write rough values at once; a thread computes all rightly when the replay has just ended",
        "outputs may not change once it has answered, some are compared: `answered_early`, `wrong_when_timed`",
        EARLY | BUSY | LATE,
        ("T14", "T2"),
    ),
    _knows(
        "warms_when_woken",
        3,
        Expect.NO_GAIN,
        "when it is woken, just before the clock, reads all pages and fetches the first calls' inputs into L2",
        "a longer wake is added to its time, the sets exceed the cache six times: not faster",
        EARLY | BUSY,
        ("D7", "H1"),
    ),
    _knows(
        "starts_unsampled_part",
        4,
        Expect.NO_GAIN,
        "when it is woken, computes one row in 512 of all calls, and leaves these out later",
        "it is also woken in secret without being asked for anything: `answered_early`, or no gain",
        EARLY | BUSY,
        ("D7", "H1"),
    ),
    _timed(
        "spins_for_answer",
        Expect.NO_GAIN,
        "waits for the device by spinning, locks its memory and keeps processors awake; the baseline's kernel",
        _OVERHEAD,
        reasons=EARLY | BUSY | _TIMEOUT,
        seen=(0, 5),
    ),
    _timed(
        "slow_until_planned",
        Expect.NO_GAIN,
        "is slow until the number of calls in a replay is chosen, so that a shorter message weighs more",
        _OVERHEAD,
        reasons=EARLY,
        rows=("T10",),
        seen=(0, 5),
    ),
    _timed(
        "short_bursts",
        Expect.NO_GAIN,
        "on one size in four launches kernels of 150 us in the baseline's turns, and holds still in its own",
        _LOOKS,
        reasons=EARLY | BUSY,
        rows=("D3", "T11"),
        # Two sizes of that fourth.
        seen=(3, 4),
    ),
    _timed(
        "takes_l2",
        Expect.NO_GAIN,
        "sets the largest part of L2 aside for itself and never gives it back",
        "the baseline is also timed alone, so what is taken from it counts for nothing",
        rows=("D3", "T11"),
        known_limit="it may keep lines for itself: 1.06x on one size, a loss on another (docs/judge.md)",
        most_gain=1.1,
    ),
    _timed(
        "slow_to_die",
        Expect.NO_GAIN,
        "kernels of 200 ms on a stream of its own and 6 GiB of page-locked memory, so that it dies slowly",
        _LOOKS,
        reasons=EARLY | BUSY | _TIMEOUT,
        rows=("D3", "D7"),
    ),
    _timed(
        "child_holds_device",
        Expect.NO_GAIN,
        "a child of its own keeps the device busy, which no stream of the worker waits for",
        _LOOKS,
        reasons=EARLY | BUSY | _TIMEOUT,
        rows=("D3", "H5"),
    ),
    _timed(
        "allocates_in_graph",
        Expect.NO_GAIN,
        "records an allocation of 64 MiB in each call that is never freed",
        "what cannot be chained pays for its launches; what the judge lacks comes back when it is dead: not faster, or "
        "`device_memory_taken`; never void",
        reasons=EARLY
        | _BROKEN
        | {FailReason.DEVICE_MEMORY_TAKEN, FailReason.OUT_OF_MEMORY, FailReason.BASELINE_BROKEN},
    ),
    _timed(
        "traps_between_turns",
        Expect.REFUSED,
        "a kernel that traps 50 ms after calls are recorded, while the judge or the baseline has the device",
        "a device context of its own: `device_fault`, `crash`; never void",
        reasons=_BROKEN | BUSY | _TIMEOUT | {FailReason.BASELINE_BROKEN},
    ),
    _timed(
        "prints_from_kernels",
        Expect.NO_GAIN,
        "prints a line of a verdict from each row on the device, through 64 MB",
        "nothing that a worker prints is parsed, head and tail are kept: not faster, or `timeout`; never void",
        reasons=EARLY | _TIMEOUT,
        rows=("H2",),
    ),
    _timed(
        "answers_from_graph",
        Expect.REFUSED,
        "a host function in the graph answers `done` with the true number, and the worker's own answer is dropped",
        "a secret sample of outputs read when the answer comes: `answered_early`",
        reasons=EARLY | {FailReason.PROTOCOL_BROKEN},
        rows=("T14", "H2", "H6"),
        task="pytorch2hip/feed_forward",
    ),
    _timed(
        "no_maximum_when_recorded",
        Expect.REFUSED,
        "recorded calls leave the maximum out, which is right for ordinary inputs",
        "some timed calls get values of any round and are compared: `wrong_when_timed`",
        reasons=EARLY,
        rows=("T10",),
    ),
)
