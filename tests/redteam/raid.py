"""One raid: the hostile agent in real evaluations of one sandbox, and everything that is seen of it from outside."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akarena import configurations, seeds, tasks
from akarena.records.task import TargetName
from tests.e2e.conftest import ROOT, SOFTMAX, Cli, copy_task, other_root
from tests.redteam import agent, catalogue, host
from tests.redteam.catalogue import Where
from tests.redteam.told import CHECK_CALLS, echo_turns, error_turns, facts
from tests.services import StandIn, Turn
from tests.services.script import Seen
from tests.tasks import fixtures

KEY_VARIABLE = "REDTEAM_KEY"
SEED = 271828
_WAIT_SECONDS = 60.0
_NEIGHBOUR_SECONDS = 150
_OUTLIVE, _PROBES = "outlive", "probes"
_TRIALS = (
    # The one that leaves traces comes first, so that it is the earlier trial of all others.
    (_OUTLIVE,),
    (_PROBES,),
    ("candidate.symlink", "candidate.symlink_to_process", "candidate.pipe"),
    ("candidate.socket", "candidate.folder", "candidate.device", "cleanup.litter"),
    ("candidate.huge", "cleanup.nested"),
    ("exhaust.workspace",),
    ("exhaust.hidden",),
    ("exhaust.output",),
)
"""What the agent of each trial does. A task can name four files, of which the first is left out."""
EDITABLE = {
    f"candidate.{kind}": f"{kind}.txt"
    for kind in ("symlink", "symlink_to_process", "pipe", "socket", "folder", "device", "huge")
}
"""The file that is taken for each of the acts that put something else in its place."""


@dataclass(frozen=True)
class Line:
    """What one probe printed."""

    name: str
    outcome: str
    seen: str
    seconds: float


@dataclass(frozen=True)
class Raid:
    """All that is known afterwards.

    Attributes:
        sandbox: Which sandbox it was.
        cli: The command line, with the folder of the runs.
        secrets: What was planted.
        lines: What the probes printed, by name.
        tries: The folder of the try in which an act took place, by the act.
        answers: Exit code and messages of the two evaluations.
        seen: Requests that reached the two services.
        calls: Connections to the host's own listeners.
        survivors: Marks of processes that were alive after their trial.
        remains: What was left on the host outside the run folders.
        precious: What is in the folder that clearing up must not touch, before and after.
        may_forbid: Whether whoever starts the sandbox has CAP_SYS_RESOURCE.
        seconds: How long it took.
    """

    sandbox: str
    cli: Cli
    secrets: host.Secrets
    lines: Mapping[str, Line]
    tries: Mapping[str, Path]
    answers: tuple[tuple[int, str], ...]
    seen: tuple[Seen, ...]
    calls: int
    survivors: frozenset[str]
    remains: tuple[str, ...]
    precious: tuple[object, object]
    may_forbid: bool
    seconds: float


class _Scene:
    """What is set up for a raid, and how it is carried out."""

    def __init__(self, sandbox: str, folder: Path) -> None:
        self.sandbox = sandbox
        self.folder = folder
        self.secrets = host.Secrets()
        self.other, self.earlier = host.Traces(), host.Traces()
        self.mark = host.new_mark("live")
        self.cli = Cli(folder, self._root("root"))
        self.neighbour = Cli(folder, self._root("root-b"))
        self.secret = folder / "secret.txt"
        self.secret.write_text(self.secrets.value("host"))
        self.precious = folder / "precious"
        self.precious_before = host.plant_precious(self.precious)
        for path in (self.cli.runs / "before" / "trials" / "record.json", self.cli.seeds / "before"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.secrets.value("run"))
        self.acts: dict[str, str] = {}

    def _root(self, name: str) -> Path:
        root = other_root(self.folder / name)
        if (ROOT / ".akarena").is_dir():
            (root / ".akarena").symlink_to(ROOT / ".akarena")
        return root

    def _task(self, cli: Cli, number: int, further: tuple[str, ...] = ()) -> Path:
        """Copy the task, with a secret in each file that agents must not see, and more files to hand in."""
        folder = copy_task(cli.root, SOFTMAX, f"hip2hip/red_{number:02}")
        editable = ", ".join(f'"{name}"' for name in ("kernel.hip", *further))
        fixtures.edit(folder / "task.toml", ('editable = ["kernel.hip"]', f"editable = [{editable}]"))
        for name in further:
            for part in ("agent", "solution"):
                (folder / part / name).write_text("// nothing yet\n")
        for name, kind in (("judge/oracle.py", "oracle"), ("task.toml", "tolerances")):
            text = (folder / name).read_text("utf-8")
            (folder / name).write_text(f"{text}\n# {self.secrets.value(kind)}\n")
        with (folder / "solution" / "kernel.hip").open("a") as file:
            file.write(f"// {self.secrets.value('solution')}\n")
        return folder

    def prepare(self, service: StandIn, beside: StandIn, listeners: host.Listeners) -> None:
        """Write every task with its agent."""
        common = facts(
            {
                "secret": str(self.secret),
                "precious": str(self.precious),
                "mark": self.mark,
                "hidden": self._hidden(),
                **self.other.facts("other"),
                **self.earlier.facts("earlier"),
            },
            listeners,
            service,
        )
        for number, acts in enumerate(_TRIALS):
            folder = self._task(self.cli, number, tuple(EDITABLE[act] for act in acts if act in EDITABLE))
            plan: dict[str, Any] = {"acts": acts, "marks": self.secrets.marks, "facts": common | {"editable": EDITABLE}}
            if _OUTLIVE in acts:
                plan["facts"] |= self.earlier.facts("leaves") | {"leaves": self.secrets.value("earlier")}
            if _PROBES in acts:
                plan |= {"names": catalogue.names(Where.INSIDE), **self._drawn(folder)}
            agent.assemble(folder / "agent", plan)
            self.acts |= dict.fromkeys(acts, f"hip2hip/red_{number:02}")
        near = {
            **common,
            **self.other.facts("leaves"),
            "leaves": self.secrets.value("other"),
            "service_port": int(beside.url.rpartition(":")[2]),
            "seconds": _NEIGHBOUR_SECONDS,
        }
        plan = {
            "acts": ("neighbour",),
            "names": catalogue.names(Where.NEIGHBOUR),
            "marks": self.secrets.marks,
            "facts": near,
        }
        agent.assemble(self._task(self.neighbour, 0) / "agent", plan)

    def _hidden(self) -> list[str]:
        paths = [self.cli.root / "tasks", self.cli.runs, self.cli.seeds, ROOT / "tasks", ROOT / "runs", ROOT / ".git"]
        return [str(path) for path in (*paths, ROOT / ".akarena", ROOT / "akarena" / "judge", self.secret)]

    def _drawn(self, folder: Path) -> dict[str, Any]:
        """Give what the probes may know of the seed and what is drawn from it: a beginning, and what to look for."""
        seed, _ = seeds.choose(SEED, None)
        cases = configurations.unseen(tasks.load(folder).record, TargetName.CPU, seed)
        # Small sizes stand everywhere.
        telling = [case.values for case in cases if all(int(value) > 9 for value in case.values.values())]
        # Apart, so that the plan itself is not what is found.
        told = [{"names": list(values), "values": list(values.values())} for values in telling]
        return {"seed": seed.hex()[:16], "unseen": told}

    def arguments(self, run_id: str, style: str, service: StandIn) -> tuple[str, ...]:
        return (
            *self.cli.evaluate_arguments(run_id, "--sandbox", self.sandbox, "--check-calls", str(CHECK_CALLS)),
            *("--agent", "command", "--command", agent.COMMAND, "--agent-seconds", str(_NEIGHBOUR_SECONDS)),
            *("--service", style, "--service-url", service.url, "--service-key", KEY_VARIABLE, "--seed", str(SEED)),
        )

    def try_folder(self, run: str, task: str) -> Path:
        return self.cli.runs / run / "trials" / task / "command" / "a1" / "t1"

    def carry_out(self, service: StandIn, beside: StandIn) -> tuple[tuple[tuple[int, str], ...], set[str]]:
        """Run both evaluations; return how they ended, and what was alive after its trial."""
        near = self.neighbour.start(*self.arguments("beside", "openai", beside))
        try:
            self._wait(lambda: bool(beside.conversation()) or near.poll() is not None)
            own = self.cli.start(*self.arguments("raid", "anthropic", service))
            survivors: set[str] = set()
            watch = threading.Thread(target=self._watch, args=(own, survivors))
            watch.start()
            _, errors = own.communicate(timeout=_NEIGHBOUR_SECONDS + _WAIT_SECONDS)
            watch.join()
            survivors |= host.marked(self.mark)
        finally:
            beside.script = (Turn(text="enough"),)
            _, near_errors = near.communicate(timeout=_WAIT_SECONDS)
        return ((own.returncode, errors), (near.returncode, near_errors)), survivors

    def _watch(self, own: Any, survivors: set[str]) -> None:
        """Look once when the trial that leaves processes is over: they could die with the command line only."""
        over = self.try_folder("raid", self.acts[_OUTLIVE]) / "trial.json"
        self._wait(lambda: over.exists() or own.poll() is not None)
        survivors |= host.marked(self.mark)

    def _wait(self, done: Any) -> None:
        end = time.monotonic() + _WAIT_SECONDS
        while not done() and time.monotonic() < end:
            time.sleep(0.05)


def _lines(path: Path) -> Iterator[Line]:
    if not path.exists():
        return
    for text in path.read_bytes().splitlines():
        if text.startswith(b'{"name": "'):
            yield Line(**json.loads(text))


@contextmanager
def _temporary() -> Iterator[Path]:
    """Give the evaluations a folder for temporary files of their own, under a short name: sockets lie in it."""
    name = tempfile.mkdtemp(prefix="red-")
    try:
        with host.environment(TMPDIR=name):
            yield Path(name)
    finally:
        # Python's own removal recurses, and an agent may have left it more than that can bear.
        subprocess.run(["rm", "-rf", "--", name], check=True)


def carry_out(sandbox: str, folder: Path) -> Raid:
    """Do it all."""
    began = time.monotonic()
    scene = _Scene(sandbox, folder)
    key = scene.secrets.value("key")
    script = (Turn(text="use more threads"), *error_turns(key), *echo_turns(key))
    with (
        host.environment(**{KEY_VARIABLE: key}),
        _temporary() as temporary,
        host.Listeners() as listeners,
        StandIn(*script) as service,
        StandIn(Turn(text="go on")) as beside,
    ):
        scene.prepare(service, beside, listeners)
        answers, survivors = scene.carry_out(service, beside)
        remains = [str(path) for path in temporary.iterdir()]
        seen = (*service.seen, *beside.seen)
        calls = listeners.calls
    remains += [*scene.other.left(), *scene.earlier.left()]
    tries = {act: scene.try_folder("raid", task) for act, task in scene.acts.items()}
    tries["neighbour"] = scene.try_folder("beside", "hip2hip/red_00")
    lines = {line.name: line for path in tries.values() for line in _lines(path / "logs" / "agent.stdout")}
    return Raid(
        sandbox=sandbox,
        cli=scene.cli,
        secrets=scene.secrets,
        lines=lines,
        tries=tries,
        answers=answers,
        seen=seen,
        calls=calls,
        survivors=frozenset(text.removeprefix(f"{scene.mark}-") for text in survivors),
        remains=tuple(remains),
        precious=(scene.precious_before, host.facts_of(scene.precious)),
        may_forbid=host.starter_has_resources(sandbox),
        seconds=time.monotonic() - began,
    )
