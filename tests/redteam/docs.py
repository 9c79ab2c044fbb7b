"""Writes the tables of escapes into the docs: ``python -m tests.redteam.docs``."""

from __future__ import annotations

from akarena import paths
from tests.redteam import catalogue

PAGE = paths.root() / "docs" / "isolation.md"


def updated(text: str) -> str:
    """Return the page with current tables."""
    before, begin, rest = text.partition(catalogue.BEGIN)
    _, end, after = rest.partition(catalogue.END)
    if not begin or not end:
        raise ValueError(f"{PAGE} lacks the markers {catalogue.BEGIN} and {catalogue.END}")
    return f"{before}{begin}\n\n{catalogue.table()}{end}{after}"


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text("utf-8")), "utf-8")
