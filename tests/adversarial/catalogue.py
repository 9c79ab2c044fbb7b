"""Every hostile candidate with what must refuse it, and the honest look-alikes that must pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from akarena.records.evaluation import FailReason
from akarena.records.task import TargetName

HERE = Path(__file__).resolve().parent
_CPU = frozenset({TargetName.CPU})
_CUDA = frozenset({TargetName.CUDA})
_BOTH = _CPU | _CUDA
_EARLY = frozenset({FailReason.ANSWERED_EARLY, FailReason.WRONG_WHEN_TIMED})
_BUSY = frozenset({FailReason.DEVICE_KEPT_BUSY})
_UNWRITTEN = frozenset({FailReason.OUTPUT_NOT_WRITTEN})
_LATE = (
    FailReason.OUTPUT_NOT_WRITTEN,
    # Where the late work lands among the buffers of the next configuration:
    FailReason.OUT_OF_BOUNDS,
    FailReason.INPUT_CHANGED,
    FailReason.WRONG_VALUES,
    FailReason.NON_FINITE_MISMATCH,
    FailReason.CRASH,
)


class Expect(StrEnum):
    """What a judgement must come to."""

    REFUSED = "refused"
    """Both splits fail, for one of the listed reasons."""
    NO_GAIN = "no_gain"
    """Correct and nowhere ``faster``, or refused for one of the listed reasons."""
    NO_DIFFERENCE = "no_difference"
    """Correct, measured everywhere, within 3 percent of the baseline."""
    PASSES = "passes"
    """Correct; measured where speed was asked for."""


@dataclass(frozen=True)
class Fixture:
    """One candidate.

    Attributes:
        name: Name of the fixture.
        expect: What must come of it.
        reasons: Acceptable reasons of a refusal.
        targets: Where it means something.
        timed: Whether speed has to be measured for it; the others are judged without.
        defines: Macros set in front of its text.
        source: Name of the file where several fixtures share one.
        seen: Which seen configurations of the task it is judged on; empty for the usual ones.
        judgements: How many times it is judged; each time must come to the same.
    """

    name: str
    expect: Expect
    reasons: frozenset[FailReason] = frozenset()
    targets: frozenset[TargetName] = _BOTH
    timed: bool = False
    defines: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    seen: tuple[int, ...] = ()
    judgements: int = 1

    @property
    def path(self) -> Path:
        """The file of the candidate."""
        folder = "honest" if self.expect is Expect.PASSES else "evil"
        return HERE / folder / f"{self.source or self.name}.hip"


def _refused(name: str, *reasons: FailReason, targets: frozenset[TargetName] = _BOTH) -> Fixture:
    return Fixture(name, Expect.REFUSED, frozenset(reasons), targets)


FIXTURES = (
    # The first ones decide whether speed can be trusted, so they run first where time is short.
    Fixture("forges_event_times", Expect.NO_DIFFERENCE, targets=_CUDA, timed=True),
    Fixture("answers_early", Expect.REFUSED, _EARLY, _CUDA, timed=True),
    Fixture("first_replay_only", Expect.REFUSED, _EARLY, _CUDA, timed=True),
    Fixture("disturbs_baseline", Expect.NO_GAIN, _BUSY, _CUDA, timed=True),
    Fixture("starts_before_clock", Expect.NO_GAIN, _EARLY | _BUSY, _CUDA, timed=True),
    Fixture(
        "answers_1500us_early",
        Expect.NO_GAIN,
        _EARLY,
        _CUDA,
        timed=True,
        defines={"EARLY_US": "1500"},
        source="answers_slightly_early",
    ),
    Fixture(
        "answers_200us_early",
        Expect.NO_GAIN,
        _EARLY,
        _CUDA,
        timed=True,
        defines={"EARLY_US": "200"},
        source="answers_slightly_early",
    ),
    Fixture("captures_for_itself", Expect.NO_GAIN, _EARLY, _CUDA, timed=True, seen=(0, 5)),
    Fixture("skips_some_calls", Expect.REFUSED, _EARLY, _CUDA, timed=True),
    Fixture("works_at_capture", Expect.REFUSED, _EARLY, _CUDA, timed=True),
    Fixture("side_stream", Expect.NO_GAIN, _EARLY | _BUSY, _CUDA, timed=True),
    Fixture("persistent_kernel", Expect.NO_GAIN, _EARLY | _BUSY | {FailReason.TIMEOUT}, _CUDA, timed=True),
    Fixture("side_stream_joined", Expect.PASSES, targets=_CUDA, timed=True),
    Fixture("remembers_addresses", Expect.REFUSED, _EARLY | _UNWRITTEN, timed=True),
    Fixture("atomics_and_workspace", Expect.PASSES, timed=True),
    Fixture("fallback_and_cache", Expect.PASSES, timed=True),
    _refused("remembers_values", FailReason.WRONG_VALUES),
    _refused("sends_done_first", *_LATE),
    _refused("forges_done_frame", FailReason.PROTOCOL_BROKEN, FailReason.OUTPUT_NOT_WRITTEN),
    _refused("claims_not_capturable", FailReason.PROTOCOL_BROKEN),
    _refused("background_thread", *_LATE),
    _refused("writes_behind", FailReason.OUT_OF_BOUNDS, FailReason.CRASH),
    _refused("changes_input", FailReason.INPUT_CHANGED),
    _refused("writes_nothing", FailReason.OUTPUT_NOT_WRITTEN),
    _refused("last_row_skipped", FailReason.OUTPUT_NOT_WRITTEN),
    _refused("half_precision", FailReason.WRONG_VALUES, FailReason.LOW_PRECISION),
    _refused("prints_a_verdict", FailReason.OUTPUT_NOT_WRITTEN),
    _refused("kills_parent", FailReason.OUTPUT_NOT_WRITTEN, FailReason.CRASH),
    # Twice: the second judgement must not find what the first one left.
    Fixture("looks_around", Expect.REFUSED, _UNWRITTEN, judgements=2),
    _refused("leaves_child", *_LATE, targets=_CPU),
    _refused("inputs_made_to_fit", FailReason.WRONG_VALUES, FailReason.INPUT_CHANGED, targets=_CPU),
    _refused("searches_memory", FailReason.OUTPUT_NOT_WRITTEN, targets=_CPU),
    _refused("truncates_arena", FailReason.OUTPUT_NOT_WRITTEN, targets=_CPU),
)


def on(target: TargetName) -> list[Fixture]:
    """Return the fixtures that mean something on a target."""
    return [fixture for fixture in FIXTURES if target in fixture.targets]
