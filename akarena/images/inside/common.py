"""What the build scripts share. They run inside an image under construction, with its standard library only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

VENV = Path("/opt/venv")
"""Where the ROCm base keeps torch, and where we install it for a base that has none."""
PACKAGES = Path("/opt/akarena/packages")
"""What the judge imports besides the packages of :data:`VENV`."""


def fail(message: str) -> NoReturn:
    """End the build step with one line."""
    print(f"akarena: {message}", file=sys.stderr)
    sys.exit(1)


def find_python() -> Path:
    """Return the interpreter that has torch, or will have it: the virtual environment's, else the first on PATH."""
    inside = VENV / "bin" / "python"
    if inside.exists():
        return inside
    found = shutil.which("python3")
    if found is None:
        fail("the base has no python3")
    return Path(found)


def ask(python: Path, code: str) -> list[str]:
    """Run code that prints a JSON list of texts."""
    shown = subprocess.run([python, "-I", "-B", "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout
    answer: list[str] = json.loads(shown)
    return answer


def install(python: Path, folder: Path, *options: str) -> None:
    """Install hashed wheels, offline; ``folder`` holds them beside the requirement files that name them.

    pip itself runs from its wheel, so that it becomes part of no image.
    """
    pip = next(Path("/build/pip").glob("pip-*.whl"), None)
    if pip is None:
        fail("the build context has no wheel of pip")
    argv = [str(python), "-B", str(pip / "pip"), "--isolated", "install", "--no-index", "--find-links", str(folder)]
    argv += ["--no-deps", "--no-compile", "--no-cache-dir", "--no-warn-script-location", "--root-user-action=ignore"]
    argv += ["--disable-pip-version-check", "--progress-bar=off", "--require-hashes", *options]
    for requirements in sorted(folder.glob("*.txt")):
        argv += ["--requirement", str(requirements)]
    subprocess.run(argv, check=True)


def precompile(python: Path, folder: Path, strip: Path = Path("/")) -> None:
    """Write byte code that does not depend on time, order or the sources' dates: roots are read-only at run time.

    Args:
        python: The interpreter that will run the code.
        folder: Compiled with everything below it.
        strip: The outer part of ``folder`` that will not be there at run time.
    """
    options = ["-q", "-f", "-j", "1", "--invalidation-mode", "unchecked-hash", "-s", str(strip), "-p", "/"]
    # Without site: a package that it imports would get byte code of its own making, with the date in it. Not with -I,
    # which would ignore the seed.
    argv = [str(python), "-B", "-S", "-m", "compileall", *options, str(folder)]
    environment = {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
    # Some packages ship templates and tests that are no valid Python; those stay without byte code.
    subprocess.run(argv, env=environment, cwd="/", check=False)


def seal(layer: Path) -> None:
    """Give everything below a folder the build's one date."""
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
    for parent, folders, files in os.walk(layer):
        for name in (*folders, *files):
            os.utime(Path(parent, name), (epoch, epoch), follow_symlinks=False)
    os.utime(layer, (epoch, epoch))
