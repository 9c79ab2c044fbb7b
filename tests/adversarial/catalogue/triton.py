"""Hostile Triton candidates: what Python and torch in the worker's process make possible."""

from __future__ import annotations

from tests.adversarial.catalogue.fixture import Fixture

TRITON: tuple[Fixture, ...] = ()
