"""Input values, drawn from the judge's secret nonce."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch

from akarena import expressions
from akarena.records.evaluation import Round
from akarena.records.task import (
    InputArgument,
    IntegersDistribution,
    NormalDistribution,
    Rows,
    Special,
    TaskRecord,
    UniformDistribution,
    Value,
)

_INTEGER_DTYPES = (torch.int8, torch.uint8, torch.int32, torch.int64)


def dtypes(fp8: str) -> dict[str, torch.dtype]:
    """Return torch's dtype for each dtype of a task; ``fp8`` is the name of the target's own format."""
    return {
        "fp32": torch.float32,
        "fp16": torch.float16,
        "bf16": torch.bfloat16,
        "fp8": getattr(torch, fp8),
        "int64": torch.int64,
        "int32": torch.int32,
        "int8": torch.int8,
        "uint8": torch.uint8,
    }


def generator(device: torch.device, nonce: str, *purpose: object) -> torch.Generator:
    """Return a generator whose stream depends on the nonce and on what it is for."""
    text = "\0".join((nonce, *map(str, purpose)))
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1
    return torch.Generator(device=device).manual_seed(seed)


def rounds(task: TaskRecord) -> tuple[Round, ...]:
    """Return the rounds of a task, in order; the last one only where an input says how its rows differ."""
    distributions = [argument.distribution for argument in task.arguments if isinstance(argument, InputArgument)]
    if any(not isinstance(one, IntegersDistribution) and one.rows is not None for one in distributions):
        return tuple(Round)
    return tuple(round_ for round_ in Round if round_ is not Round.ROWS)


def draw(
    argument: InputArgument,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    round_: Round,
    source: torch.Generator,
    values: Mapping[str, Value],
) -> torch.Tensor:
    """Draw one input.

    Args:
        argument: The argument, with its distribution.
        shape: Shape of the result.
        dtype: dtype of the result.
        round_: Ordinary values, large magnitudes, the distribution's special values, or rows that differ.
        source: Where the randomness comes from; its device is that of the result.
        values: The configuration, for expressions in the distribution.
    """
    distribution = argument.distribution
    if isinstance(distribution, IntegersDistribution):
        low = int(expressions.evaluate(distribution.low, values))
        high = int(expressions.evaluate(distribution.high, values))
        if round_ is Round.SPECIAL:
            # Both ends and nothing between: where an off-by-one would show.
            picked = torch.randint(0, 2, shape, generator=source, device=source.device)
            return torch.where(picked == 0, low, high - 1).to(dtype)
        return torch.randint(low, high, shape, generator=source, device=source.device, dtype=torch.int64).to(dtype)
    factor = distribution.large if round_ is Round.LARGE else 1.0
    result = torch.empty(shape, dtype=torch.float32, device=source.device)
    if isinstance(distribution, NormalDistribution):
        std = float(expressions.evaluate(distribution.std, values))
        result.normal_(distribution.mean * factor, std * factor, generator=source)
    else:
        std = (distribution.high - distribution.low) / 4
        result.uniform_(distribution.low * factor, distribution.high * factor, generator=source)
    if round_ is Round.SPECIAL:
        result = _special(result, distribution, std, dtype, source)
    if round_ is Round.ROWS and distribution.rows is not None:
        result = _different_rows(result, distribution.rows, source)
    return result.to(dtype)


def _special(
    ordinary: torch.Tensor,
    distribution: NormalDistribution | UniformDistribution,
    std: float,
    dtype: torch.dtype,
    source: torch.Generator,
) -> torch.Tensor:
    chosen = torch.rand(ordinary.shape, generator=source, device=source.device) < 0.5
    match distribution.special:
        case Special.ZEROS:
            return torch.where(chosen, 0.0, ordinary)
        case Special.DENORMALS:
            tiny = torch.finfo(dtype).tiny
            return torch.where(chosen, (ordinary / (abs(std) * 8)).clamp(-1, 1) * tiny, ordinary)
        case Special.TIES:
            step = std / 2 if std else 1.0
            return (ordinary / step).round() * step
        case Special.CONSTANT:
            return ordinary[..., :1].expand(ordinary.shape).contiguous()
        case Special.ORDINARY:
            return ordinary


def _different_rows(ordinary: torch.Tensor, rows: Rows, source: torch.Generator) -> torch.Tensor:
    def drawn(low: float, high: float) -> torch.Tensor:
        """One number a row."""
        return torch.empty((*ordinary.shape[:-1], 1), device=source.device).uniform_(low, high, generator=source)

    chosen = drawn(0.0, 1.0) < 0.5
    result = torch.where(chosen, ordinary * (rows.scale or 1.0), ordinary)
    if rows.shift is not None:
        result = torch.where(chosen, result + drawn(-rows.shift, rows.shift), result)
    if rows.outlier is not None:
        places = (drawn(0.0, 1.0) * ordinary.shape[-1]).long().clamp_(max=ordinary.shape[-1] - 1)
        outliers = torch.where(drawn(-1.0, 1.0) < 0.0, -rows.outlier, rows.outlier)
        here = torch.where(drawn(0.0, 1.0) < 0.5, outliers, result.gather(-1, places))
        result = result.scatter(-1, places, here)
    return result


def is_integer(dtype: torch.dtype) -> bool:
    """Say whether a dtype holds integers."""
    return dtype in _INTEGER_DTYPES
