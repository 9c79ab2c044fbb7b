"""What a container is created with: a command, its limits and mounts, in the words of Docker."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docker.types import DeviceRequest, LogConfig, Ulimit
from docker.types import Mount as DockerMount

from akarena.errors import InfrastructureError
from akarena.sandbox.base import HOME, JUDGE_OPEN_FILES, MAX_OPEN_FILES, Command, Limits, Mount, Role
from akarena.sandbox.docker.handoff import INSIDE, Handoff
from akarena.sandbox.docker.images import Image
from akarena.sandbox.docker.profile import profile
from akarena.sandbox.inner import covers
from akarena.sandbox.ownership import device_group, host_id

if TYPE_CHECKING:
    from docker import APIClient

HELD = "/akarena-held"
"""Where the main container keeps scratch folders alive, out of its own user's reach."""
_LOW_SIZE_BYTES = 1 << 20
LOW_MEMORY_BYTES = 32 << 20
"""Docker takes no limit under 6 MB, and the first program of a container needs some."""
_INIT_TASKS = 1
_OOM_SCORE = 1000
"""If the whole machine runs out of memory, the kernel shall choose containers first."""
_GPU_CAPABILITIES = ["gpu", "compute", "utility"]


def tmpfs_bytes(limits: Limits) -> int:
    """Give the size of each tmpfs."""
    return max(limits.tmp_bytes, _LOW_SIZE_BYTES)


def create_options(
    api: APIClient,
    image: Image,
    command: Command,
    handoff: Handoff,
    labels: Mapping[str, str],
    volumes: Mapping[str, str],
    held: Mapping[str, str],
    *,
    is_judge: bool = False,
) -> dict[str, Any]:
    """Build the keyword arguments of `APIClient.create_container`.

    Args:
        api: Which version of the API to speak.
        image: Where it runs.
        command: What it runs, in the end.
        handoff: Where its first program finds its orders.
        labels: For the container.
        volumes: The volume of every scratch folder, by its name.
        held: Those that the container only keeps alive.
        is_judge: Whether it is the main process of a judgement.

    Raises:
        InfrastructureError: A mount source does not exist, or is a device that may not be opened.
    """
    uid, gid = host_id()
    groups = {group for mount in command.mounts if mount.device and (group := device_group(mount.source))}
    sources = [mount for mount in command.mounts if not mount.device]
    devices = [mount for mount in command.mounts if mount.device]
    mounts = [_bind(_source(mount), mount.target, mount.writable) for mount in sources]
    mounts += [
        DockerMount(scratch.target, volumes[scratch.name], read_only=not scratch.writable, no_copy=True)
        for scratch in command.scratch
    ]
    mounts += [DockerMount(f"{HELD}/{name}", volume, read_only=True, no_copy=True) for name, volume in held.items()]
    mounts.append(_bind(handoff.folder, INSIDE, writable=False))
    hidden = [mount.target for mount in command.mounts]
    for path, file in handoff.tables.items():
        if not any(covers(target, path) for target in hidden):
            mounts.append(_bind(file, path, writable=False))
    memory = max(command.limits.memory_bytes, LOW_MEMORY_BYTES)
    host = api.create_host_config(
        network_mode="none",
        ipc_mode="private",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true", f"seccomp={profile()}"],
        read_only=True,
        init=True,
        mem_limit=memory,
        memswap_limit=memory,
        pids_limit=command.limits.processes + _INIT_TASKS,
        cpuset_cpus=",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))),
        oom_score_adj=_OOM_SCORE,
        ulimits=_ulimits(command.limits, is_judge),
        shm_size=tmpfs_bytes(command.limits),
        tmpfs=_tmpfs(command, uid, gid, bool(held), devices),
        mounts=mounts,
        devices=[f"{mount.source}:{mount.target}:rw" for mount in devices if _gpu_index(mount) is None],
        device_requests=_gpus(devices),
        group_add=[str(group) for group in sorted(groups)],
        log_config=LogConfig(type="none"),
        restart_policy={"Name": "no"},
    )
    host["CgroupnsMode"] = "private"
    return {
        "image": image.id,
        "entrypoint": handoff.argv(image.python),
        "command": [],
        "user": f"{uid}:{gid}",
        "hostname": "sandbox",
        "working_dir": "/",
        "environment": {},
        "labels": dict(labels),
        "healthcheck": {"test": ["NONE"]},
        "host_config": host,
        # Else the user's proxies, which may hold a password, would be set as variables.
        "use_config_proxy": False,
    }


def _source(mount: Mount) -> Path:
    try:
        path = mount.source.resolve(strict=True)
    except OSError as error:
        raise InfrastructureError(f"mount source {mount.source} can't be opened: {error.strerror}") from error
    if path.is_block_device() or path.is_char_device():
        # Docker would let a process open /dev/zero and its like, whatever they are mounted as.
        raise InfrastructureError(f"mount source {mount.source} is a device, but not mounted as one")
    return path


def _bind(source: Path, target: str, writable: bool) -> DockerMount:
    mount = DockerMount(target, str(source), type="bind", read_only=not writable, propagation="rprivate")
    # What is mounted below the source would stay writable under older versions of Docker.
    mount["BindOptions"]["NonRecursive"] = True
    return mount


def _ulimits(limits: Limits, is_judge: bool) -> list[Ulimit]:
    open_files = JUDGE_OPEN_FILES if is_judge else MAX_OPEN_FILES
    values = {"core": 0, "fsize": limits.file_bytes, "nofile": open_files, "msgqueue": 0}
    return [Ulimit(name=name, soft=value, hard=value) for name, value in values.items()]


def _tmpfs(command: Command, uid: int, gid: int, holds: bool, devices: list[Mount]) -> dict[str, str]:
    size = tmpfs_bytes(command.limits)
    # Compilers and their caches execute what they wrote; a loader of one finished kernel does not.
    flags = f"rw,nosuid,nodev,{'noexec' if command.role is Role.WORKER else 'exec'},size={size}"
    found = {"/tmp": f"{flags},mode=1777", HOME: f"{flags},mode=0700,uid={uid},gid={gid}"}
    if holds:
        found[HELD] = f"rw,nosuid,nodev,noexec,size={_LOW_SIZE_BYTES},mode=0700"
    if not any(_needs_sysfs(mount) for mount in devices) and not any(covers("/sys", m.target) for m in command.mounts):
        found["/sys"] = "ro,nosuid,nodev,noexec,size=4096,mode=0555"
    return found


def _needs_sysfs(device: Mount) -> bool:
    """AMD's runtime finds its devices through sysfs."""
    return device.target == "/dev/kfd" or device.target.startswith("/dev/dri/")


def _gpu_index(device: Mount) -> str | None:
    """Give what follows `/dev/nvidia`: a number for a GPU, something else for what Docker brings along."""
    found = re.fullmatch(r"/dev/nvidia(.*)", str(device.source))
    return found[1] if found else None


def _gpus(devices: list[Mount]) -> list[DeviceRequest]:
    named = {index for index in map(_gpu_index, devices) if index is not None}
    numbers = sorted((index for index in named if index.isdigit()), key=int)
    if named and not numbers:
        raise InfrastructureError("NVIDIA devices are mounted, but no GPU among them (such as /dev/nvidia0)")
    return [DeviceRequest(device_ids=numbers, capabilities=[_GPU_CAPABILITIES])] if numbers else []
