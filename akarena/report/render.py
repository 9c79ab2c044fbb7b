"""Draw the report record as Markdown and as one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import tabulate
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import DiffLexer

from akarena import files, paths, schemas
from akarena.errors import UserError
from akarena.records.report import ReportRecord
from akarena.report import tables, trial_tables
from akarena.report.build import build
from akarena.report.cells import Table
from akarena.report.figures import plots
from akarena.report.text import fenced, markdown, number
from akarena.report.work import bar

TEMPLATES = Path("reports") / "templates"

_BREAKS = re.compile(r"([/_])(?=\w)")
_lexer = DiffLexer(stripnl=False)
_formatter = HtmlFormatter(nowrap=True, classprefix="d-")


def render_run(root: Path) -> dict[str, bytes]:
    """Render one run folder; a pure function of it, the published file and the renderer.

    Args:
        root: The run folder. It need not be sealed or complete, and may be foreign.

    Returns:
        The bytes of ``data.json``, ``report.md`` and ``report.html``.

    Raises:
        UserError: The manifest, the lock, the published file or a template is missing or invalid.
    """
    report = build(root)
    return {
        "data.json": schemas.to_json(report),
        "report.md": _markdown(report).encode(),
        "report.html": _html(report).encode(),
    }


def write_report(root: Path) -> list[Path]:
    """Render a run folder into its ``report/``, replacing what is there, and return the files written.

    Raises:
        UserError: As ``render_run``, or ``report`` is a link, which could lead out of a foreign run folder.
    """
    if (root / "report").is_symlink():
        raise UserError(f"{root / 'report'}: is a link, expected a folder or nothing")
    written = []
    for name, data in render_run(root).items():
        path = root / "report" / name
        files.write_bytes(path, data, replace=True)
        written.append(path)
    return written


def _html(report: ReportRecord) -> str:
    environment = _environment(autoescape=True)
    environment.filters["diff"] = lambda text: Markup(highlight(text, _lexer, _formatter))
    environment.filters["anchor"] = _anchor
    environment.filters["breakable"] = _breakable
    environment.filters["bar"] = lambda done: Markup(bar(done))
    script = _source("report.js")
    return environment.get_template("report.html.j2").render(
        report=report,
        tables=tables,
        trial_tables=trial_tables,
        plots=[(plot, Markup(plot.svg)) for plot in plots(report)],
        style=Markup(_source("report.css")),
        script=Markup(script),
        # The page may run this one script and load nothing at all.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _markdown(report: ReportRecord) -> str:
    environment = _environment(autoescape=False)
    environment.filters |= {"md": markdown, "table": _markdown_table, "fenced": fenced}
    return environment.get_template("report.md.j2").render(report=report, tables=tables, trial_tables=trial_tables)


def _environment(*, autoescape: bool) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(paths.root() / TEMPLATES),
        undefined=StrictUndefined,
        autoescape=autoescape,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["number"] = number
    return environment


def _source(name: str) -> str:
    try:
        return (paths.root() / TEMPLATES / name).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{(TEMPLATES / name).as_posix()}: cannot be read ({error.strerror}), expected a file"
        ) from None


def _markdown_table(table: Table) -> str:
    """Draw a table; every cell is escaped before ``tabulate``, which escapes nothing."""
    # Whether a package for wide characters is installed must not change the bytes.
    tabulate.WIDE_CHARS_MODE = False
    return tabulate.tabulate(
        [["<br>".join(map(markdown, cell.text.split("\n"))) for cell in row] for row in table.rows],
        headers=[markdown(column.label) for column in table.columns],
        tablefmt="pipe",
        disable_numparse=True,
        colalign=["right" if column.numeric else "left" for column in table.columns] if table.rows else None,
    )


def _breakable(text: str) -> Markup:
    """Let a browser break a long name after each slash and underscore."""
    return Markup(_BREAKS.sub(r"\1<wbr>", str(Markup.escape(text))))


def _anchor(text: str) -> str:
    """Make a fragment identifier of a task or configuration id; different ones stay different."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower())
