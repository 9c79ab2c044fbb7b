"""Development and reproduction sessions; ``nox -l`` lists them. Arguments after ``--`` reach the program behind each.

A session makes its own environment from a hashed lock file, then adds the project itself. torch and triton come from
the interpreter that runs nox (or the one that ``AKARENA_PYTHON`` names) where it has both, else from
``requirements/local.txt``. With ``nox --no-venv`` the packages of the current interpreter are used as they are.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import nox
from packaging.specifiers import SpecifierSet

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "types", "schemas", "tests"]
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"

PYTHON = os.environ.get("AKARENA_PYTHON")
REQUIRES_PYTHON: str = nox.project.load_toml("pyproject.toml")["project"]["requires-python"]
SOURCES = ("akarena", "noxfile.py", "tests", "tasks")

TIERS = {
    "gpu": "a GPU",
    "docker": "a Docker daemon and images with the agents' programs",
    "clang": "clang-22 and lld-22",
    "npm": "the programs claude and codex",
    "mini": "the program mini-swe-agent",
    "slow": "several minutes more",
}
"""Markers of the tests that need more than the default run may ask for, with what they need."""

LOCKS = {
    "core": ("build",),
    "test": ("build", "test"),
    "lint": ("build", "test", "lint"),
    "browser": ("build", "test", "browser"),
}
"""Lock files, with the dependency groups that each holds besides the project's own dependencies."""
IMAGE_LOCKS = ("pip", "torch", "judge", "node", "mini")
"""Lock files of what is installed into container images, below requirements/images, each made from an ``.in`` file."""
_FREE_LOCKS = ("requirements/core.lock", "requirements/images/mini.lock")
"""Those that need not agree with ``core.lock``: itself, and what lies in an environment that we import nothing from."""

_PROBE = """
import importlib.util, json, pathlib, platform, sysconfig
origins = [getattr(importlib.util.find_spec(name), "origin", None) for name in ("torch", "triton")]
folders = sorted({str(pathlib.Path(origin).parent.parent) for origin in origins if origin})
facts = {"version": platform.python_version(), "packages": sysconfig.get_path("purelib")}
print(json.dumps({**facts, "folders": folders if all(origins) else []}))
"""


@dataclass(frozen=True)
class Interpreter:
    """What a Python interpreter is and has."""

    version: str
    packages: Path
    """Its site-packages."""
    folders: tuple[str, ...]
    """Where torch and triton lie; empty unless it has both."""


def parse_interpreter(answer: str) -> Interpreter:
    """Read what the probe printed."""
    facts = json.loads(answer)
    return Interpreter(facts["version"], Path(facts["packages"]), tuple(facts["folders"]))


def pytest_arguments(posargs: Sequence[str]) -> list[str]:
    """Return the arguments of pytest: the default tier, unless the user chose one with ``-m``."""
    if any(argument.startswith("-m") for argument in posargs):
        return list(posargs)
    return ["-m", " and ".join(f"not {marker}" for marker in TIERS), *posargs]


def needs_compiler(posargs: Sequence[str]) -> bool:
    """Return whether g++ is needed: for the cpu target, and by nvcc; hipcc brings its own compiler."""
    return "rocm" not in posargs and "--target=rocm" not in posargs


@nox.session(python=PYTHON)
def tests(session: nox.Session) -> None:
    """Run the tests that need no GPU, Docker, clang-22 or much time; `-- -m clang` runs another tier."""
    _need_compiler(session)
    _install(session, "test", local=True)
    arguments = pytest_arguments(session.posargs)
    if "docker" in session.posargs:
        _install_pip(session)
    for marker, needed in TIERS.items():
        if f"not {marker}" in " ".join(arguments):
            session.log(f"not run: tests marked {marker}, which need {needed} (nox -s tests -- -m {marker})")
    session.run("python", "-m", "pytest", *arguments)


@nox.session(python=PYTHON)
def lint(session: nox.Session) -> None:
    """Check style and formatting with ruff, and Dockerfile.rocm with hadolint; `-- --fix` repairs what it can."""
    _install(session, "lint")
    session.run("ruff", "check", *session.posargs, *SOURCES)
    session.run("ruff", "format", *(() if "--fix" in session.posargs else ("--check",)), *SOURCES)
    session.run("hadolint", "--no-color", "Dockerfile.rocm")


@nox.session(python=PYTHON)
def types(session: nox.Session) -> None:
    """Check types with mypy in strict mode."""
    # With torch: what it is declared to return differs from the `Any` of a module that is not there.
    _install(session, "lint", local=True)
    session.run("mypy", *session.posargs)


@nox.session(python=PYTHON)
def schemas(session: nox.Session) -> None:
    """Check that the committed JSON schemas are those of the records."""
    _install(session, "core")
    _akarena(session, "schemas", "--check")


@nox.session(python=PYTHON, default=False)
def evaluate(session: nox.Session) -> None:
    """Let agents work on tasks, judge what they leave, write the report (default agent: solution)."""
    _need_compiler(session)
    _install(session, "core", local=True)
    _akarena(session, "evaluate")


@nox.session(python=PYTHON, default=False)
def report(session: nox.Session) -> None:
    """Render the report of a run again (default: the newest run)."""
    _install(session, "core")
    _akarena(session, "report")


@nox.session(python=PYTHON, default=False)
def verify(session: nox.Session) -> None:
    """Check a run folder (default: the newest run); `-- --rejudge` also judges its candidates again."""
    _install(session, "core", local="--rejudge" in session.posargs)
    _akarena(session, "verify")


@nox.session(python=PYTHON, default=False)
def validate(session: nox.Session) -> None:
    """Lint the tasks and run their oracles and negative controls."""
    _install(session, "core", local=True)
    _akarena(session, "tasks", "lint", "--deep")


@nox.session(python=PYTHON, default=False)
def lock(session: nox.Session) -> None:
    """Write the hashed lock files again, keeping pins that still fit; `-- --upgrade` renews them."""
    session.install("uv")
    for name, groups in LOCKS.items():
        chosen = [f"--group={group}" for group in groups]
        _compile(session, f"requirements/{name}.lock", *chosen, "pyproject.toml")
    for name in IMAGE_LOCKS:
        _compile(session, f"requirements/images/{name}.lock", f"requirements/images/{name}.in")


@nox.session(python=PYTHON, default=False)
def build(session: nox.Session) -> None:
    """Build the container images of a target with Docker; `-- --target cpu --base IMAGE --agent codex`."""
    _install(session, "core")
    _install_pip(session)
    _akarena(session, "build")


@nox.session(python=PYTHON, default=False)
def redteam(session: nox.Session) -> None:
    """Judge the hostile and the honest candidates of tests/adversarial; fails if one escapes or is refused."""
    _need_compiler(session)
    _install(session, "core", local=True)
    session.run("python", "-m", "tests.adversarial", *session.posargs)


@nox.session(venv_backend="none", default=False)
def bench(session: nox.Session) -> None:
    """Measure how fast the judge and the report are (not there yet)."""
    _later(session, "the benchmark of the judge's own overhead")


@nox.session(venv_backend="none", default=False)
def soak(session: nox.Session) -> None:
    """Run thousands of judgements and look for leaks (not there yet)."""
    _later(session, "the long-run driver")


def _compile(session: nox.Session, target: str, *sources: str) -> None:
    constraint = [] if target in _FREE_LOCKS else ["--constraint", "requirements/core.lock"]
    options = ["--universal", "--generate-hashes", "--no-emit-index-url", "--python-version=3.11", "--quiet"]
    session.run(
        *("uv", "pip", "compile", *options, *constraint, f"--output-file={target}", *session.posargs, *sources),
        env={"UV_CUSTOM_COMPILE_COMMAND": "nox -s lock"},
    )


def _akarena(session: nox.Session, *command: str) -> None:
    session.run("python", "-m", "akarena", *command, *session.posargs)


def _later(session: nox.Session, missing: str) -> NoReturn:
    session.error(f"{session.name}: cannot run yet, missing: {missing}")


def _need_compiler(session: nox.Session) -> None:
    if needs_compiler(session.posargs) and shutil.which("g++") is None:
        session.error("g++ was not found; HIP sources are compiled with it (Debian: apt-get install g++)")


def _install(session: nox.Session, name: str, *, local: bool = False) -> None:
    """Fill the session's environment from a lock file, add torch and triton if ``local``, then the project."""
    if session.venv_backend == "none":
        return
    own = _interpreter(session)
    if not SpecifierSet(REQUIRES_PYTHON).contains(own.version):
        session.error(f"Python {own.version} runs this session, expected {REQUIRES_PYTHON} (AKARENA_PYTHON names one)")
    session.install("--require-hashes", "-r", f"requirements/{name}.lock")
    if local:
        _install_local(session, own)
    session.install("--no-deps", "--no-build-isolation", "--editable", ".")


def _install_local(session: nox.Session, own: Interpreter) -> None:
    """Make torch and triton importable: those that the outer interpreter has, else downloaded ones."""
    outer_program = PYTHON or sys.executable
    shown = subprocess.run([outer_program, "-c", _PROBE], capture_output=True, text=True, check=True)
    outer = parse_interpreter(shown.stdout)
    link = own.packages / "akarena-local.pth"
    # A .pth file and not `--system-site-packages`, which misses the packages of an outer virtual environment. Its
    # folders come last: what the lock names stays first.
    if outer.folders and outer.version == own.version:
        session.log(f"torch and triton are those of {outer_program}")
        link.write_text("".join(f"{folder}\n" for folder in outer.folders), "utf-8")
        return
    link.unlink(missing_ok=True)
    _install_pip(session)
    session.run_install("python", "-m", "pip", "install", "-r", "requirements/local.txt")


def _install_pip(session: nox.Session) -> None:
    """Have pip even where uv is there: pip's own configuration is what names an index of CPU builds."""
    if session.venv_backend == "uv":
        session.install("pip")


def _interpreter(session: nox.Session) -> Interpreter:
    answer = session.run("python", "-c", _PROBE, silent=True, log=False)
    return parse_interpreter(str(answer))
