"""Where the checkout is: tasks, schemas and report templates lie beside the package."""

from __future__ import annotations

import os
from pathlib import Path

from akarena.errors import UserError


def root() -> Path:
    """Return the root of the checkout: ``AKARENA_ROOT`` if set, else the folder above the package.

    Raises:
        UserError: There are no tasks; the package was installed without its checkout.
    """
    named = os.environ.get("AKARENA_ROOT")
    path = Path(named) if named else Path(__file__).resolve().parent.parent
    if not (path / "tasks").is_dir():
        where = f"AKARENA_ROOT={named}" if named else f"{path}"
        raise UserError(f"{where} holds no folder tasks/; set AKARENA_ROOT to a checkout of akarena")
    return path.resolve()


def package() -> Path:
    """Return the folder of the installed package."""
    return Path(__file__).resolve().parent
