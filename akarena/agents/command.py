"""``command``: any program, in the sandbox, with the prompt in a file and in an environment variable."""

from __future__ import annotations

from akarena import costs
from akarena.agents import outcomes, program, way_out
from akarena.agents.base import Assignment, Outcome
from akarena.agents.program import Program
from akarena.gateway import missing_key
from akarena.records.run import AgentConfiguration
from akarena.records.trial import AgentEnd, Step, StepKind
from akarena.sandbox.base import End
from akarena.store import AUDIT_LOG


class CommandAgent:
    """Runs an argument vector that the user gave."""

    name = "command"
    summary = "runs any program in the sandbox (--command 'PROGRAM ARGUMENT ...')"
    program = None
    takes = frozenset(
        ("command", "model", "service", "service_url", "service_key", "prices", "token_budget", "usd_budget")
    )
    service = None

    def problems(self, configuration: AgentConfiguration) -> list[str]:
        """Say whether there is a command."""
        problems = []
        if not (configuration.command and configuration.command[0]):
            problems.append("--agent command needs --command 'PROGRAM ARGUMENT ...'")
        service = way_out.service_of(configuration)
        if service is not None and (missing := missing_key(service)):
            problems.append(missing)
        return problems

    def work(self, assignment: Assignment) -> Outcome:
        """Run the program to its end, or to the end of its time."""
        argv = assignment.configuration.command
        ran = program.run(assignment, Program(argv))
        result, audit = ran.result, ran.audit.get(AUDIT_LOG, b"")
        # Exit code 0 says that it has come to its end, whatever its last request was answered.
        end = outcomes.why_failed(ran) if ran.end is AgentEnd.CRASHED else ran.end
        cost, _ = costs.settled(ran.tokens, assignment.configuration.prices, None)
        lost = outcomes.seen_by_gateway(audit) if end is AgentEnd.FINISHED else None
        text = " ".join(argv)[:20000]
        step = Step(kind=StepKind.TOOL_CALL, seconds=result.wall_seconds, text=text, tool="program")
        return Outcome(
            end=end,
            exit_code=result.exit_code,
            detail=ran.detail,
            complete=result.end is End.EXITED,
            check_calls=ran.check_calls,
            steps=(step, *ran.checks),
            tokens=ran.tokens,
            cost=cost,
            notes=(f"its last request of a model ended with: {lost}",) if lost else (),
            logs={"agent.stdout": result.stdout, "agent.stderr": result.stderr, **ran.audit},
        )
