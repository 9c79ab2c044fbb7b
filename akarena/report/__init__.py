"""Reports: a pure function of a run folder, the published file and the templates. No GPU, container or network."""

from akarena.report.render import render_run, write_report

__all__ = ["render_run", "write_report"]
