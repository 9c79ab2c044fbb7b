"""The Docker daemon: reached through ``DOCKER_HOST``, its failures told in one line."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from akarena.errors import InfrastructureError

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

_DISK_FULL = "no space left on device"
MAX_FACTS_BYTES = 16 << 20


def connect() -> DockerClient:
    """Return a client whose daemon answers.

    Raises:
        InfrastructureError: None answers.
    """
    import docker
    from docker.errors import DockerException

    where = os.environ.get("DOCKER_HOST") or "the default socket"
    try:
        client = docker.from_env(timeout=600)
        client.ping()
    except DockerException as error:
        raise InfrastructureError(f"no Docker daemon answers at {where} ({reason(error)}); set DOCKER_HOST") from None
    return client


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn any failure of the daemon into one line that begins with ``what``."""
    import requests
    from docker.errors import DockerException

    try:
        yield
    except DockerException as error:
        raise InfrastructureError(f"{what}: {reason(error)}") from None
    except requests.RequestException as error:
        raise InfrastructureError(f"{what}: the Docker daemon does not answer any more ({reason(error)})") from None


def reason(error: BaseException | str) -> str:
    """Return what went wrong as one line."""
    text = str(getattr(error, "explanation", None) or error)
    if is_disk_full(text):
        return "the disk of the Docker daemon is full"
    return " ".join(text.split())[:500]


def is_disk_full(text: str) -> bool:
    """Say whether an error tells that the daemon has no space left."""
    return _DISK_FULL in text.lower()


def find_base(client: DockerClient, reference: str) -> Image:
    """Return an image that is there, or pull it.

    Raises:
        InfrastructureError: It is neither there nor to be had.
    """
    from docker.errors import APIError, ImageNotFound

    try:
        return client.images.get(reference)
    except ImageNotFound:
        pass
    except APIError as error:
        raise InfrastructureError(f"base image {reference}: {reason(error)}") from None
    try:
        # The whole reference: split at its colon, a digest would be lost.
        for line in client.api.pull(reference, stream=True, decode=True):
            if "error" in line:
                raise InfrastructureError(
                    f"base image {reference}: is not here and cannot be pulled: {reason(line['error'])}"
                )
        return client.images.get(reference)
    except APIError as error:
        raise InfrastructureError(
            f"base image {reference}: is not here and cannot be pulled: {reason(error)}"
        ) from None


def output(client: DockerClient, image: str, argv: list[str]) -> str:
    """Run a program in a container without network and return what it prints.

    Raises:
        InfrastructureError: It cannot be started, or fails.
    """
    with told(f"image {image}: {argv[0]} could not be run"):
        container = client.containers.create(
            image, argv[1:], entrypoint=argv[:1], network_mode="none", user="65532:65532", read_only=True
        )
        try:
            container.start()
            status = int(container.wait()["StatusCode"])
            printed: bytes = container.logs(stdout=True, stderr=status != 0)
        finally:
            container.remove(force=True, v=True)
    text = printed.decode(errors="replace")
    if status != 0:
        raise InfrastructureError(f"image {image}: {argv[0]} ended with {status}: {reason(text)}")
    return text


def read_file(client: DockerClient, image: str, path: str) -> bytes:
    """Read a file of an image without running anything in it.

    Raises:
        InfrastructureError: It is missing, no file, or too large.
    """
    with told(f"image {image}: {path} cannot be read"):
        # The command is never run; an image without one could not be made a container of.
        container = client.api.create_container(image, ["-"], network_disabled=True)
        try:
            chunks, _ = client.api.get_archive(container["Id"], path)
            data = _bounded(chunks)
        finally:
            client.api.remove_container(container["Id"], force=True, v=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        member = tar.next()
        file = tar.extractfile(member) if member is not None and member.isreg() else None
        if file is None:
            raise InfrastructureError(f"image {image}: {path} is no file")
        return file.read()


def version(client: DockerClient) -> dict[str, Any]:
    """Return what the daemon says of itself."""
    with told("the Docker daemon"):
        found: dict[str, Any] = client.version()
    return found


def _bounded(chunks: Iterator[bytes]) -> bytes:
    data = b""
    for chunk in chunks:
        data += chunk
        if len(data) > MAX_FACTS_BYTES:
            raise InfrastructureError(f"a file of an image is larger than {MAX_FACTS_BYTES >> 20} MiB")
    return data
