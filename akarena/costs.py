"""From tokens to dollars, by the prices that the operator states."""

from __future__ import annotations

from akarena.records.run import Prices
from akarena.records.trial import Cost, CostSource, Tokens

_UNIT = 1_000_000
"""Prices are for so many tokens."""


def cost_of(tokens: Tokens, prices: Prices) -> float:
    """Give the cost of tokens in US dollars; reasoning is part of the output."""
    return (
        tokens.input * prices.input
        + tokens.output * prices.output
        + tokens.cache_read * prices.cache_read
        + tokens.cache_write * prices.cache_write
    ) / _UNIT


def most_of(prompt_tokens: int, answer_tokens: int, prices: Prices) -> float:
    """Give what a request could cost at most in US dollars: nobody knows beforehand what a cache holds of a prompt."""
    dearest = max(prices.input, prices.cache_read, prices.cache_write)
    return (prompt_tokens * dearest + answer_tokens * prices.output) / _UNIT


def settled(counted: Tokens | None, prices: Prices | None, reported: Cost | None) -> tuple[Cost | None, str]:
    """Choose the cost of a trial.

    Args:
        counted: Tokens that the gateway counted; None where it could not.
        prices: The operator's; None where there are none.
        reported: What the agent says.

    Returns:
        The priced cost where there are counts and prices, else the reported one; and a note, empty where there is
        nothing to tell.
    """
    if counted is None or prices is None:
        return reported, ""
    note = "" if reported is None else f"the agent reports a cost of {reported.usd:.6g} dollars"
    return Cost(usd=cost_of(counted, prices), source=CostSource.PRICED), note
