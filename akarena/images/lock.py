"""The image lock ``.akarena/images/<target>.json``: written by a build, read by whoever starts containers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from akarena import files, images, schemas
from akarena.errors import AkarenaError, InfrastructureError
from akarena.records.image import Image, ImageBase, ImageLockRecord, ImageRole
from akarena.records.task import TargetName

if TYPE_CHECKING:
    from docker import DockerClient


def path(target: TargetName) -> Path:
    """Return where the lock of a target lies."""
    return images.folder() / f"{target.value}.json"


def load(target: TargetName) -> ImageLockRecord:
    """Read the lock of a target.

    Raises:
        InfrastructureError: No image was built.
        UserError: The file is no valid lock.
    """
    where = path(target)
    if not where.is_file():
        raise InfrastructureError(
            f"{where}: is missing; no image of the target {target.value} was built "
            f"(run `akarena build --target {target.value}`)"
        )
    return schemas.load(ImageLockRecord, where)


def find(lock: ImageLockRecord, role: ImageRole, agent: str | None = None) -> Image:
    """Return the image of a role, for an agent's program or without one.

    Raises:
        InfrastructureError: It was not built.
    """
    for image in lock.images:
        if image.facts.role is role and image.agent == agent:
            return image
    name = role.value if agent is None else f"{role.value}-{agent}"
    option = f" --agent {agent}" if agent else ""
    raise InfrastructureError(
        f"{path(lock.target)}: has no image {name} (run `akarena build --target {lock.target.value}{option}`)"
    )


def check_present(client: DockerClient, lock: ImageLockRecord) -> None:
    """Check that the daemon still has every image of a lock.

    Raises:
        InfrastructureError: One is gone.
    """
    from docker.errors import ImageNotFound

    from akarena.images import daemon

    for image in lock.images:
        with daemon.told(f"image {image.tag}"):
            try:
                client.images.get(image.id)
            except ImageNotFound:
                raise InfrastructureError(
                    f"image {image.tag} ({image.id}): the Docker daemon does not have it any more "
                    f"(run `akarena build --target {lock.target.value}`)"
                ) from None


def inputs(root: Path, target: TargetName, base: ImageBase, builder: str, epoch: int) -> ImageLockRecord:
    """Return a lock that says what is built from, with no valid list of images yet."""
    locks = sorted((root / "requirements" / "images").rglob("*"))
    requirements = {
        found.relative_to(root / "requirements" / "images").as_posix(): files.sha256(found)
        for found in locks
        if found.name.endswith((".lock", ".txt")) or found.name == "package-lock.json"
    }
    return ImageLockRecord.model_construct(
        schema_version=1,
        target=target,
        base=base,
        dockerfile_sha256=files.sha256(root / images.DOCKERFILE),
        scripts_sha256=files.digest_tree(root / "akarena" / "images" / "inside", skip=("__pycache__",)),
        requirements=requirements,
        builder=builder,
        source_date_epoch=epoch,
        images=(),
    )


def merge(fresh: ImageLockRecord, built: list[Image]) -> ImageLockRecord:
    """Return the lock with the images just built, and with older ones that were built from the same inputs."""
    kept: list[Image] = []
    try:
        older = load(fresh.target)
    except AkarenaError:
        # Missing or not valid: the new one replaces it.
        older = None
    if older is not None and older.model_copy(update={"images": ()}) == fresh:
        replaced = {image.tag for image in built}
        kept = [image for image in older.images if image.tag not in replaced]
    chosen = tuple(sorted((*kept, *built), key=lambda image: image.tag))
    return ImageLockRecord.model_validate({**dict(fresh), "images": chosen})


def write(lock: ImageLockRecord) -> Path:
    """Write a lock; returns where."""
    where = path(lock.target)
    files.write_bytes(where, schemas.to_json(lock), replace=True)
    return where
