"""Where a run takes place: a sandbox, and a target whose tool chain that sandbox can show to its processes."""

from __future__ import annotations

from dataclasses import dataclass

from akarena import sandbox, targets
from akarena.errors import InfrastructureError
from akarena.images import lock as image_lock
from akarena.records.image import ImageLockRecord
from akarena.sandbox.base import Role, Sandbox
from akarena.targets import Hardware, Target
from akarena.targets.image import ImageTarget, image_of

_WITH_IMAGES = "docker"
_WITHOUT_IMAGES = "bubblewrap"


@dataclass(frozen=True)
class Site:
    """A sandbox and a target that fit together.

    Attributes:
        sandbox: Where processes run.
        target: Hardware and tool chain.
        hardware: The target without its tool chain.
        images: The image lock, where the tool chain comes in images.
    """

    sandbox: Sandbox
    target: Target
    hardware: Hardware
    images: ImageLockRecord | None = None

    def for_program(self, program: str | None) -> Site:
        """Return the site for an agent whose program is installed in an image of its own.

        Raises:
            InfrastructureError: That image was not built.
        """
        if self.images is None or program is None:
            return self
        return _with_images(self.hardware, self.images, program)


def choose(sandbox_name: str, target_name: str, *, needs_service: bool = False) -> Site:
    """Return the site that the user asked for.

    Args:
        sandbox_name: A registered sandbox, or ``auto``: containers where a daemon answers and images of the target were
            built; else bubblewrap, but only for agents that need no model service.
        target_name: A registered target, or ``auto``.
        needs_service: Whether an agent of the run needs a model service.

    Raises:
        UserError: A name is not registered.
        InfrastructureError: The sandbox or the target cannot be used here.
    """
    if sandbox_name == sandbox.AUTO:
        hardware = targets.present(target_name)
        usable = image_lock.path(hardware.name).is_file() and sandbox.is_usable(_WITH_IMAGES)
        if not usable and needs_service:
            raise InfrastructureError(
                "--sandbox auto: an agent that talks to a model service runs in containers, and no Docker daemon with "
                f"images of target {hardware.name.value} was found; start one and run `akarena build`, or choose "
                f"--sandbox {_WITHOUT_IMAGES}"
            )
        sandbox_name = _WITH_IMAGES if usable else _WITHOUT_IMAGES
    if sandbox_name == _WITH_IMAGES:
        hardware = targets.present(target_name)
        return _with_images(hardware, image_lock.load(hardware.name), None)
    box = sandbox.get(sandbox_name)
    target = targets.get(target_name)
    return Site(box, target, target)


def _with_images(hardware: Hardware, lock: ImageLockRecord, program: str | None) -> Site:
    # Imported here: it needs the Docker SDK.
    from akarena.sandbox.docker import DockerSandbox
    from akarena.sandbox.docker.images import Image, Images

    found = {role: image_of(lock, role, program) for role in Role}
    images = Images({role: Image(image.id, image.facts.python.bare_executable) for role, image in found.items()})
    box = DockerSandbox(images)
    # A daemon or an image that is gone is told now, before anything is started.
    box.facts()
    return Site(box, ImageTarget(hardware, lock, program), hardware, lock)
