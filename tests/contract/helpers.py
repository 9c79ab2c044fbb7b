"""Short ways to run Python code in a sandbox, whichever one it is."""

from __future__ import annotations

import json
import os
import textwrap
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import akarena
from akarena import sandbox as registry
from akarena.sandbox.base import Command, End, Limits, Mount, Result, Role, Sandbox, ScratchMount
from akarena.sandbox.docker import DockerSandbox, Image, Images
from akarena.sandbox.runtime import Python, python_of

MIB = 1 << 20
LIMITS = Limits(
    wall_seconds=20.0,
    memory_bytes=512 * MIB,
    processes=64,
    output_bytes=8 * MIB,
    file_bytes=64 * MIB,
    tmp_bytes=32 * MIB,
)
IMAGE = os.environ.get("AKARENA_TEST_IMAGE", "akarena-base:bookworm")
"""An image with Python and a compiler, as `tests/docker/daemon.py` makes it."""


def get(name: str) -> Sandbox:
    """Give a sandbox by its name, with the test image where it needs one."""
    return DockerSandbox(Images.one(Image(IMAGE))) if name == DockerSandbox.name else registry.get(name)


@dataclass(frozen=True)
class Runner:
    """Runs Python code in one sandbox."""

    sandbox: Sandbox

    @property
    def python(self) -> Python:
        return python_of(self.sandbox)

    @property
    def has_image(self) -> bool:
        return isinstance(self.sandbox, DockerSandbox)

    def command(
        self,
        code: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        mounts: tuple[Mount, ...] = (),
        scratch: tuple[ScratchMount, ...] = (),
        working_directory: str = "/",
        role: Role = Role.JUDGE,
        package: bool = False,
        **limits: float,
    ) -> Command:
        """Build a command for the interpreter; `package` makes this project importable."""
        code = textwrap.dedent(code)
        if package:
            mounts = (*mounts, Mount(Path(akarena.__file__).parent, "/code/akarena"))
            code = f"import sys\nsys.path.insert(0, '/code')\n{code}"
        return Command(
            (self.python.path, "-I", "-S", "-c", code, *arguments),
            environment or {},
            (*self.python.mounts, *mounts),
            replace(LIMITS, **limits),  # type: ignore[arg-type]
            working_directory,
            scratch,
            role,
        )

    def run(self, code: str, *arguments: str, cancel: threading.Event | None = None, **options: Any) -> Result:
        """Run code alone."""
        return self.sandbox.run(self.command(code, *arguments, **options), cancel=cancel)

    def judge(
        self, main: str, workers: Mapping[str, Command], *, cancel: threading.Event | None = None, **options: Any
    ) -> Result:
        """Run code as the main process of a judgement, with `control` at hand."""
        head = "from akarena.sandbox.control import Control\ncontrol = Control()\n"
        command = self.command(head + textwrap.dedent(main), package=True, **options)
        return self.sandbox.judge({"judge": command, **workers}, main="judge", cancel=cancel)


def given(result: Result) -> Any:
    """Parse what the code printed, and show its messages when it failed."""
    assert result.end is End.EXITED, result
    assert result.exit_code == 0, result
    return json.loads(result.stdout)
