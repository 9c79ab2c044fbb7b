"""Something failed that is not the candidate's own work: was it the candidate that broke it?

Baseline and judge share the device with the candidate, which can take its memory or keep it busy. Whatever fails beside
the candidate is looked at again when the candidate is dead: what then still fails is a fault of the task or of the
device, and void; what then works was the candidate's doing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import torch

from akarena.judge.gates import Stop
from akarena.judge.idle import IdleProbe
from akarena.judge.side import Side
from akarena.judge.workers import NotCapturableError, WorkerFaultError
from akarena.records.evaluation import FailReason, Gate, Round, VoidReason
from akarena.records.task import Value

_MOST_MEMORY_SHARE = 0.125
"""Share of the device's memory that a candidate holds at most without being blamed when the judge finds none."""
_SETTLE_SECONDS = 20.0
"""What a dead candidate had launched may run on for some time."""
_PAUSE_SECONDS = 0.2
NOT_CAPTURABLE = Stop(
    Gate.SCOPE, VoidReason.BASELINE_FAILED, "the baseline cannot be recorded into a graph, so its time means little"
)


class StoppedError(Exception):
    """The judgement cannot go on."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.evidence)
        self.stop = stop


class Blame:
    """Finds out who is to blame; the candidate is dead afterwards.

    Args:
        baseline: The baseline, which worked before the candidate was loaded.
        candidate: The candidate.
    """

    def __init__(self, baseline: Side, candidate: Side) -> None:
        self._baseline = baseline
        self._candidate = candidate

    def for_busy(self, probe: IdleProbe) -> None:
        """Wait until the device is idle without the candidate.

        Raises:
            StoppedError: It stays busy, so somebody else uses it.
        """
        self._candidate.worker.stop()
        end = time.monotonic() + _SETTLE_SECONDS
        while (busy := probe.busy_now()) is not None:
            if time.monotonic() > end:
                raise StoppedError(Stop(Gate.SCOPE, VoidReason.DEVICE_NOT_IDLE, busy))
            time.sleep(_PAUSE_SECONDS)

    def for_memory(self, error: torch.OutOfMemoryError) -> WorkerFaultError:
        """Say that the candidate took the memory that the judge lacks.

        Raises:
            torch.OutOfMemoryError: It held little, so the device is too small for this task.
        """
        before, total = torch.cuda.mem_get_info()
        self._candidate.worker.stop()
        held = torch.cuda.mem_get_info()[0] - before
        if held < _MOST_MEMORY_SHARE * total:
            raise error
        text = f"it held {held / 1e9:.1f} GB of the device's memory, and the judge found none: {error}"
        return WorkerFaultError(FailReason.DEVICE_MEMORY_TAKEN, text)

    def for_baseline(
        self, error: WorkerFaultError | NotCapturableError, values: Mapping[str, Value]
    ) -> WorkerFaultError:
        """Say that the candidate broke the baseline, which works again in a process of its own.

        Raises:
            StoppedError: It fails without the candidate, too.
        """
        self._candidate.worker.stop()
        self._baseline.worker.stop()
        try:
            self._baseline.start()
            self._baseline.answer(values, Round.ORDINARY, first=True)
            self._baseline.worker.capture(1, self._baseline.job.call_seconds)
        except NotCapturableError:
            raise StoppedError(NOT_CAPTURABLE) from None
        except WorkerFaultError as fault:
            raise StoppedError(Stop(Gate.SCOPE, VoidReason.BASELINE_FAILED, f"baseline: {fault}")) from None
        said = str(error) or "it could not be recorded into a graph"
        return WorkerFaultError(FailReason.BASELINE_BROKEN, f"the baseline failed only beside it: {said}")
