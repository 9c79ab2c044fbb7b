"""Writes the tables of escapes into the docs: ``python -m tests.redteam.docs``."""

from __future__ import annotations

from akarena import paths
from tests.redteam import catalogue
from tests.redteam.catalogue import BUBBLEWRAP, DOCKER, Escape

PAGE = paths.root() / "docs" / "isolation.md"
BEGIN, END = "<!-- escapes: begin -->", "<!-- escapes: end -->"


def table() -> str:
    """Write the tables of the docs, without the markers."""
    parts = []
    for group, title in catalogue.GROUPS.items():
        rows = [escape for escape in catalogue.ESCAPES if escape.group == group]
        parts.append(f"**{title}**\n\n| escape | tries | bubblewrap | docker |\n|---|---|---|---|\n")
        parts += [f"| `{one.name}` | {one.tries} | {_cell(one, BUBBLEWRAP)} | {_cell(one, DOCKER)} |\n" for one in rows]
        parts.append("\n")
    return "".join(parts)


def _cell(escape: Escape, sandbox: str) -> str:
    stopped_by = (escape.docker or "the same") if sandbox == DOCKER else escape.stopped_by
    return f"{stopped_by}; **not stopped** {escape.open}" if escape.open else stopped_by


def updated(text: str) -> str:
    """Return the page with current tables."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE} lacks the markers {BEGIN} and {END}")
    return f"{before}{begin}\n\n{table()}{end}{after}"


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text("utf-8")), "utf-8")
