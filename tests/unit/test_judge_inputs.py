from __future__ import annotations

import math

import pytest
import torch

from akarena.judge import inputs
from akarena.records.evaluation import Round
from akarena.records.task import (
    Distribution,
    InputArgument,
    IntegersDistribution,
    NormalDistribution,
    Special,
    UniformDistribution,
    Value,
)

CPU = torch.device("cpu")
SHAPE = (64, 100)
NORMAL = NormalDistribution(kind="normal", mean=1.0, std="2 * scale", large=8.0, special=Special.ORDINARY)
UNIFORM = UniformDistribution(kind="uniform", low=-1.0, high=3.0, large=4.0, special=Special.ORDINARY)
INTEGERS = IntegersDistribution(kind="integers", low="-3", high="classes")
VALUES: dict[str, Value] = {"scale": 2, "classes": 10}


def draw(
    distribution: Distribution,
    round_: Round = Round.ORDINARY,
    dtype: torch.dtype = torch.float32,
    nonce: str = "a",
    purpose: str = "x",
) -> torch.Tensor:
    argument = InputArgument(role="input", name="x", dtype="fp32", shape=("64", "100"), distribution=distribution)
    return inputs.draw(argument, SHAPE, dtype, round_, inputs.generator(CPU, nonce, purpose), VALUES)


def distinct(drawn: torch.Tensor) -> set[float]:
    return set(drawn.flatten().tolist())


@pytest.mark.parametrize("round_", Round)
@pytest.mark.parametrize("distribution", [NORMAL, UNIFORM, INTEGERS], ids=lambda one: one.kind)
def test_values_follow_the_nonce_and_the_purpose_alone(distribution: Distribution, round_: Round) -> None:
    first = draw(distribution, round_)
    assert first.shape == SHAPE
    assert torch.equal(first, draw(distribution, round_))
    assert not torch.equal(first, draw(distribution, round_, nonce="b"))
    assert not torch.equal(first, draw(distribution, round_, purpose="y"))


def test_purposes_are_told_apart() -> None:
    def number(*purpose: object) -> int:
        return inputs.generator(CPU, "n", *purpose).initial_seed()

    assert number("a", "b") == number("a", "b")
    assert len({number("a", "b"), number("ab"), number("b", "a"), number("a", Round.LARGE), number()}) == 5


def test_the_random_state_of_torch_decides_nothing() -> None:
    torch.manual_seed(1)
    first = draw(NORMAL)
    torch.manual_seed(2)
    assert torch.equal(first, draw(NORMAL))


def test_ordinary_and_large_values_are_as_declared() -> None:
    ordinary, large = draw(NORMAL), draw(NORMAL, Round.LARGE)
    assert float(ordinary.mean()) == pytest.approx(1.0, abs=0.25)
    assert float(ordinary.std()) == pytest.approx(4.0, rel=0.05)
    assert torch.allclose(large, 8 * ordinary, rtol=1e-5)
    assert (float(draw(UNIFORM).min()) >= -1, float(draw(UNIFORM).max()) < 3) == (True, True)
    assert float(draw(UNIFORM, Round.LARGE).max()) == pytest.approx(12.0, rel=0.01)


@pytest.mark.parametrize("round_", [Round.ORDINARY, Round.LARGE])
def test_integers_reach_both_ends_and_stay_inside(round_: Round) -> None:
    drawn = draw(INTEGERS, round_, torch.int32)
    assert (int(drawn.min()), int(drawn.max())) == (-3, 9)
    assert distinct(drawn) == set(range(-3, 10))


def test_special_integers_are_the_two_ends() -> None:
    assert distinct(draw(INTEGERS, Round.SPECIAL, torch.int64)) == {-3, 9}


def special(which: Special, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return draw(NORMAL.model_copy(update={"special": which}), Round.SPECIAL, dtype)


def test_half_of_the_special_values_are_zeros() -> None:
    share = float((special(Special.ZEROS) == 0).float().mean())
    assert 0.4 < share < 0.6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_special_values_can_be_denormal(dtype: torch.dtype) -> None:
    drawn = special(Special.DENORMALS, dtype)
    tiny = torch.finfo(dtype).tiny
    denormal = (drawn != 0) & (drawn.double().abs() < tiny)
    assert float(denormal.float().mean()) > 0.3
    assert float((drawn.double().abs() > tiny).float().mean()) > 0.3


def test_special_values_can_tie() -> None:
    drawn = special(Special.TIES)
    assert torch.equal(drawn, (drawn / 2).round() * 2)
    assert 3 < len(distinct(drawn)) < 20


def test_special_values_can_be_the_same_along_a_row() -> None:
    drawn = special(Special.CONSTANT)
    assert bool((drawn == drawn[:, :1]).all())
    assert len(distinct(drawn[:, 0])) == SHAPE[0]
    assert drawn.is_contiguous()


def test_special_values_can_be_ordinary() -> None:
    assert torch.equal(special(Special.ORDINARY), draw(NORMAL))


@pytest.mark.parametrize("name", inputs.dtypes("float8_e4m3fnuz"))
def test_every_dtype_of_a_task_can_be_drawn(name: str) -> None:
    dtype = inputs.dtypes("float8_e4m3fnuz")[name]
    for round_ in Round:
        drawn = draw(INTEGERS if inputs.is_integer(dtype) else NORMAL, round_, dtype)
        assert drawn.dtype is dtype
        assert all(math.isfinite(value) for value in (drawn.double().min().item(), drawn.double().max().item()))
    assert inputs.is_integer(dtype) == (not dtype.is_floating_point)
