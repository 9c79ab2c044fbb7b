"""What the tests of the real ``claude`` and ``codex`` share.

The programs are not part of the project: ``npm install -g @anthropic-ai/claude-code @openai/codex``, or put the ``bin``
folder of any other install on the PATH.
"""

from __future__ import annotations

import shutil

import pytest

from tests.services.script import ToolCall

KEY = "sk-secret-77ab-for-the-service"
_SHELLS = {"claude": ("Bash", "command"), "codex": ("exec_command", "cmd")}


def program(name: str) -> str:
    """Return the path of a program, or skip the test."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (npm install -g @anthropic-ai/claude-code @openai/codex)")
    return found


def call(agent: str, command: str) -> ToolCall:
    """Call an agent's shell."""
    tool, argument = _SHELLS[agent]
    # Codex goes on after a few seconds of a command, unless it is told to wait.
    patience = {"yield_time_ms": 30_000} if agent == "codex" else {}
    return ToolCall(tool, {argument: command, **patience})
