"""A target whose tool chain lies in container images: the hardware of this machine, the programs of an image lock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from akarena.errors import InfrastructureError
from akarena.images import lock as image_lock
from akarena.records.image import Image, ImageFacts, ImageLockRecord, ImageRole
from akarena.sandbox.base import Mount, Role
from akarena.targets import host
from akarena.targets.base import BuildRecipe, Device, DeviceFacts, EntryKind, Fp8, Hardware, Provision, Python

_IMAGE_OF = {
    Role.JUDGE: ImageRole.JUDGE,
    Role.BUILD: ImageRole.JUDGE,
    Role.WORKER: ImageRole.WORKER,
    Role.AGENT: ImageRole.AGENT,
}


def image_of(lock: ImageLockRecord, role: Role, program: str | None) -> Image:
    """Return the image that processes of a role run in.

    Args:
        lock: The images of the target.
        role: What the process is for.
        program: Whose program an agent's image must hold; None for one without any.

    Raises:
        InfrastructureError: It was not built.
    """
    return image_lock.find(lock, _IMAGE_OF[role], program if role is Role.AGENT else None)


@dataclass(frozen=True)
class ImagePython:
    """The interpreters of an image. Nothing has to be mounted for them."""

    executable: str
    bare_executable: str
    folders: tuple[str, ...]

    def argv(self, code: str) -> tuple[str, ...]:
        """Return the command that runs ``code`` with all packages and our own code importable."""
        return host.with_packages(self.executable, self.folders, code)

    def bare_argv(self, code: str) -> tuple[str, ...]:
        """Return the command that runs ``code`` with the standard library and our own code importable."""
        return host.bare(self.bare_executable, code)

    def bare_mounts(self, empty: Path) -> tuple[Mount, ...]:
        """Return nothing: the image has it all."""
        return ()


class ImageTarget:
    """Hardware with the tool chain of its images.

    Args:
        hardware: The target itself.
        lock: Its images.
        program: Whose program the agent's image holds; None for an image without any.
    """

    def __init__(self, hardware: Hardware, lock: ImageLockRecord, program: str | None = None) -> None:
        self._hardware = hardware
        self._lock = lock
        self._program = program
        self.name = hardware.name
        self.measures_speed = hardware.measures_speed

    def _facts_of(self, role: Role) -> ImageFacts:
        return image_of(self._lock, role, self._program).facts

    def missing_device(self) -> list[str]:
        """Return what this machine lacks to have the device."""
        return self._hardware.missing_device()

    def missing(self) -> list[str]:
        """Return the same: the rest is in the images."""
        return self.missing_device()

    def device(self) -> Device:
        """Describe the device."""
        return self._hardware.device()

    def device_nodes(self) -> tuple[Mount, ...]:
        """Return the nodes of the device."""
        return self._hardware.device_nodes()

    def settings(self) -> dict[str, str]:
        """Return environment variables of every process that uses the device."""
        return self._hardware.settings()

    def facts(self) -> DeviceFacts:
        """Return the device, and the compiler of the image that builds."""
        compiler = self._facts_of(Role.BUILD).compiler
        return host.facts(self.device(), compiler.version if compiler else "none")

    def python(self, role: Role) -> Python:
        """Return the interpreters of a role's image."""
        found = self._facts_of(role).python
        return ImagePython(
            found.executable or found.bare_executable, found.bare_executable, tuple(found.package_folders)
        )

    def compile(self, compiler: str, python: str, source: str) -> BuildRecipe:
        """Return how a file is built."""
        return self._hardware.compile(compiler, python, source)

    def build(self, source: str) -> BuildRecipe:
        """Build with the compiler of the image."""
        facts = self._facts_of(Role.BUILD)
        if facts.compiler is None:
            raise InfrastructureError(f"the image for builds on target {self.name.value} has no compiler")
        return self.compile(facts.compiler.path, facts.python.bare_executable, source)

    def native_worker(self) -> Provision:
        """Return the device; everything else is in the worker's image."""
        return Provision(self.device_nodes(), {**self.settings(), **self._runtime(Role.WORKER)})

    def torch_process(self) -> Provision:
        """Return the device; everything else is in the images."""
        facts = self._facts_of(Role.JUDGE)
        folders = [str(Path(facts.compiler.path).parent)] if facts.compiler else []
        folders += [folder for folder in host.PLAIN["PATH"].split(":") if folder not in folders]
        environment = {**self.settings(), **self._runtime(Role.JUDGE), "PATH": ":".join(folders)}
        return Provision(self.device_nodes(), environment)

    def _runtime(self, role: Role) -> dict[str, str]:
        runtime = self._facts_of(role).runtime
        return host.runtime_environment(runtime.library, runtime.prefix) if runtime else {}

    def fp8_dtype(self) -> Fp8:
        """Return the name of torch's dtype that ``fp8`` means here."""
        return self._hardware.fp8_dtype()

    def is_verified(self, kind: EntryKind, dtypes: frozenset[str]) -> bool:
        """Say whether a result with these dtypes can be trusted here."""
        return self._hardware.is_verified(kind, dtypes)
