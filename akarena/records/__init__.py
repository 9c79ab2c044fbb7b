"""Every on-disk record as a type. Nothing here reads, writes or decides."""

from akarena.records.audit import AuditRecord
from akarena.records.base import SCHEMA_VERSION, Part, Record
from akarena.records.evaluation import CheckRecord, EvaluationRecord, SamplesRecord
from akarena.records.image import ImageLockRecord
from akarena.records.inspection import InspectionRecord
from akarena.records.run import AgentsRecord, EventRecord, LockRecord, ManifestRecord, SeedRecord
from akarena.records.task import TaskRecord
from akarena.records.trial import AttemptRecord, TrajectoryRecord, TrialRecord

ALL = (
    AgentsRecord,
    AttemptRecord,
    AuditRecord,
    CheckRecord,
    EvaluationRecord,
    EventRecord,
    ImageLockRecord,
    InspectionRecord,
    LockRecord,
    ManifestRecord,
    SamplesRecord,
    SeedRecord,
    TaskRecord,
    TrajectoryRecord,
    TrialRecord,
)
"""Every kind of record, by name. The report's own record is added by ``akarena.schemas``."""

__all__ = [
    "ALL",
    "SCHEMA_VERSION",
    "AgentsRecord",
    "AttemptRecord",
    "AuditRecord",
    "CheckRecord",
    "EvaluationRecord",
    "EventRecord",
    "ImageLockRecord",
    "InspectionRecord",
    "LockRecord",
    "ManifestRecord",
    "Part",
    "Record",
    "SamplesRecord",
    "SeedRecord",
    "TaskRecord",
    "TrajectoryRecord",
    "TrialRecord",
]
