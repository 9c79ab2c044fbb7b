"""Who a container belongs to, and the removal of what killed owners left behind."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from docker.errors import APIError

if TYPE_CHECKING:
    from docker import APIClient

RUN_LABEL = "org.akarena.run"
"""One `run` or `judge` of a sandbox."""
OWNER_LABEL = "org.akarena.owner"
"""The process that started it: boot of the kernel, pid namespace, process number and start time."""
_BUSY_SECONDS = 20.0
_LOOK_SECONDS = 0.05
_START_TIME_FIELD = 19
"""Counted after the command's name, which may hold anything but ends at the last parenthesis."""


@cache
def _here() -> tuple[str, str]:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return boot, str(Path("/proc/self/ns/pid").stat().st_ino)


def _start_time(pid: int) -> str | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    # A zombie runs no more: its containers are nobody's.
    return None if fields[0] in "ZX" else fields[_START_TIME_FIELD]


def own_label() -> str:
    """Name this process."""
    return ":".join((*_here(), str(os.getpid()), _start_time(os.getpid()) or ""))


def is_dead(label: str) -> bool:
    """Say whether the owner that a label names is known to be gone.

    A process of another pid namespace can't be looked up from here, so its containers are left alone.
    """
    boot, namespace, pid, started = (*label.split(":"), "", "", "", "")[:4]
    if not pid.isdigit():
        return False
    own_boot, own_namespace = _here()
    if boot != own_boot:
        return True
    return namespace == own_namespace and _start_time(int(pid)) != started


def sweep(api: APIClient) -> int:
    """Remove containers and volumes whose owner is dead; returns how many."""
    removed = 0
    for found in api.containers(all=True, filters={"label": OWNER_LABEL}):
        if is_dead(found["Labels"].get(OWNER_LABEL, "")):
            removed += remove_container(api, found["Id"])
    # After the containers: a volume in use can't be removed.
    for volume in api.volumes(filters={"label": OWNER_LABEL})["Volumes"] or ():
        if is_dead((volume["Labels"] or {}).get(OWNER_LABEL, "")):
            removed += remove_volume(api, volume["Name"])
    return removed


def remove_labelled(api: APIClient, label: str) -> None:
    """Kill and remove every container with a label, then the volumes."""
    remove_containers(api, label)
    for volume in api.volumes(filters={"label": label})["Volumes"] or ():
        remove_volume(api, volume["Name"])


def remove_containers(api: APIClient, label: str) -> None:
    """Kill and remove every container with a label."""
    for found in api.containers(all=True, filters={"label": label}):
        remove_container(api, found["Id"])


def remove_container(api: APIClient, container: str) -> bool:
    """Kill and remove a container with its nameless volumes; False where someone else did."""
    return _remove(lambda: api.remove_container(container, v=True, force=True))


def remove_volume(api: APIClient, name: str) -> bool:
    """Remove a volume; False where someone else did."""
    return _remove(lambda: api.remove_volume(name, force=True))


def _remove(action: Callable[[], None]) -> bool:
    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            action()
        except APIError as error:
            if error.status_code == HTTPStatus.NOT_FOUND:
                return False
            # Someone else is about to remove it, or the container that uses it.
            if error.status_code != HTTPStatus.CONFLICT or time.monotonic() > end:
                raise
            time.sleep(_LOOK_SECONDS)
        else:
            return True
