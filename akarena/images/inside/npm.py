"""Installs an agent's command line from npm archives in the build context, held against the lock's digests by npm."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
from pathlib import Path

from akarena.images.inside.common import fail, seal

NODE = Path("/opt/node/bin/node")
NPM = Path("/opt/node/lib/node_modules/npm/bin/npm-cli.js")
_CPU = {"x86_64": "x64", "aarch64": "arm64"}
NATIVE = {
    "claude": "node_modules/@anthropic-ai/claude-code-linux-{cpu}/claude",
    "codex": "node_modules/@openai/codex-linux-{cpu}/vendor/*/bin/codex",
}
"""The program itself, which the package's script starts: with it, the image needs no Node.js."""


def main() -> None:
    """Run ``npm ci`` offline, then link the program onto PATH."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lock", type=Path, required=True, help="package.json, package-lock.json and archives")
    parser.add_argument("--name", required=True)
    parser.add_argument("--into", type=Path, required=True)
    arguments = parser.parse_args()
    name: str = arguments.name
    home = Path("/opt/agents") / name
    home.mkdir(parents=True)
    package = Path(arguments.lock)
    shutil.copy(package / "package.json", home)
    (home / "package-lock.json").write_text(json.dumps(with_archives(package)))
    # Package scripts stay off: what they do, download or link a program, is done here in the open.
    argv = [
        str(NODE),
        str(NPM),
        "ci",
        "--offline",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
    ]
    subprocess.run([*argv, "--cache", "/build/cache"], cwd=home, env={**os.environ, "HOME": "/build"}, check=True)
    (home / "node_modules" / ".package-lock.json").unlink(missing_ok=True)
    shutil.copy(package / "package-lock.json", home)
    program = find_program(home, name)
    layer: Path = arguments.into
    link = layer / "usr" / "local" / "bin" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(program)
    (layer / "opt" / "agents").mkdir(parents=True)
    home.rename(layer / "opt" / "agents" / name)
    seal(layer)


def with_archives(folder: Path) -> dict[str, object]:
    """Return the lock with the archives as the packages' sources; the lock itself names no host."""
    lock: dict[str, object] = json.loads((folder / "package-lock.json").read_text("utf-8"))
    archives = json.loads((folder / "archives.json").read_text("utf-8"))
    packages = lock["packages"]
    assert isinstance(packages, dict)
    for key, archive in archives.items():
        packages[key]["resolved"] = f"file:{folder / archive}"
    return lock


def find_program(home: Path, name: str) -> Path:
    """Return the native program of this processor."""
    pattern = NATIVE[name].format(cpu=_CPU[platform.machine()])
    found = sorted(home.glob(pattern))
    if len(found) != 1:
        fail(f"{name}: {len(found)} programs match {pattern}, expected one")
    found[0].chmod(0o755)
    return found[0]


if __name__ == "__main__":
    main()
