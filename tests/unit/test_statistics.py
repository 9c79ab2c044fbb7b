import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akarena import statistics
from akarena.records.evaluation import SpeedVerdict
from akarena.statistics import Interval

TIMES = st.lists(st.floats(0.5, 1e6), min_size=10, max_size=40)
SPEEDUPS = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20)


def noise(generator: np.random.Generator, spread: float, size: int) -> list[float]:
    return [float(value) for value in np.exp(generator.normal(0, spread, size))]


def test_import_needs_only_numpy() -> None:
    code = (
        "import sys; sys.modules['pydantic'] = None; sys.modules['scipy'] = None\n"
        "import akarena.statistics as s; print(s.ratio_of_medians([2.0] * 10, [1.0] * 10, floor=0.01).point)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "2.0"


@given(TIMES, TIMES, st.floats(0, 0.5))
@settings(max_examples=25, deadline=None)
def test_ratio_is_ordered_and_repeatable(baseline: list[float], candidate: list[float], floor: float) -> None:
    interval = statistics.ratio_of_medians(baseline, candidate, floor=floor)
    assert interval == statistics.ratio_of_medians(baseline, candidate, floor=floor)
    assert interval.low <= interval.point <= interval.high
    assert interval.point == pytest.approx(float(np.median(baseline) / np.median(candidate)))
    assert interval.high / interval.low >= (1 + floor) ** 2 * (1 - 1e-12)


@given(TIMES, st.floats(0.01, 100))
@settings(max_examples=10, deadline=None)
def test_ratio_does_not_depend_on_the_unit(times: list[float], factor: float) -> None:
    other = noise(np.random.default_rng(0), 0.02, 12)
    one = statistics.ratio_of_medians(times, other, floor=0.01)
    two = statistics.ratio_of_medians([t * factor for t in times], [t * factor for t in other], floor=0.01)
    assert (two.point, two.low, two.high) == pytest.approx((one.point, one.low, one.high))


@pytest.mark.parametrize("blocks", [10, 25])
def test_ratio_covers_the_truth(blocks: int) -> None:
    generator = np.random.default_rng(blocks)
    covered = 0
    for seed in range(300):
        baseline = [2 * t for t in noise(generator, 0.03, blocks)]
        interval = statistics.ratio_of_medians(baseline, noise(generator, 0.03, blocks), floor=0, seed=seed)
        covered += interval.low <= 2 <= interval.high
    assert covered / 300 >= 0.93


@pytest.mark.parametrize("bad", [[0.0] * 10, [math.nan] * 10, [math.inf] * 10, [-1.0] * 10, [1.0]])
def test_times_that_are_no_times_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="candidate_us"):
        statistics.ratio_of_medians([1.0] * 10, bad, floor=0.01)
    with pytest.raises(ValueError, match="floor"):
        statistics.ratio_of_medians([1.0] * 10, [1.0] * 10, floor=-0.1)


@pytest.mark.parametrize(
    ("low", "high", "floor", "expected"),
    [
        (1.021, 1.2, 0.0, SpeedVerdict.FASTER),
        (1.02, 1.2, 0.0, SpeedVerdict.NO_DIFFERENCE_SHOWN),
        (1.04, 1.2, 0.05, SpeedVerdict.NO_DIFFERENCE_SHOWN),
        (0.5, 0.979, 0.0, SpeedVerdict.SLOWER),
        (0.5, 0.98, 0.0, SpeedVerdict.NO_DIFFERENCE_SHOWN),
        (0.5, 0.96, 0.05, SpeedVerdict.NO_DIFFERENCE_SHOWN),
        (0.5, 2.0, 0.0, SpeedVerdict.NO_DIFFERENCE_SHOWN),
        (0.001, 0.01, 2.0, SpeedVerdict.NO_DIFFERENCE_SHOWN),
    ],
)
def test_speed_verdict(low: float, high: float, floor: float, expected: SpeedVerdict) -> None:
    assert statistics.speed_verdict(Interval((low + high) / 2, low, high), floor) is expected


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ([415, 866, 415, 866], "bimodal"),
        ([415.0] * 6 + [866.0] * 6, "bimodal"),
        ([100 + 2 * i for i in range(12)], "drifting"),
        ([130 - i + 0.3 * (i % 3) for i in range(30)], "drifting"),
        ([100.0] * 10, None),
        ([100.0] * 19 + [900.0], None),
        ([100.0, 200.0, 100.0], None),
        ([], None),
    ],
)
def test_series_fault(series: list[float], expected: str | None) -> None:
    assert statistics.series_fault(series) == expected


@pytest.mark.parametrize("blocks", [10, 20, 40])
@pytest.mark.parametrize("shape", ["normal", "one_sided"])
def test_honest_noise_is_no_fault(blocks: int, shape: str) -> None:
    generator = np.random.default_rng(blocks)
    alarms = 0
    for trial in range(500):
        spread = 0.01 + 0.02 * (trial % 3) / 2
        sample = generator.normal(0, spread, blocks) if shape == "normal" else generator.exponential(spread, blocks)
        alarms += statistics.series_fault((80 * np.exp(sample)).tolist()) is not None
    assert alarms <= 2


def test_two_modes_and_a_trend_are_found_under_noise() -> None:
    generator = np.random.default_rng(5)
    found = {"bimodal": 0, "drifting": 0}
    for _ in range(100):
        jitter = np.exp(generator.normal(0, 0.01, 20))
        modes = np.where(np.arange(20) % 2, 1.0, 1.2)
        found["bimodal"] += statistics.series_fault((modes * jitter).tolist()) == "bimodal"
        found["drifting"] += statistics.series_fault((np.linspace(1, 1.15, 20) * jitter).tolist()) == "drifting"
    assert min(found.values()) >= 95


def test_instrument_floor_against_known_values() -> None:
    assert statistics.instrument_floor([1.0, 1.0]) == 0.0
    assert statistics.instrument_floor([1.01, 1 / 1.01]) == pytest.approx(1.01**3 - 1)
    one_of_four = statistics.instrument_floor([1.02, 1.0, 1.0, 1.0])
    assert one_of_four == pytest.approx(1.02**1.5 - 1)


def test_instrument_floor_covers_normal_errors() -> None:
    numbers = np.random.default_rng(7)
    missed = 0
    for _ in range(300):
        floor = statistics.instrument_floor(np.exp(numbers.normal(0.0, 0.005, 16)).tolist())
        missed += abs(numbers.normal(0.0, 0.005)) > math.log1p(floor)
    assert missed <= 6


@pytest.mark.parametrize("ratios", [[], [0.0], [1.0, -1.0], [math.nan], [math.inf]])
def test_instrument_floor_of_no_ratios_is_refused(ratios: list[float]) -> None:
    with pytest.raises(ValueError, match="ratios"):
        statistics.instrument_floor(ratios)


def test_f25_geometric_mean_of_two_and_a_half_is_one() -> None:
    assert statistics.geometric_mean([2, 0.5]) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="at least 1"):
        statistics.geometric_mean([])
    with pytest.raises(ValueError, match="positive"):
        statistics.geometric_mean([2.0, 0.0])


@given(SPEEDUPS)
def test_geometric_mean_of_inverses_is_the_inverse(values: list[float]) -> None:
    mean = statistics.geometric_mean(values)
    assert statistics.geometric_mean([1 / v for v in values]) == pytest.approx(1 / mean)
    assert min(values) * (1 - 1e-9) <= mean <= max(values) * (1 + 1e-9)


@given(st.integers(1, 12), st.floats(1.01, 1.5), st.floats(0, 0.2))
def test_the_floor_does_not_shrink_with_cases(cases: int, spread: float, floor: float) -> None:
    widened = Interval(2.0, 2.0 / spread / (1 + floor), 2.0 * spread * (1 + floor))
    mean = statistics.geometric_mean_of_intervals([widened] * cases, floor=floor)
    assert mean.point == pytest.approx(2.0)
    assert mean.high / mean.point == pytest.approx(spread ** (1 / math.sqrt(cases)) * (1 + floor))
    assert mean.point / mean.low == pytest.approx(spread ** (1 / math.sqrt(cases)) * (1 + floor))


def test_one_case_keeps_its_interval() -> None:
    interval = statistics.ratio_of_medians(
        noise(np.random.default_rng(0), 0.05, 12), noise(np.random.default_rng(1), 0.05, 12), floor=0.03
    )
    mean = statistics.geometric_mean_of_intervals([interval], floor=0.03)
    assert (mean.point, mean.low, mean.high) == pytest.approx((interval.point, interval.low, interval.high))


def test_wilson_against_known_values() -> None:
    interval = statistics.wilson(8, 10)
    assert (interval.point, interval.low, interval.high) == pytest.approx((0.8, 0.4902, 0.9433), abs=1e-4)
    assert statistics.wilson(0, 5).low == 0 < statistics.wilson(0, 5).high < 1
    assert statistics.wilson(5, 5).high == 1 > statistics.wilson(5, 5).low > 0
    for successes, n in ((1, 0), (-1, 5), (6, 5)):
        with pytest.raises(ValueError):
            statistics.wilson(successes, n)


@given(st.integers(1, 300), st.data())
def test_wilson_is_ordered_and_symmetric(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    one, other = statistics.wilson(successes, n), statistics.wilson(n - successes, n)
    assert 0 <= one.low <= one.point <= one.high <= 1
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low))


@pytest.mark.parametrize("tasks", [3, 6, 15])
def test_clustered_mean_covers_the_truth(tasks: int) -> None:
    generator = np.random.default_rng(tasks)
    covered = 0
    for seed in range(200):
        values = {
            f"task{i}": (generator.normal(0.3, 0.5) + generator.normal(0, 0.1, generator.integers(1, 4))).tolist()
            for i in range(tasks)
        }
        interval = statistics.clustered_mean(values, seed=seed)
        assert interval is not None
        covered += interval.low <= 0.3 <= interval.high
    assert covered / 200 >= 0.89


def test_attempts_at_one_task_are_no_new_evidence() -> None:
    single = {f"task{i}": [float(i)] for i in range(6)}
    repeated = {task: values * 10 for task, values in single.items()}
    one, ten = statistics.clustered_mean(single), statistics.clustered_mean(repeated)
    assert one is not None
    assert ten is not None
    assert (ten.low, ten.high) == pytest.approx((one.low, one.high))


def test_one_task_has_no_interval() -> None:
    assert statistics.clustered_mean({"a": [1.0, 2.0], "b": []}) is None
    assert statistics.clustered_geometric_mean({}) is None
    wide = statistics.clustered_geometric_mean({"a": [1e-9], "b": [1e9]})
    assert wide is not None
    assert 0 < wide.low < wide.point < wide.high < math.inf


def test_student_quantile_matches_scipy() -> None:
    from scipy.stats import t

    for degrees in (1, 2, 3, 5, 9, 30, 200):
        for probability in (0.6, 0.9, 0.975, 0.995):
            expected = float(t.ppf(probability, degrees))
            assert statistics.student_quantile(probability, degrees) == pytest.approx(expected, rel=0.01)
    with pytest.raises(ValueError):
        statistics.student_quantile(0.9, 0)


def test_paired_comparison_finds_a_constant_factor_under_task_spread() -> None:
    generator = np.random.default_rng(2)
    second = {f"t{i}": [float(np.exp(generator.normal(0, 1)))] for i in range(10)}
    first = {task: [v[0] * 1.3 * float(np.exp(generator.normal(0, 0.02)))] for task, v in second.items()}
    result = statistics.paired_comparison(first, second)
    assert result.tasks == 10
    assert result.ratio is not None
    assert result.p_value is not None
    assert 1.2 < result.ratio.low < 1.3 < result.ratio.high < 1.4
    assert result.p_value == pytest.approx(2 / 2**10)
    assert statistics.paired_comparison(first, first).p_value == 1.0
    assert statistics.paired_comparison(first, {"t0": [1.0]}) == statistics.PairedComparison(1, None, None)


def test_sampled_sign_flips_never_give_zero() -> None:
    first = {f"t{i:02}": [2.0] for i in range(20)}
    second = {task: [1.0] for task in first}
    p_value = statistics.paired_comparison(first, second).p_value
    assert p_value is not None
    assert 0 < p_value < 0.01


def test_holm() -> None:
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert statistics.holm([0.9, 0.8]) == [1.0, 1.0]
    assert statistics.holm([]) == []


def test_f25_f31_failures_stay_in_the_denominator_of_fast_p() -> None:
    assert statistics.fast_p([2.0, None], 1.0) == 0.5
    assert statistics.fast_p([2.0, None, None], 1.0) == pytest.approx(1 / 3)
    assert statistics.fast_p([1.0, 1.5], 1.0) == 0.5
    with pytest.raises(ValueError):
        statistics.fast_p([], 1.0)
