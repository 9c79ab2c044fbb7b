"""The sandbox of containers: a fresh one for every process, from images that were built before."""

from __future__ import annotations

from akarena.sandbox.docker.images import Image, Images
from akarena.sandbox.docker.sandbox import DockerSandbox

__all__ = ["DockerSandbox", "Image", "Images"]
