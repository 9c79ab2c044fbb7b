"""The real ``claude`` and ``codex`` solve one task of each category, through the whole command line, in both sandboxes.

The model is the stand-in; everything else is real: the program, its own tools, sandbox, gateway, ``check``, judge and
report. In bubblewrap the programs are those on the PATH; in containers those of the images, which
``akarena build --target cpu --agent claude --agent codex`` makes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import ROOT, SOFTMAX, Cli, attempt, record
from tests.services import StandIn, ToolCall, Turn, openai
from tests.services.real import KEY, call, program
from tests.services.script import JsonObject, choose

RMS_NORM = "triton2triton/rms_norm"
CROSS_ENTROPY = "pytorch2hip/cross_entropy"
TASKS = (SOFTMAX, RMS_NORM, CROSS_ENTROPY)
MODELS = {"claude": "claude-opus-4-6", "codex": "gpt-5.5"}
"""Codex offers ``apply_patch`` as a tool only to models that it knows."""
COUNTS = ("input", "output", "cache_read", "cache_write", "reasoning")


def kernel_of(task: str, part: str = "agent") -> str:
    """Return a task's kernel: the one that an agent starts from, or the ``solution``."""
    (path,) = (ROOT / "tasks" / task / part).glob("kernel.*")
    return path.read_text("utf-8")


@dataclass(frozen=True)
class Change:
    """How an agent changes the kernel of one task.

    Attributes:
        calls: The tools that the model calls, one a turn.
        steps: These tools as the trajectory names them.
        text: The kernel afterwards.
    """

    calls: tuple[ToolCall, ...]
    steps: tuple[str, ...]
    text: str


OLD_LINE, NEW_LINE = {}, {}
OLD_LINE[SOFTMAX] = "        y_row[col] = expf(x_row[col] - largest) / sum;"
NEW_LINE[SOFTMAX] = "        y_row[col] = expf(x_row[col] - largest) * (1.0f / sum);"
OLD_LINE[RMS_NORM] = "    block = min(1024, triton.next_power_of_2(hidden))"
NEW_LINE[RMS_NORM] = "    block = min(2048, triton.next_power_of_2(hidden))"


def one_line(task: str) -> str:
    """Return a task's kernel with its one line changed."""
    before = kernel_of(task)
    assert before.count(OLD_LINE[task]) == 1
    return before.replace(OLD_LINE[task], NEW_LINE[task])


def patch(task: str, name: str) -> str:
    """Return the same change in the form of ``apply_patch``."""
    hunk = f"@@\n-{OLD_LINE[task]}\n+{NEW_LINE[task]}"
    return f"*** Begin Patch\n*** Update File: {name}\n{hunk}\n*** End Patch"


def here(command: str, text: str) -> str:
    """Return a command that reads a text, which ends with a line break, from a here-document."""
    return f"{command} <<'END'\n{text}END"


def changes(agent: str) -> dict[str, Change]:
    """Return how each task is done: every category with another tool."""
    shell = Change(
        (call(agent, here("cat > kernel.hip", kernel_of(CROSS_ENTROPY, "solution"))),),
        ("Bash" if agent == "claude" else "command",),
        kernel_of(CROSS_ENTROPY, "solution"),
    )
    if agent == "codex":
        by_shell = call(agent, here("apply_patch", patch(RMS_NORM, "kernel.py") + "\n"))
        by_tool = ToolCall("apply_patch", {"input": patch(SOFTMAX, "kernel.hip")})
        return {
            SOFTMAX: Change((by_tool,), ("file_change",), one_line(SOFTMAX)),
            # Codex takes this command for its own tool and starts no process.
            RMS_NORM: Change((by_shell,), ("file_change",), one_line(RMS_NORM)),
            CROSS_ENTROPY: shell,
        }
    # It changes only files that it has read.
    hip, triton = ({"file_path": f"/workspace/kernel.{ending}"} for ending in ("hip", "py"))
    edit = ToolCall("Edit", {**hip, "old_string": OLD_LINE[SOFTMAX], "new_string": NEW_LINE[SOFTMAX]})
    write = ToolCall("Write", {**triton, "content": kernel_of(RMS_NORM, "solution")})
    return {
        SOFTMAX: Change((ToolCall("Read", hip), edit), ("Read", "Edit"), one_line(SOFTMAX)),
        RMS_NORM: Change((ToolCall("Read", triton), write), ("Read", "Write"), kernel_of(RMS_NORM, "solution")),
        CROSS_ENTROPY: shell,
    }


def scripts(agent: str) -> dict[str, tuple[Turn, ...]]:
    """Return a conversation for each task. No two turns have the same numbers of tokens."""
    made = {}
    for place, (task, change) in enumerate(changes(agent).items(), start=1):
        calls = (*change.calls, call(agent, "python3 /akarena/check"))
        made[task] = tuple(
            Turn(
                text=f"step {number}",
                calls=(calls[number],) if number < len(calls) else (),
                input_tokens=1000 * place + number,
                output_tokens=100 * place + 10 * number + 7,
                cache_read_tokens=50 * place + number,
                cache_write_tokens=30 * place + number if agent == "claude" else 0,
                reasoning_tokens=3 * place + number if agent == "codex" else 0,
            )
            for number in range(len(calls) + 1)
        )
    return made


class ByTask(StandIn):
    """A stand-in with a script for each task; a request belongs to the task whose title its prompt holds.

    Tasks are worked on one after another, so the newest request is the one that is answered.
    """

    def __init__(self, by_task: dict[str, tuple[Turn, ...]]) -> None:
        self.by_task = by_task
        self._titles = {task: _title(task) for task in by_task}
        super().__init__()

    @property
    def script(self) -> tuple[Turn, ...]:
        """The script of the newest request."""
        return self.by_task.get(self.task_of(self.seen[-1].json), (Turn(text="a title"),))

    @script.setter
    def script(self, _: tuple[Turn, ...]) -> None:
        """Leave out the one script that a plain stand-in has."""

    def task_of(self, body: JsonObject) -> str:
        """Return the task that a request is about; empty for none."""
        text = json.dumps(body)
        found = [task for task, title in self._titles.items() if f"Make this GPU kernel faster: {title}" in text]
        return found[0] if len(found) == 1 else ""

    def asked(self, task: str) -> list[JsonObject]:
        """Return the requests of a task's conversation."""
        return [seen.json for seen in self.conversation() if self.task_of(seen.json) == task]

    def spent(self, task: str) -> dict[str, int]:
        """Add up the tokens of every answer that was given about a task."""
        turns = [choose(self.by_task[task], body) for body in self.asked(task)]
        return {name: sum(getattr(turn, f"{name}_tokens") for turn in turns) for name in COUNTS}


def _title(task: str) -> str:
    found = [
        line for line in (ROOT / "tasks" / task / "task.toml").read_text("utf-8").splitlines() if "title = " in line
    ]
    return str(json.loads(found[0].partition(" = ")[2]))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_SERVICE_KEY", KEY)


@pytest.fixture(autouse=True)
def patches_as_custom_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the stand-in call ``apply_patch`` as the service does: with a text, not with JSON arguments."""
    as_functions = openai._output

    def output(turn: Turn) -> list[JsonObject]:
        items = as_functions(turn)
        for item in items:
            if item.get("name") == "apply_patch":
                item |= {"type": "custom_tool_call", "input": json.loads(item.pop("arguments"))["input"]}
        return items

    monkeypatch.setattr(openai, "_output", output)


@pytest.mark.parametrize("agent", MODELS)
@pytest.mark.parametrize(
    "sandbox",
    [pytest.param("bubblewrap", marks=pytest.mark.npm), pytest.param("docker", marks=pytest.mark.docker)],
)
def test_an_agent_solves_a_task_of_each_category(agent: str, sandbox: str, tmp_path: Path) -> None:
    if sandbox == "bubblewrap":
        program(agent)
    service = ByTask(scripts(agent))
    with service:
        run = Cli(tmp_path).evaluate(
            *("solves", "--agent", agent, "--model", MODELS[agent], "--effort", "high", "--sandbox", sandbox),
            *("--service-url", service.url, "--service-key", "TEST_SERVICE_KEY", "--tasks", *TASKS),
        )
    for task in TASKS:
        check_conversation(service, task, agent)
        check_trial(attempt(run, task, agent), service, task, agent)
    for name in ("report.md", "report.html"):
        (report,) = run.glob(f"report/{name}")
        text = report.read_text("utf-8")
        assert all(task in text for task in TASKS), name
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(path.name in ("agent.stdout", "gateway.jsonl") and path.stat().st_size > 0 for path in files) == 2 * len(
        TASKS
    )
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def check_conversation(service: ByTask, task: str, agent: str) -> None:
    """Check that the model was asked once for every turn, as configured, and with the real key."""
    asked, script = service.asked(task), service.by_task[task]
    assert [choose(script, body).number for body in asked] == list(range(len(script))), f"{task}: its tools were called"
    assert {body["model"] for body in asked} == {MODELS[agent]}
    efforts = {(body["output_config"] if agent == "claude" else body["reasoning"])["effort"] for body in asked}
    assert efforts == {"high"}
    header, value = ("x-api-key", KEY) if agent == "claude" else ("authorization", f"Bearer {KEY}")
    assert {seen.headers.get(header) for seen in service.conversation()} == {value}


def check_trial(folder: Path, service: ByTask, task: str, agent: str) -> None:
    """Check what one try left: candidate, judgement, steps, tokens."""
    change, script = changes(agent)[task], service.by_task[task]
    trajectory, trial = record(folder, "trajectory.json"), record(folder, "trial.json")
    assert (trajectory["end"], trajectory["exit_code"], trajectory["complete"]) == ("finished", 0, True)
    assert (trial["status"], trial["seen"]["state"], trial["unseen"]["state"]) == ("judged", "correct", "correct")
    (candidate,) = (folder / "candidate").glob("kernel.*")
    assert candidate.read_text("utf-8") == change.text != kernel_of(task)

    calls: list[dict[str, Any]] = [step for step in trajectory["steps"] if step["kind"] == "tool_call"]
    assert [step["tool"] for step in calls] == [*change.steps, "Bash" if agent == "claude" else "command"]
    assert "/akarena/check" in calls[-1]["text"]
    assert "19 calls left" in calls[-1]["result"]
    assert trajectory["check_calls"] == 1
    assert [step["kind"] for step in trajectory["steps"]].count("check") == 1
    said = [step["text"] for step in trajectory["steps"] if step["kind"] == "message"]
    assert said == [turn.text for turn in script]
    assert 0 < calls[0]["seconds"] < calls[-1]["seconds"] < trajectory["seconds"]

    assert trajectory["tokens"] == service.spent(task)
    # Claude Code tells nothing of reasoning; the stand-in's scripts for it have none.
    assert trajectory["reported_tokens"] == service.spent(task)
    assert trajectory["notes"] == []
    cost = trajectory["cost"]
    assert cost is None if agent == "codex" else (cost["source"] == "reported" and cost["usd"] > 0)
