"""The sessions: their names and docstrings, and that arguments reach the programs behind them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import akarena

ROOT = Path(akarena.__file__).resolve().parent.parent
DEFAULT = "not gpu and not docker and not clang and not npm and not mini and not slow"
SESSIONS = {
    *("tests", "lint", "types", "schemas", "evaluate", "report", "verify", "validate"),
    *("build", "redteam", "bench", "soak", "lock"),
}


@pytest.fixture(scope="module")
def noxfile() -> Any:
    spec = importlib.util.spec_from_file_location("akarena_noxfile", ROOT / "noxfile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        spec.loader.exec_module(module)
    finally:
        os.chdir(before)
    return module


def nox(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run nox on the noxfile, with the interpreter of these tests first on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [sys.executable, "-m", "nox", "--noxfile", str(ROOT / "noxfile.py"), *arguments],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_sessions_are_there_and_say_what_they_do() -> None:
    shown = nox("--list", "--json", "-s", *SESSIONS)
    assert shown.returncode == 0, shown.stderr
    described = {session["name"]: session["description"] for session in json.loads(shown.stdout)}
    assert set(described) == SESSIONS
    assert [name for name, text in described.items() if not text or not text.endswith(".")] == []


def test_no_session_is_unlisted(noxfile: Any) -> None:
    sessions = noxfile.nox.registry.get()
    assert set(sessions) == SESSIONS
    assert [name for name, session in sessions.items() if "\n" in str(session.func.__doc__)] == []


def test_only_light_sessions_run_by_default(noxfile: Any) -> None:
    assert noxfile.nox.options.sessions == ["lint", "types", "schemas", "tests"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ["-m", DEFAULT]),
        (["-k", "store"], ["-m", DEFAULT, "-k", "store"]),
        (["-m", "clang"], ["-m", "clang"]),
        (["-mgpu", "-x"], ["-mgpu", "-x"]),
    ],
)
def test_default_tier_holds_unless_another_is_chosen(noxfile: Any, given: list[str], expected: list[str]) -> None:
    assert noxfile.pytest_arguments(given) == expected


def test_compiler_is_needed_but_for_rocm(noxfile: Any) -> None:
    assert noxfile.needs_compiler([])
    assert noxfile.needs_compiler(["--target", "cuda"])
    assert not noxfile.needs_compiler(["--target", "rocm"])


def test_probe_finds_what_an_interpreter_has(noxfile: Any, tmp_path: Path) -> None:
    for package in ("torch", "triton"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()

    def probe(path: str) -> Any:
        # -S and an empty folder to stand in: no package of this environment is seen.
        argv = [sys.executable, "-S", "-c", noxfile._PROBE]
        environment = {**os.environ, "PYTHONPATH": path}
        shown = subprocess.run(argv, cwd=tmp_path.parent, env=environment, capture_output=True, text=True, check=True)
        return noxfile.parse_interpreter(shown.stdout)

    assert probe(str(tmp_path)).folders == (str(tmp_path),)
    assert probe("").folders == ()
    (tmp_path / "triton" / "__init__.py").unlink()
    assert probe(str(tmp_path)).folders == ()


@pytest.mark.parametrize(
    ("session", "said"),
    [
        ("evaluate", "agent 'nosuch' does not exist"),
        ("report", "nosuch"),
        ("verify", "nosuch"),
    ],
)
def test_arguments_reach_the_command_line(session: str, said: str) -> None:
    arguments = ("--agent", "nosuch") if session == "evaluate" else ("nosuch",)
    shown = nox("--no-venv", "-s", session, "--", *arguments)
    assert shown.returncode == 1
    assert f"python -m akarena {session} {' '.join(arguments)}" in shown.stderr
    assert "akarena: " in shown.stdout + shown.stderr
    assert said in shown.stdout + shown.stderr
    assert "Traceback" not in shown.stdout + shown.stderr


def test_schemas_are_checked_and_not_written() -> None:
    shown = nox("--no-venv", "-s", "schemas")
    assert shown.returncode == 0, shown.stderr
    assert "python -m akarena schemas --check" in shown.stderr


def test_tests_say_what_they_do_not_run() -> None:
    shown = nox("--no-venv", "-s", "tests", "--", "--collect-only", "-q", "tests/unit/test_errors.py")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for marker in ("gpu", "docker", "clang", "npm", "mini"):
        assert f"not run: tests marked {marker}, which need " in shown.stderr


def test_a_missing_compiler_is_named(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    shown = subprocess.run(
        [sys.executable, "-m", "nox", "--noxfile", str(ROOT / "noxfile.py"), "--no-venv", "-s", "evaluate"],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 1
    assert "g++ was not found" in shown.stderr
    assert "python -m akarena" not in shown.stderr


@pytest.mark.parametrize("session", ["bench", "soak"])
def test_sessions_of_later_work_fail_and_name_what_is_missing(session: str) -> None:
    shown = nox("-s", session)
    assert shown.returncode == 1
    lines = [line for line in shown.stderr.splitlines() if "missing: " in line]
    assert len(lines) == 1
    assert f"{session}: cannot run yet, missing: " in lines[0]
