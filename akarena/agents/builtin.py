"""Two controls: ``solution`` shows that a task can be won, ``nop`` that it is not won by doing nothing."""

from __future__ import annotations

import shutil

from akarena.agents.base import Assignment, Outcome
from akarena.records.run import AgentConfiguration
from akarena.records.trial import AgentEnd, Step, StepKind


class SolutionAgent:
    """Hands in the task's own solution."""

    name = "solution"
    summary = "hands in the task's own optimised answer; a control"
    program = None
    takes = frozenset[str]()
    service = None

    def problems(self, configuration: AgentConfiguration) -> list[str]:
        """Nothing can be missing."""
        return []

    def work(self, assignment: Assignment) -> Outcome:
        """Copy the solution into the workspace."""
        for name in assignment.task.record.editable:
            source = assignment.task.solution_folder / name
            if not source.is_file():
                return Outcome(AgentEnd.CRASHED, detail=f"the task has no solution/{name}")
            shutil.copyfile(source, assignment.workspace / name)
        step = Step(kind=StepKind.MESSAGE, seconds=0.0, text="copied the task's own solution")
        return Outcome(AgentEnd.FINISHED, steps=(step,))


class NopAgent:
    """Leaves everything as it is."""

    name = "nop"
    summary = "changes nothing; a control"
    program = None
    takes = frozenset[str]()
    service = None

    def problems(self, configuration: AgentConfiguration) -> list[str]:
        """Nothing can be missing."""
        return []

    def work(self, assignment: Assignment) -> Outcome:
        """Do nothing."""
        return Outcome(AgentEnd.FINISHED)
