"""Unpacks the Cursor CLI from an archive that the user gave, after a check of its digest. It is in no registry."""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
from pathlib import Path

from akarena.images.inside.common import fail, seal

ARCHIVE = Path("/build/cursor/cursor.tar.gz")
PROGRAM = "cursor-agent"


def main() -> None:
    """Check and unpack."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--sha256", required=True)
    parser.add_argument("--into", type=Path, required=True)
    arguments = parser.parse_args()
    if not re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z.+-]*", arguments.version):
        fail("agent-cursor: the build argument CURSOR_VERSION is missing")
    if not re.fullmatch(r"[0-9a-f]{64}", arguments.sha256):
        fail(
            "agent-cursor: the build argument CURSOR_SHA256 is missing; the Cursor CLI is in no registry, so its "
            "archive is taken only with its version and digest"
        )
    if not ARCHIVE.is_file():
        fail("agent-cursor: the build context holds no cursor.tar.gz")
    found = hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()
    if found != arguments.sha256:
        fail(f"agent-cursor: cursor.tar.gz has the digest {found}, expected {arguments.sha256}")
    layer: Path = arguments.into
    home = layer / "opt" / "agents" / "cursor"
    home.mkdir(parents=True)
    unpack(home)
    link = layer / "usr" / "local" / "bin" / PROGRAM
    link.parent.mkdir(parents=True)
    link.symlink_to(f"/{(home / PROGRAM).relative_to(layer)}")
    seal(layer)


def unpack(home: Path) -> None:
    """Unpack the archive without its outermost folder; tar refuses members that lead out."""
    argv = ["tar", "-xzf", str(ARCHIVE), "-C", str(home), "--strip-components=1", "--no-same-owner"]
    if subprocess.run(argv, check=False).returncode != 0:
        fail("agent-cursor: cursor.tar.gz cannot be unpacked")
    if not (home / PROGRAM).is_file():
        fail(f"agent-cursor: the archive holds no {PROGRAM} in its outermost folder")


if __name__ == "__main__":
    main()
