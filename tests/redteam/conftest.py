"""Failures of the shared verdicts show their values."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.redteam.verdicts")
