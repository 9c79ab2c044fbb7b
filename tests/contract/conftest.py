"""What every sandbox contract test needs: the sandbox, and short ways to run Python code in it."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import akarena
from akarena import sandbox as registry
from akarena.sandbox.base import Command, Limits, Mount, Result, Sandbox, ScratchMount
from akarena.sandbox.runtime import interpreter, interpreter_mounts

MIB = 1 << 20
LIMITS = Limits(
    wall_seconds=20.0,
    memory_bytes=512 * MIB,
    processes=64,
    output_bytes=8 * MIB,
    file_bytes=64 * MIB,
    tmp_bytes=32 * MIB,
)


@dataclass(frozen=True)
class Runner:
    """Runs Python code in one sandbox."""

    sandbox: Sandbox

    def command(
        self,
        code: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        mounts: tuple[Mount, ...] = (),
        scratch: tuple[ScratchMount, ...] = (),
        package: bool = False,
        **limits: float,
    ) -> Command:
        """Build a command for the interpreter; `package` makes this project importable."""
        code = textwrap.dedent(code)
        if package:
            mounts = (*mounts, Mount(Path(akarena.__file__).parent, "/code/akarena"))
            code = f"import sys\nsys.path.insert(0, '/code')\n{code}"
        return Command(
            (str(interpreter()), "-I", "-S", "-c", code, *arguments),
            environment or {},
            (*interpreter_mounts(), *mounts),
            replace(LIMITS, **limits),  # type: ignore[arg-type]
            scratch=scratch,
        )

    def run(self, code: str, *arguments: str, cancel: threading.Event | None = None, **options: object) -> Result:
        """Run code alone."""
        return self.sandbox.run(self.command(code, *arguments, **options), cancel=cancel)  # type: ignore[arg-type]

    def judge(self, main: str, workers: Mapping[str, Command], **options: object) -> Result:
        """Run code as the main process of a judgement, with `control` at hand."""
        head = "from akarena.sandbox.control import Control\ncontrol = Control()\n"
        command = self.command(head + textwrap.dedent(main), package=True, **options)  # type: ignore[arg-type]
        return self.sandbox.judge({"judge": command, **workers}, main="judge")


@pytest.fixture(params=registry.names())
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    found = registry.get(request.param)
    usable: Callable[[], bool] | None = getattr(found, "usable", None)
    if usable is not None and not usable():
        pytest.skip(f"{request.param} is not usable on this machine")
    return found


@pytest.fixture
def runner(sandbox: Sandbox) -> Runner:
    return Runner(sandbox)
