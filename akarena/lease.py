"""One judgement at a time on a device, whichever process of this machine asks."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from akarena.records.task import TargetName


@contextmanager
def device_lease(target: TargetName) -> Iterator[None]:
    """Hold the device of a target; waits for whoever has it."""
    folder = Path(tempfile.gettempdir()) / f"akarena-leases-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with FileLock(folder / f"{target.value}.lock"):
        yield
