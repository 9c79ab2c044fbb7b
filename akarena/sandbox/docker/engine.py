"""The Docker daemon as the sandbox needs it: on this machine, able to hold every limit, with the images in place."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from docker.constants import DEFAULT_UNIX_SOCKET
from docker.errors import ImageNotFound

from akarena.errors import InfrastructureError
from akarena.images import daemon
from akarena.sandbox.base import Role
from akarena.sandbox.docker import guard
from akarena.sandbox.docker.images import Image
from akarena.sandbox.docker.owner import sweep

if TYPE_CHECKING:
    from docker import APIClient

_CALL_SECONDS = 60
_DEFAULT_SOCKET = DEFAULT_UNIX_SOCKET.removeprefix("http+unix://")


@dataclass(frozen=True)
class EngineFacts:
    """What a run records.

    Attributes:
        version: Of the Docker daemon.
        runtime: What starts its containers, such as runc.
        storage: Its storage driver.
        cgroups: Version of the control groups.
        swap_is_limited: Whether the kernel counts swap.
        images: The digest of each role's image.
    """

    version: str
    runtime: str
    storage: str
    cgroups: str
    swap_is_limited: bool
    images: Mapping[Role, str]


class Engine:
    """Opens connections to the daemon; the first one checks it and removes what killed runs left behind."""

    def __init__(self) -> None:
        self._info: dict[str, Any] | None = None

    def open(self) -> APIClient:
        """Connect.

        Raises:
            InfrastructureError: No daemon answers, or it is none that can be used.
        """
        api = _connect()
        try:
            if self._info is None:
                with daemon.told("the Docker daemon"):
                    info = api.info()
                    _check(info)
                    sweep(api)
                guard.start()
                self._info = info
        except BaseException:
            api.close()
            raise
        return api

    def facts(self, images: Mapping[Role, Image]) -> EngineFacts:
        """Ask for the facts.

        Args:
            images: Whose digests to give.

        Raises:
            InfrastructureError: No daemon answers, it can't be used, or an image is missing or unfit.
        """
        api = self.open()
        try:
            assert self._info is not None
            return EngineFacts(
                version=self._info["ServerVersion"],
                runtime=self._info["DefaultRuntime"],
                storage=self._info["Driver"],
                cgroups=self._info.get("CgroupVersion", "1"),
                swap_is_limited=bool(self._info["SwapLimit"]),
                images={role: _digest(api, image) for role, image in images.items()},
            )
        finally:
            api.close()


def _connect() -> APIClient:
    where = os.environ.get("DOCKER_HOST", "")
    if where and not where.startswith("unix://"):
        raise InfrastructureError(
            f"DOCKER_HOST: is {where!r}, expected a daemon that shares folders and sockets (unix://PATH)"
        )
    path = where.removeprefix("unix://") or _DEFAULT_SOCKET
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError as error:
            raise InfrastructureError(
                f"no Docker daemon answers at {path} ({error.strerror}); set DOCKER_HOST"
            ) from None
    api = daemon.connect().api
    api.timeout = _CALL_SECONDS
    return api


def _check(info: Mapping[str, Any]) -> None:
    """Refuse a daemon that would drop a limit without a word, or show other users than the ones asked for."""
    options = {part for option in info.get("SecurityOptions") or () for part in option.split(",")}
    missing = [name for name in ("MemoryLimit", "PidsLimit", "CPUSet") if not info.get(name)]
    if info.get("OSType") != "linux":
        raise InfrastructureError("the Docker daemon runs no Linux containers")
    if "name=seccomp" not in options:
        raise InfrastructureError("the Docker daemon can't filter system calls (seccomp)")
    if options & {"name=userns", "name=rootless"}:
        raise InfrastructureError(
            "the Docker daemon maps users (rootless or userns-remap), expected one that does not: files and devices "
            "would belong to other users"
        )
    if missing:
        raise InfrastructureError(f"the Docker daemon can't hold these limits here: {', '.join(missing)}")


def _digest(api: APIClient, image: Image) -> str:
    with daemon.told(f"image {image.id}"):
        try:
            found = api.inspect_image(image.id)  # type: ignore[no-untyped-call]
        except ImageNotFound:
            raise InfrastructureError(
                f"image {image.id}: the Docker daemon does not have it (run `akarena build`)"
            ) from None
    if (found.get("Config") or {}).get("Volumes"):
        raise InfrastructureError(
            f"image {image.id}: declares volumes, expected none: they would be writable and unlimited"
        )
    return str(found["Id"])
