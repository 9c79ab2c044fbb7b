"""The package as a whole: what its files may say, what its locks hold, and which way imports go."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import akarena
from akarena.errors import ExitCode

ROOT = Path(akarena.__file__).resolve().parent.parent
PACKAGE = ROOT / "akarena"
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

# Written in pieces, so that this file does not say what it forbids.
FORBIDDEN = {
    "a registry or model host": r"(?:pypi|pythonhosted|npmjs|deb\.debian|crates|hugging"
    + r"face|download\.pytorch)\.(?:org|io|co)",
    "an address of a registry": r"(?:index-url|find-links)[ =]+(?:https?|file)" + r"://",
    "a home folder": r"/(?:home|Users)" + r"/[a-z][\w.-]*/|(?<![\w.])/root" + r"/[\w.]",
    "a folder of one machine": r"(?<![\w.])/(?:work|opt)" + r"/(?:main|shared|akenv|wheels|pypi)",
    "a private address": r"(?<![\d.])(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}"
    + r"\.\d{1,3}(?![\d.])",
}
# Isolation is tested with paths and addresses that must not be reachable.
MAY_NAME_PATHS = (
    "tests/contract/",
    "tests/adversarial/",
    "tests/e2e/",
    "tests/unit/test_sandbox",
    "tests/unit/test_gateway_tunnel",
    "tests/redteam/",
    "tests/docker/test_images",
)


def tracked() -> list[str]:
    """Return every file that belongs to the project, tracked or about to be."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def text_of(name: str) -> str | None:
    data = (ROOT / name).read_bytes()
    return None if b"\0" in data else data.decode("utf-8", "replace")


def forbidden_in(text: str) -> list[str]:
    # Versions of packages look like addresses.
    text = re.sub(r'"version": "[^"]*"', "", text)
    return [what for what, pattern in FORBIDDEN.items() if re.search(pattern, text)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("https://pypi" + ".org/simple", "a registry or model host"),
        ("--index-url https" + "://example", "an address of a registry"),
        ("see /home" + "/jane/x", "a home folder"),
        ("in /root" + "/.cache", "a home folder"),
        ("at /work" + "/main/x", "a folder of one machine"),
        ("host 10.1" + ".2.3", "a private address"),
    ],
)
def test_patterns_find_what_they_forbid(text: str, what: str) -> None:
    assert forbidden_in(text) == [what]


def test_files_name_no_host_and_no_path_of_a_machine() -> None:
    names = tracked()
    assert len(names) > 100
    found = []
    for name in names:
        text = text_of(name)
        if text is not None and not name.startswith(MAY_NAME_PATHS):
            if name.startswith("reports/example/") and name.endswith((".md", ".html")):
                # Drawn from data.json, which is looked at itself; its table of packages holds bare versions.
                text = re.sub(r"\b\d+(\.\d+){3}\b", "", text)
            found += [f"{name}: {what}" for what in forbidden_in(text)]
    assert found == []


def pins(lock: Path) -> dict[str, list[tuple[str, int]]]:
    """Return versions and numbers of hashes by package; a package has two where the Python versions differ."""
    found: dict[str, list[tuple[str, int]]] = {}
    for block in re.split(r"\n(?=[a-z])", lock.read_text("utf-8")):
        match = re.match(r"([a-z0-9-]+)(?:\[[a-z,]+\])?==([^ \\]+)", block)
        if match:
            found.setdefault(match[1], []).append((match[2], len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", block))))
    return found


def test_there_are_four_locks() -> None:
    assert [lock.stem for lock in LOCKS] == ["browser", "core", "lint", "test"]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_locks_pin_and_hash_every_package(lock: Path) -> None:
    packages = pins(lock)
    assert len(packages) > 30
    requirements = [line for line in lock.read_text("utf-8").splitlines() if re.match(r"[A-Za-z]", line)]
    assert len(requirements) == sum(len(versions) for versions in packages.values())
    assert [name for name, versions in packages.items() if any(hashes == 0 for _, hashes in versions)] == []
    assert "torch" not in packages
    assert "triton" not in packages


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_locks_satisfy_the_project(lock: Path) -> None:
    groups = {"core": ["build"], "test": ["build", "test"], "lint": ["build", "test", "lint"]}
    chosen = groups.get(lock.stem, ["build", "test", lock.stem])
    wanted = list(PROJECT["project"]["dependencies"])
    wanted += [requirement for group in chosen for requirement in PROJECT["dependency-groups"][group]]
    packages = pins(lock)
    for requirement in map(Requirement, wanted):
        versions = packages.get(requirement.name.lower(), [])
        assert versions, f"{requirement.name} is not in {lock.name}; run `nox -s lock`"
        assert all(requirement.specifier.contains(version) for version, _ in versions), f"{requirement}: {versions}"


def test_local_requirements_are_within_the_extra() -> None:
    extra = {
        Requirement(text).name: Requirement(text).specifier
        for text in PROJECT["project"]["optional-dependencies"]["local"]
    }
    lines = (ROOT / "requirements" / "local.txt").read_text("utf-8").splitlines()
    local = [Requirement(line) for line in lines if not line.startswith("#")]
    assert {requirement.name for requirement in local} == set(extra) == {"torch", "triton"}
    for requirement in local:
        bounds = [part.version for part in requirement.specifier]
        assert all(extra[requirement.name].contains(bound) for bound in bounds), requirement


def test_licence_is_there() -> None:
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert PROJECT["project"]["license"] == "Apache-2.0"


def test_version_is_written_once() -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "akarena/__init__.py"
    # Documents that quote it are checked instead.
    assert f"\nversion: {akarena.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert akarena.__version__ in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_changelog_names_every_schema() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    names = [path.name.removesuffix(".schema.json") for path in (ROOT / "schemas").glob("*.schema.json")]
    assert names
    assert [name for name in names if f"`{name}`" not in text] == []


def test_links_of_the_readme_exist() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).is_file()] == []


def akarena_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "akarena", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_command_line_starts() -> None:
    shown = akarena_command("--help")
    assert shown.returncode == ExitCode.OK, shown.stderr
    assert "evaluate" in shown.stdout
    assert akarena_command("--version").stdout == f"akarena {akarena.__version__}\n"
    assert akarena_command("no-such-command").returncode == ExitCode.USER_ERROR


def modules(part: str) -> list[Path]:
    path = PACKAGE / part
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def imports(path: Path, *, everywhere: bool = True) -> Iterator[str]:
    """Give the modules that a file imports; without ``everywhere`` only those outside functions."""
    waiting: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield node.module or ""
            # `from akarena import store` imports a module; `from akarena.store import x` asks for a name in one.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        if everywhere or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting.extend(ast.iter_child_nodes(node))


def is_part_of(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def test_records_depend_on_nothing_above_them() -> None:
    for path in modules("records"):
        for module in imports(path):
            if is_part_of(module, "akarena") and module != "akarena":
                assert is_part_of(module, "akarena.records", "akarena.expressions"), f"{path.name} imports {module}"


@pytest.mark.parametrize(
    ("part", "never"),
    [
        ("statistics.py", ("docker", "torch", "triton", "akarena.runner", "akarena.sandbox", "akarena.judge")),
        ("report", ("docker", "torch", "triton", "akarena.runner", "akarena.sandbox", "akarena.judge")),
        ("judge", ("akarena.runner", "akarena.agents", "akarena.store", "akarena.cli", "akarena.report")),
        ("sandbox", ("akarena.runner", "akarena.agents", "akarena.judge", "akarena.records", "torch")),
    ],
)
def test_imports_go_one_way(part: str, never: tuple[str, ...]) -> None:
    paths = modules(part)
    assert paths
    for path in paths:
        assert [module for module in imports(path) if is_part_of(module, *never)] == [], path


def test_a_worker_starts_with_the_standard_library_alone() -> None:
    for path in modules("worker"):
        for module in imports(path, everywhere=False):
            top = module.partition(".")[0]
            fine = top in sys.stdlib_module_names or module == "akarena" or is_part_of(module, "akarena.worker")
            assert fine, f"{path.name} imports {module}"


def test_the_report_branch_loads_no_docker_torch_or_runner() -> None:
    """In a fresh interpreter, since what an import brings along is not seen in one file."""
    code = "import sys, akarena.report, akarena.statistics, akarena.verify; print(*sorted(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = shown.stdout.split()
    assert "akarena.report.render" in loaded
    assert [module for module in loaded if is_part_of(module, "docker", "torch", "triton", "akarena.runner")] == []


def test_no_module_is_too_long() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert len(lengths) > 30
    assert {path: lines for path, lines in lengths.items() if lines > 500} == {}


def test_the_sandbox_asks_for_no_privilege_and_no_daemon() -> None:
    for path in modules("sandbox"):
        text = path.read_text("utf-8")
        assert not re.search(r"(?<!un)privileged", text), path
        # The preflight names the sockets of daemons, to show that none can be reached from inside.
        assert path.name == "preflight.py" or "docker.sock" not in text, path


def test_ci_script_is_executable_and_calls_what_the_readme_says() -> None:
    path = ROOT / ".ci" / "run"
    assert path.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", str(path)], check=True)
    script, readme = path.read_text("utf-8"), (ROOT / "README.md").read_text("utf-8")
    for command in ("nox -s tests", "nox -s evaluate"):
        assert command in script
        assert command in readme
