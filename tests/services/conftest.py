"""The marker of tests that run the vendors' real command-line agents."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "npm: needs the programs `claude` and `codex`, which npm installs")
