"""Container images: built from ``Dockerfile.rocm``, recorded in an image lock that the runner reads.

An image is only an environment. The code that judges is mounted read-only when a container starts.
"""

from __future__ import annotations

from pathlib import Path

from akarena import paths
from akarena.records.task import TargetName

DOCKERFILE = "Dockerfile.rocm"
BASES = {
    TargetName.ROCM: "rocm/pytorch@sha256:4449f856653602317e4101a76fce599c7fcd58ccec2e539951fce5f73083179e",
    TargetName.CPU: "ubuntu:24.04@sha256:561618e2c15bf2397621dd04f96926663a3b5616c189cf7e38db7e82f5c538ea",
}
"""What is built on unless another base is named. The cuda target has none: it takes an image with CUDA and torch."""
AGENTS = ("claude", "codex", "cursor", "openai-compatible")
"""Agents whose program can be put into an image of its own."""
FACTS = "/akarena/image.json"
"""Where an image describes itself."""


def folder() -> Path:
    """Return the folder of image locks, downloads and build logs; git ignores it."""
    return paths.root() / ".akarena" / "images"


def tag(target: TargetName, stage: str) -> str:
    """Return the name of a built image, for example ``akarena/cpu-agent-codex``."""
    return f"akarena/{target.value}-{stage}"
