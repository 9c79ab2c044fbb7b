"""What an inspection says, made fit to be read. It is evidence for a person, and a hostile source can forge it."""

from __future__ import annotations

from collections.abc import Sequence

from akarena.records.inspection import Compiled, InspectionRecord, KernelResources, Outcome
from akarena.records.report_trial import CompiledFor, Inspected, InspectedSide
from akarena.report.text import line

_MOST_NAMES = 2
_MOST_GPUS = 8


def inspected(record: InspectionRecord) -> Inspected:
    """Sum up an inspection: for each side and GPU the most that any kernel uses."""
    return Inspected(baseline=_side(record.baseline), candidate=_side(record.candidate))


def _side(outcome: Outcome) -> InspectedSide:
    if not isinstance(outcome, Compiled):
        return InspectedSide(state=outcome.status, reason=line(outcome.reason), gpus=(), kernels_left_out=0)
    architectures = sorted({kernel.architecture for kernel in outcome.kernels})[:_MOST_GPUS]
    return InspectedSide(
        state=outcome.status,
        reason="",
        gpus=tuple(_gpu(name, [one for one in outcome.kernels if one.architecture == name]) for name in architectures),
        kernels_left_out=outcome.kernels_left_out,
    )


def _gpu(architecture: str, kernels: Sequence[KernelResources]) -> CompiledFor:
    worst = sorted(kernels, key=lambda one: (-one.vgpr_spill_count - one.sgpr_spill_count, -one.vgpr_count, one.name))
    return CompiledFor(
        architecture=architecture,
        kernels=len(kernels),
        named=tuple(line(kernel.name, 60) for kernel in worst[:_MOST_NAMES]),
        vgprs=max(kernel.vgpr_count for kernel in kernels),
        agprs=max(kernel.agpr_count for kernel in kernels),
        sgprs=max(kernel.sgpr_count for kernel in kernels),
        vgpr_spills=max(kernel.vgpr_spill_count for kernel in kernels),
        sgpr_spills=max(kernel.sgpr_spill_count for kernel in kernels),
        lds_bytes=max(kernel.lds_bytes for kernel in kernels),
        scratch_bytes=max(kernel.scratch_bytes for kernel in kernels),
        largest_workgroup=max(kernel.max_flat_workgroup_size for kernel in kernels),
    )
