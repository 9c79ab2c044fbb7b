from collections.abc import Callable, Mapping

import pytest
import torch

from akarena import tasks
from akarena.judge import controls
from akarena.judge.controls import CONTROLS, Caught, Outcome, fit, make_case, run_controls
from akarena.judge.correctness import Oracle, OracleError, load_oracle
from akarena.records.evaluation import FailReason, Round
from akarena.records.task import DType, OutputArgument, TaskRecord, Tolerance, Value
from tests.tasks import fixtures
from tests.tasks.fixtures import HIP, PYTORCH, TRITON

NAMES = (
    "zeros",
    "input_copied",
    "last_block_skipped",
    "one_element_wrong",
    "lower_precision",
    "tf32_inputs",
    "stale_output",
    "transposed",
    "constant_mean",
)
SQUARE: dict[str, Value] = {"rows": 64, "cols": 64, "scale": 0.5}
Tensors = dict[str, torch.Tensor]


def load(name: str) -> tuple[TaskRecord, Oracle]:
    task = tasks.load(fixtures.HERE / name)
    return task.record, load_oracle(task.oracle)


def run(oracle: Callable[..., Tensors], values: Mapping[str, Value] = SQUARE) -> dict[str, Caught]:
    """Run the controls on the HIP fixture with another oracle."""
    return run_controls(load(HIP)[0], values, oracle)


def with_tolerance(task: TaskRecord, tolerance: Tolerance, dtype: str = "fp32") -> TaskRecord:
    return task.model_copy(update={"tolerance": {DType(dtype): tolerance}})


def with_output(task: TaskRecord, dtype: str, tolerance: Tolerance) -> TaskRecord:
    arguments = tuple(
        argument.model_copy(update={"dtype": dtype}) if isinstance(argument, OutputArgument) else argument
        for argument in task.arguments
    )
    return with_tolerance(task.model_copy(update={"arguments": arguments}), tolerance, dtype)


def outcomes(found: Mapping[str, Caught], outcome: Outcome) -> set[str]:
    return {name for name, caught in found.items() if caught.outcome is outcome}


def test_every_control_is_there() -> None:
    assert tuple(CONTROLS) == NAMES


@pytest.mark.parametrize("name", fixtures.ALL)
def test_controls_of_a_sound_task_are_caught(name: str) -> None:
    task, oracle = load(name)
    assert task.cpu is not None
    for values in task.cpu.seen:
        found = run_controls(task, values, oracle)
        assert tuple(found) == NAMES
        assert outcomes(found, Outcome.PASSED) == set()
        for caught in found.values():
            assert caught.output == "y"
            if caught.outcome is Outcome.CAUGHT:
                assert caught.reason is FailReason.WRONG_VALUES
                assert caught.worst_ratio > 1
            else:
                assert (caught.reason, caught.worst_ratio) == (None, 0.0)


def test_sixteen_bit_inputs_are_exact_in_tf32() -> None:
    task, oracle = load(TRITON)
    half: dict[str, Value] = {"rows": 32, "cols": 64, "dtype": "fp16"}
    assert outcomes(run_controls(task, half, oracle), Outcome.EQUIVALENT) == {"tf32_inputs"}
    assert outcomes(run_controls(task, {**half, "dtype": "fp32"}, oracle), Outcome.EQUIVALENT) == set()


def test_one_row_transposed_is_the_same() -> None:
    task, oracle = load(HIP)
    found = run_controls(task, {**SQUARE, "rows": 1}, oracle)
    assert outcomes(found, Outcome.EQUIVALENT) == {"transposed"}


def test_one_axis_is_reversed() -> None:
    task, oracle = load(PYTORCH)
    case = make_case(task, {"rows": 80, "cols": 8, "scale": 2.0}, oracle)
    assert torch.equal(CONTROLS["transposed"](case)["y"], case.stored(case.expected)["y"].flip(0))


def test_a_copy_is_a_right_copy() -> None:
    found = run(lambda x, **_: {"y": x.double()})
    assert outcomes(found, Outcome.EQUIVALENT) == {"input_copied"}


def test_constant_output_is_its_own_mean() -> None:
    found = run(lambda x, **_: {"y": torch.full(x.shape, 3.0, dtype=torch.float64)})
    assert {"transposed", "constant_mean", "stale_output", "lower_precision"} <= outcomes(found, Outcome.EQUIVALENT)
    assert {"zeros", "one_element_wrong", "last_block_skipped"} <= outcomes(found, Outcome.CAUGHT)


def test_zeros_are_right_where_all_is_zero() -> None:
    # Not even with the sign of zero: -0 is as right as 0.
    found = run(lambda x, **_: {"y": torch.zeros(x.shape, dtype=torch.float64) * -1.0})
    assert "zeros" in outcomes(found, Outcome.EQUIVALENT)
    assert outcomes(found, Outcome.CAUGHT) >= {"input_copied", "last_block_skipped", "one_element_wrong"}


def test_nearly_constant_output_lets_wrong_answers_through() -> None:
    found = run(lambda x, **_: {"y": 10 + 1e-7 * x.double()})
    assert "constant_mean" in outcomes(found, Outcome.PASSED)
    assert found["constant_mean"].reason is None
    assert 0 < found["constant_mean"].worst_ratio <= 1


def test_wide_tolerance_leaves_precision_to_catch() -> None:
    task, oracle = load(HIP)
    wide = with_tolerance(task, Tolerance(absolute="0.4", relative="0.4"))
    found = run_controls(wide, SQUARE, oracle)
    assert found["lower_precision"].outcome is Outcome.CAUGHT
    assert found["lower_precision"].reason is FailReason.LOW_PRECISION
    assert found["one_element_wrong"].reason is FailReason.LOW_PRECISION
    assert found["zeros"].reason is FailReason.WRONG_VALUES


def test_integer_outputs() -> None:
    task, _ = load(HIP)
    exact = with_output(task, "int8", Tolerance())

    def oracle(x: torch.Tensor, **_: object) -> Tensors:
        return {"y": (x * 20).round().clamp(-127, 127).to(torch.int8)}

    found = run_controls(exact, SQUARE, oracle)
    assert outcomes(found, Outcome.PASSED) == set()
    assert {"lower_precision", "zeros", "transposed", "one_element_wrong"} <= outcomes(found, Outcome.CAUGHT)
    loose = with_output(task, "int8", Tolerance(units=60, units_share=0.4))
    # Most elements differ in these; few do in the others, and by less than 60.
    passed = outcomes(run_controls(loose, SQUARE, oracle), Outcome.PASSED)
    assert "one_element_wrong" in passed
    assert not passed & {"zeros", "transposed", "stale_output"}


def test_each_output_is_spoiled_alone() -> None:
    """A second output that everything passes must not hide behind the first."""
    task, _ = load(HIP)
    extra = OutputArgument(role="output", name="w", dtype="fp32", shape=("rows", "cols"))
    two = task.model_copy(update={"arguments": (*task.arguments, extra)})

    def oracle(x: torch.Tensor, shift: torch.Tensor, **_: object) -> Tensors:
        return {"y": x.double() + shift.double(), "w": 10 + 1e-7 * x.double()}

    found = run_controls(two, SQUARE, oracle)
    assert (found["constant_mean"].outcome, found["constant_mean"].output) == (Outcome.PASSED, "w")
    assert found["zeros"].outcome is Outcome.CAUGHT
    # A lower precision spoils both at once, and is caught by the one that shows it.
    assert (found["lower_precision"].outcome, found["lower_precision"].output) == (Outcome.CAUGHT, "y")


def test_last_block_holds_what_nobody_wrote() -> None:
    task, oracle = load(HIP)
    case = make_case(task, SQUARE, oracle)
    right, wrong = case.stored(case.expected)["y"], CONTROLS["last_block_skipped"](case)["y"]
    changed = (right != wrong).flatten()
    assert int(changed.sum()) == 256
    assert bool(changed[-256:].all())
    assert wrong.flatten()[-1:].view(torch.uint8).tolist() == [0x5A] * 4


def test_one_element_is_one() -> None:
    task, oracle = load(HIP)
    case = make_case(task, SQUARE, oracle)
    right, wrong = case.stored(case.expected)["y"], CONTROLS["one_element_wrong"](case)["y"]
    assert int((right != wrong).sum()) == 1
    assert int((right != wrong).flatten().to(torch.uint8).argmax()) == int(right.abs().argmax())


def test_the_right_answer_passes_the_gate() -> None:
    for name in fixtures.ALL:
        task, oracle = load(name)
        assert task.cpu is not None
        for values in task.cpu.seen:
            case = make_case(task, values, oracle)
            reason, ratio = case.gate("y", case.stored(case.expected)["y"])
            assert reason is None
            assert ratio <= 1


def test_inputs_depend_on_the_nonce_and_the_round_alone() -> None:
    task, _ = load(HIP)
    first = controls.draw_inputs(task, SQUARE, "a")
    assert all(torch.equal(first[name], again) for name, again in controls.draw_inputs(task, SQUARE, "a").items())
    assert not torch.equal(first["x"], controls.draw_inputs(task, SQUARE, "b")["x"])
    assert not torch.equal(first["x"], controls.draw_inputs(task, SQUARE, "a", Round.LARGE)["x"])
    assert {name: (x.dtype, tuple(x.shape)) for name, x in first.items()} == {
        "x": (torch.float32, (64, 64)),
        "shift": (torch.float32, (64,)),
    }


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([1.0, 1 + 2**-11, 1 + 3 * 2**-12], torch.float16, [1.0, 1.0, 1 + 2**-10]),
        ([1e6, -1e6], torch.float16, [65504.0, -65504.0]),
        ([float("inf"), float("-inf")], torch.float32, [float("inf"), float("-inf")]),
        ([0.4, 0.6, 1.5, 2.5, 300.0, -300.0], torch.int8, [0, 1, 2, 2, 127, -128]),
        ([-3.0, 300.0], torch.uint8, [0, 255]),
        ([1e30], torch.int64, [2**62]),
        ([500.0], torch.float8_e4m3fn, [448.0]),
    ],
)
def test_fit(values: list[float], dtype: torch.dtype, expected: list[float]) -> None:
    result = fit(torch.tensor(values, dtype=torch.float64), dtype)
    assert result.dtype is dtype
    assert (result if dtype in (torch.int64, torch.int8, torch.uint8) else result.double()).tolist() == expected


def test_fit_copies() -> None:
    values = torch.ones(3)
    fit(values, torch.float32).zero_()
    assert values.tolist() == [1.0, 1.0, 1.0]


def test_oracle_that_lacks_an_output() -> None:
    with pytest.raises(OracleError, match="gives no y"):
        run(lambda **_: {})
