"""``inspection.json``: what baseline and candidate use when they are compiled for AMD GPUs that are not there."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from akarena.records.base import Digest, Identifier, NonNegativeInt, Part, PositiveInt, Record, TaskId
from akarena.records.evaluation import Evidence

Architecture = Annotated[str, StringConstraints(pattern=r"^gfx[0-9a-f]{3,5}$")]
Count = Annotated[int, Field(ge=0, le=2**32 - 1)]
Line = Annotated[str, Field(max_length=400)]
"""One line for a person; never parsed."""


class KernelResources(Part):
    """What one compiled kernel uses, as its code object states it."""

    name: str = Field(min_length=1, max_length=400)
    """Symbol of the kernel, mangled in HIP."""
    architecture: Architecture
    vgpr_count: Count
    """Vector registers of a lane, accumulation registers included."""
    agpr_count: Count
    """Accumulation registers of a lane."""
    sgpr_count: Count
    """Scalar registers of a wave."""
    vgpr_spill_count: Count
    """Vector registers that went to memory."""
    sgpr_spill_count: Count
    """Scalar registers that went to memory or to lanes of a vector register."""
    lds_bytes: Count
    """LDS of one workgroup; in HIP without what the launch adds."""
    scratch_bytes: Count
    """Private memory of one lane."""
    max_flat_workgroup_size: Count
    """Largest workgroup, in lanes, that the kernel was compiled for."""
    autotune_configs: PositiveInt | None
    """Triton: configurations that its autotuner chooses from, of which the first was compiled. Null in HIP."""


class Compiled(Part):
    """Every architecture has its code objects. It does not say that a kernel runs, is correct or is fast."""

    status: Literal["compiled"]
    toolchain: dict[Identifier, Line] = Field(max_length=16)
    """Versions of compiler, headers and packages, and digests of device libraries. Other versions count differently."""
    kernels: tuple[KernelResources, ...] = Field(min_length=1, max_length=1024)
    """Each kernel for each architecture."""
    kernels_left_out: NonNegativeInt
    """Kernels that did not fit into the answer."""


class Failed(Part):
    """The source does not compile for one of the architectures, or the answer about it was not usable."""

    status: Literal["failed"]
    reason: Line
    log: Evidence
    """Head and tail of what the compiler printed."""


class Unavailable(Part):
    """Nothing is known about the source: a part of the tool chain is missing, or there is nothing to compile."""

    status: Literal["unavailable"]
    reason: Line


Outcome = Annotated[Compiled | Failed | Unavailable, Field(discriminator="status")]


class InspectionRecord(Record):
    """Registers, LDS and spills of a candidate and its baseline. Evidence for a person: no gate and no score uses it.

    All its content comes from a process that compiled hostile code, and for Triton ran it. An honest source is
    described truly; a hostile one can forge every number and every text.
    """

    schema_name: ClassVar[str] = "inspection"

    schema_version: Literal[1]
    task_id: TaskId
    candidate_digest: Digest
    architectures: tuple[Architecture, ...] = Field(min_length=1, max_length=8)
    """What was compiled for."""
    baseline: Outcome
    candidate: Outcome
