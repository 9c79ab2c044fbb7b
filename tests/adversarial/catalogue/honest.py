"""Honest candidates that look suspicious: a gate that refuses one of them is broken."""

from __future__ import annotations

from tests.adversarial.catalogue.fixture import CUDA, Expect, Fixture

HONEST = (
    Fixture(
        "side_stream_joined",
        Expect.PASSES,
        tries="two streams, forked and joined",
        held_by="must pass",
        rows=("H12",),
        targets=CUDA,
        timed=True,
    ),
    Fixture(
        "atomics_and_workspace",
        Expect.PASSES,
        tries="atomics on a static workspace allocated on the first call",
        held_by="must pass",
        rows=("H12",),
        timed=True,
    ),
    Fixture(
        "fallback_and_cache",
        Expect.PASSES,
        tries="a fast path with vector loads, a plain fallback, a helper called cache",
        held_by="must pass",
        rows=("H12",),
        timed=True,
    ),
)
