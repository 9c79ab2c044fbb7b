"""Compare an output with the oracle's answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from akarena import expressions
from akarena.judge.inputs import is_integer
from akarena.records.evaluation import FailReason
from akarena.records.task import Tolerance, Value

_WORST = 1e30
"""Stands for an error without bound, since records hold no Infinity."""
PRECISION_FACTOR = 16.0
"""How many times the baseline's own root-mean-square error a candidate may have, where outputs are wider than 16 bits:
sums in another order differ by as much."""
_ROUNDED_FACTOR = 1.5
"""The same for outputs of at most 16 bits. There the last rounding is nearly all of the error; each further one of the
same width adds as much to its square, so two roundings are 1.41 times one, and three, or cutting off, 1.73 and 2."""
_ROUNDED_SHARE = 1 / 6
"""Root mean square of one rounding to the nearest, in units of eps: ulp / sqrt(12) over a mantissa of 1.5, or so."""
_CHANCE = 4.0
"""Over the root of the number of elements: what the root mean square of few roundings varies by."""


@dataclass(frozen=True)
class Allowed:
    """A tolerance with its expressions evaluated for one configuration."""

    relative: float
    absolute: float
    units: int
    units_share: float


@dataclass(frozen=True)
class Comparison:
    """How far an output lies from the oracle's answer.

    Attributes:
        worst_ratio: Largest |error| over tolerance; above 1 the output is wrong.
        rms_error: Root mean square of the error over that of the reference.
        weight: How many elements make up the reference's root mean square: its square over the mean of fourth powers.
        reason: Why the output is wrong, or None.
        evidence: Where and by how much.
    """

    worst_ratio: float
    rms_error: float
    weight: float
    reason: FailReason | None
    evidence: str


def resolve(tolerance: Tolerance, values: Mapping[str, Value]) -> Allowed:
    """Evaluate a tolerance for a configuration."""
    return Allowed(
        relative=float(expressions.evaluate(tolerance.relative, values)),
        absolute=float(expressions.evaluate(tolerance.absolute, values)),
        units=tolerance.units,
        units_share=tolerance.units_share,
    )


def compare(actual: torch.Tensor, expected: torch.Tensor, allowed: Allowed) -> Comparison:
    """Compare every element of an output; see :func:`compare_calls`."""
    return compare_calls(actual.unsqueeze(0), expected.unsqueeze(0), allowed)[0]


def compare_calls(actual: torch.Tensor, expected: torch.Tensor, allowed: Allowed) -> list[Comparison]:
    """Compare every element of the outputs of several calls.

    |error| <= absolute * rms(expected) + relative * |expected|, and at least one unit in the last place of the output's
    dtype. Where the expected value is not finite in that dtype, the output must be the same kind of non-finite.

    Args:
        actual: The outputs, in their own dtype, of shape [calls, ...].
        expected: The oracle's answers, in fp64 (or the output's own integer dtype), of the same shape.
        allowed: The tolerance.

    Returns:
        One comparison a call.

    Raises:
        ValueError: The shapes differ or are empty, which is a fault of the task.
    """
    shape = actual.shape[1:]
    if actual.shape != expected.shape or actual.numel() == 0:
        raise ValueError(f"oracle gives {tuple(expected.shape[1:])}, the output is {tuple(shape)}")
    rows = actual.flatten(1) if actual.dim() > 1 else actual.unsqueeze(1)
    wanted_rows = expected.reshape(rows.shape)
    if is_integer(actual.dtype):
        return _compare_integers(rows, wanted_rows, allowed, shape)
    stored = wanted_rows.to(actual.dtype).to(torch.float64)
    wanted = torch.where(torch.isfinite(stored), wanted_rows.to(torch.float64), stored)
    given = rows.to(torch.float64)
    finite = torch.isfinite(wanted)
    same_kind = (torch.isnan(given) & torch.isnan(wanted)) | (given == wanted) | (finite & torch.isfinite(given))
    magnitudes = torch.where(finite, wanted, 0.0)
    error = (torch.where(finite, given, 0.0) - magnitudes).abs()
    magnitudes = magnitudes.abs()
    rms = magnitudes.square().mean(1, keepdim=True).sqrt()
    bound = torch.maximum(allowed.absolute * rms + allowed.relative * magnitudes, _unit(magnitudes, actual.dtype))
    ratio = error / bound
    # One transfer for everything: waiting for the device costs more than these small sums.
    scaled = magnitudes / rms.clamp(min=torch.finfo(torch.float64).tiny)
    weights = rows.shape[1] / scaled.square().square().mean(1)
    facts = [same_kind.all(1), rms[:, 0], ratio.amax(1), error.square().mean(1).sqrt(), weights]
    found = []
    for call, (same, size, largest, rms_error, weight) in enumerate(torch.stack(facts, 1).tolist()):
        if not same:
            text = _where(given[call], wanted[call], int((~same_kind[call]).to(torch.uint8).argmax()), shape)
            found.append(Comparison(_WORST, _WORST, 0.0, FailReason.NON_FINITE_MISMATCH, text))
            continue
        worst = min(largest, _WORST)
        relative = min(rms_error / size, _WORST) if size > 0 else (0.0 if rms_error == 0 else _WORST)
        if worst <= 1.0:
            found.append(Comparison(worst, relative, weight, None, ""))
            continue
        share = float((ratio[call] > 1.0).to(torch.float64).mean())
        text = _where(given[call], wanted[call], int(ratio[call].argmax()), shape)
        found.append(
            Comparison(
                worst, relative, weight, FailReason.WRONG_VALUES, f"{text}; {share:.3g} of the elements are outside"
            )
        )
    return found


def precision_fault(found: Comparison, baseline: Comparison, dtype: torch.dtype) -> str | None:
    """Say whether an output is right but computed in too low a precision.

    The root-mean-square error may be a number of times the baseline's own, or times the rounding of the output's dtype
    where the baseline does better than that: :data:`PRECISION_FACTOR`, and 1.5 for dtypes of at most 16 bits.
    """
    if is_integer(dtype):
        return None
    limits = torch.finfo(dtype)
    if limits.bits > 16:
        budget = PRECISION_FACTOR * max(baseline.rms_error, limits.eps / 2)
    else:
        chance = sum(_CHANCE / max(one.weight, 1.0) ** 0.5 for one in (found, baseline)) / 2
        budget = (_ROUNDED_FACTOR + chance) * max(baseline.rms_error, _ROUNDED_SHARE * limits.eps)
    if found.rms_error <= budget:
        return None
    return f"relative rms error {found.rms_error:.3g}, allowed {budget:.3g} (baseline: {baseline.rms_error:.3g})"


def _compare_integers(
    actual: torch.Tensor, expected: torch.Tensor, allowed: Allowed, shape: torch.Size
) -> list[Comparison]:
    given, wanted = actual.to(torch.int64), expected.to(torch.int64)
    error = (given - wanted).abs()
    squares = (wanted.to(torch.float64).square().mean(1).sqrt(), error.to(torch.float64).square().mean(1).sqrt())
    facts = torch.stack([error.amax(1), (error > 0).to(torch.float64).mean(1), *squares], 1).tolist()
    found = []
    for call, (largest, share, rms, rms_error) in enumerate(facts):
        relative = rms_error / rms if rms > 0 else (0.0 if rms_error == 0 else _WORST)
        by_size = largest / allowed.units if allowed.units else (0.0 if largest == 0 else _WORST)
        # A single element always may: a small output has no smaller share.
        most = max(allowed.units_share, 1 / given.shape[1])
        by_share = share / most if allowed.units_share else (0.0 if share == 0 else _WORST)
        worst = min(max(by_size, by_share), _WORST)
        if worst <= 1.0:
            found.append(Comparison(worst, relative, given.shape[1], None, ""))
            continue
        text = _where(given[call], wanted[call], int(error[call].argmax()), shape)
        found.append(
            Comparison(
                worst,
                min(relative, _WORST),
                given.shape[1],
                FailReason.WRONG_VALUES,
                f"{text}; {share:.3g} of the elements differ",
            )
        )
    return found


def _unit(magnitude: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """One unit in the last place of ``dtype`` at each magnitude."""
    limits = torch.finfo(dtype)
    exponent = torch.floor(torch.log2(magnitude.clamp(min=limits.tiny)))
    return torch.exp2(exponent) * limits.eps


def _where(given: torch.Tensor, wanted: torch.Tensor, index: int, shape: torch.Size) -> str:
    position = []
    rest = index
    for extent in reversed(shape):
        position.append(rest % extent)
        rest //= extent
    place = ", ".join(map(str, reversed(position)))
    return f"at [{place}] it is {given[index].item():.7g}, expected {wanted[index].item():.7g}"
