"""What is known of a compiled kernel, and the outcome of compiling one source for one architecture."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Launch:
    """How the host function launched a Triton kernel.

    Attributes:
        num_warps: Waves in a workgroup.
        num_stages: Stages of software pipelining.
        constants: The compile-time arguments, as text.
        autotune_configs: Configurations that an autotuner would have tried; only the first was compiled. 1 without one.
        launches: How often this compiled kernel was launched.
    """

    num_warps: int
    num_stages: int
    constants: dict[str, str]
    autotune_configs: int
    launches: int


@dataclass(frozen=True)
class KernelResources:
    """What one kernel uses, as its code object states it.

    Attributes:
        name: The symbol of the kernel, mangled in HIP.
        architecture: Such as ``gfx942``.
        vgpr_count: Vector registers of a lane, accumulation registers included.
        agpr_count: Accumulation registers of a lane.
        sgpr_count: Scalar registers of a wave.
        vgpr_spill_count: Vector registers that went to memory.
        sgpr_spill_count: Scalar registers that went to memory or to lanes of a vector register.
        lds_bytes: LDS of one workgroup, in bytes; in HIP without what the launch adds (``extern __shared__``).
        scratch_bytes: Private memory of one lane, in bytes.
        max_flat_workgroup_size: The largest workgroup, in lanes, that the kernel was compiled for.
        launch: For a Triton kernel, how it was launched.
    """

    name: str
    architecture: str
    vgpr_count: int
    agpr_count: int
    sgpr_count: int
    vgpr_spill_count: int
    sgpr_spill_count: int
    lds_bytes: int
    scratch_bytes: int
    max_flat_workgroup_size: int
    launch: Launch | None = None


@dataclass(frozen=True)
class Compiled:
    """The outcome for one architecture.

    Attributes:
        reason: Why it failed, in one line; ``None`` when it compiled.
        log: What the compiler said, bounded.
        kernels: Every kernel whose code object could be read, also when a later one failed.
        code_objects: The files that were written.
    """

    reason: str | None
    log: str
    kernels: list[KernelResources] = field(default_factory=list)
    code_objects: list[Path] = field(default_factory=list)
