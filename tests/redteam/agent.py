"""Puts the hostile agent together: one file for its workspace, with the probes and the plan of one trial inside."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

PROGRAM = "redteam.pyz"
COMMAND = f"python3 {PROGRAM}"
_PROBES = Path(__file__).with_name("probes")
_MAIN = """\
import pkgutil
from probes.main import main
main(pkgutil.get_data("probes", "plan.json"))
"""


def assemble(folder: Path, plan: dict[str, Any]) -> Path:
    """Write the program.

    Args:
        folder: Where to, such as the agent's folder of a task.
        plan: The fields of `probes.kit.Plan`, without any secret.
    """
    path = folder / PROGRAM
    with zipfile.ZipFile(path, "w") as program:
        program.writestr("__main__.py", _MAIN)
        program.writestr("probes/plan.json", json.dumps(plan))
        for source in sorted(_PROBES.glob("*.py")):
            program.write(source, f"probes/{source.name}")
    return path
