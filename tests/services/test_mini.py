"""The real mini-swe-agent in both sandboxes, through the forwarder and the gateway, against the stand-in service.

It is not part of the project: ``pip install mini-swe-agent`` into an environment of its own, with the ``bin`` folder of
that on the PATH. In containers it is that of the image, which
``akarena build --target cpu --agent openai-compatible`` makes.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from akarena.agents import installed, mini_driver
from tests.e2e.conftest import ROOT, SOFTMAX, Cli, attempt, record
from tests.services import StandIn, ToolCall, Turn

KEY = "sk-secret-91cd-for-the-service"
AGENT = "openai-compatible"
MODEL = "some-lab/some-model:35b"
SOLUTION = (ROOT / "tasks" / SOFTMAX / "solution" / "kernel.hip").read_text("utf-8")
END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
NAME = "mini-swe-agent"
PRICED = "gpt-4o"
"""A model that mini-swe-agent knows a price of: 2.5 dollars for a million tokens of a prompt."""


def shell(text: str) -> ToolCall:
    return ToolCall("bash", {"command": text})


def needed() -> None:
    """Skip the test where the program is not there."""
    if shutil.which(NAME) is None:
        pytest.skip(f"{NAME} is not installed (pip install {NAME})")


def evaluate(
    cli: Cli,
    run_id: str,
    *script: Turn,
    further: tuple[str, ...] = (),
    sandbox: str = "bubblewrap",
    model: str = MODEL,
    first: tuple[Turn, ...] = (),
) -> tuple[Path, StandIn]:
    """Let it work on a task through the whole command line; returns its try."""
    if sandbox == "bubblewrap":
        needed()
    with StandIn(*script, first=first) as service:
        run = cli.evaluate(
            *(run_id, "--agent", AGENT, "--model", model, "--sandbox", sandbox, "--service-url", service.url),
            *("--tasks", SOFTMAX, *further),
        )
    assert [path for path in run.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == []
    return attempt(run, SOFTMAX, AGENT), service


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line, with a folder for the runs of one test."""
    monkeypatch.setenv("TEST_SERVICE_KEY", KEY)
    return Cli(tmp_path)


@pytest.mark.parametrize(
    "sandbox",
    [pytest.param("bubblewrap", marks=pytest.mark.mini), pytest.param("docker", marks=pytest.mark.docker)],
)
def test_it_solves_a_task(sandbox: str, cli: Cli) -> None:
    further = ("--effort", "high", "--service-key", "TEST_SERVICE_KEY")
    write = f"cat > kernel.hip <<'END'\n{SOLUTION}\nEND"
    folder, service = evaluate(
        cli,
        "mini-solves",
        Turn(text="I look.", calls=(shell("env | sort; exit 3"),), cache_read_tokens=50, reasoning_tokens=7),
        Turn(text="I write and check.", calls=(shell(write), shell("python3 /akarena/check")), input_tokens=1234),
        # Two results have come back, so that this turn is asked for; the one before it is not.
        Turn(text="never said"),
        Turn(text="I am done.", calls=(shell(f"{END}; echo solved"),), output_tokens=77),
        further=further,
        sandbox=sandbox,
    )
    trajectory, trial = record(folder, "trajectory.json"), record(folder, "trial.json")
    assert (trial["status"], trial["seen"]["state"], trial["unseen"]["state"]) == ("judged", "correct", "correct")
    assert (trajectory["end"], trajectory["exit_code"], trajectory["complete"]) == ("finished", 0, True)
    counted = {"input": 1434, "output": 117, "cache_read": 50, "cache_write": 0, "reasoning": 7}
    assert (trajectory["tokens"], trajectory["reported_tokens"], trajectory["notes"]) == (counted, None, [])
    (candidate,) = (folder / "candidate").glob("kernel.*")
    assert candidate.read_text("utf-8") == f"{SOLUTION}\n"
    assert (trajectory["cost"], trajectory["check_calls"]) == (None, 1)

    asked = [request.json for request in service.conversation()]
    assert [(body["model"], body["reasoning_effort"]) for body in asked] == [(MODEL, "high")] * 3
    assert {request.headers["authorization"] for request in service.conversation()} == {f"Bearer {KEY}"}
    assert "/akarena/check" in json.dumps(asked[0]["messages"][1]), "the prompt arrived"
    assert [message["role"] for message in asked[2]["messages"]][2:] == [
        "assistant",
        "tool",
        "assistant",
        "tool",
        "tool",
    ]

    steps = [step for step in trajectory["steps"] if step["kind"] == "tool_call"]
    look, wrote, check, end = steps
    assert {step["tool"] for step in steps} == {"bash"}
    assert look["result"].startswith("exit code 3\n")
    assert "\nHOME=/home" in look["result"]
    assert "MSWEA" not in look["result"]
    assert wrote["text"] == write
    assert "19 calls left" in check["result"]
    assert END in end["text"]
    messages = [step["text"] for step in trajectory["steps"] if step["kind"] == "message"]
    assert messages == ["I look.", "I write and check.", "I am done.", "solved\n"]
    seconds = [step["seconds"] for step in steps]
    assert seconds == sorted(seconds)
    assert 0 < seconds[1] < seconds[2] < seconds[3] < trajectory["seconds"], "a result has the time of its own call"


@pytest.mark.mini
def test_answers_without_a_command_end_it(cli: Cli) -> None:
    folder, service = evaluate(cli, "mini-talks", Turn(text="The kernel is fast enough."))
    trajectory, trial = record(folder, "trajectory.json"), record(folder, "trial.json")
    assert (trajectory["end"], trajectory["complete"], trial["status"]) == ("crashed", True, "unchanged")
    assert trajectory["detail"] == "RepeatedFormatError"
    assert len(service.conversation()) == 3, "its own rule: three in a row"
    texts = [step["text"] for step in trajectory["steps"]]
    assert texts[0] == "The kernel is fast enough."
    assert "No tool calls found in the response" in texts[1]
    assert trajectory["tokens"]["input"] == 300


@pytest.mark.mini
def test_a_server_that_refuses_is_asked_once(cli: Cli) -> None:
    folder, service = evaluate(cli, "mini-refused", Turn(status=401, error="bad key"))
    trajectory, trial = record(folder, "trajectory.json"), record(folder, "trial.json")
    assert (trajectory["end"], trajectory["tokens"], trial["status"]) == ("refused", None, "void")
    assert len(service.conversation()) == int(folder.name.removeprefix("t")) > 1, "once in each of its tries"


@pytest.mark.mini
def test_what_the_gateway_refuses_is_asked_once(cli: Cli) -> None:
    further = ("--arguments", "model.model_kwargs.extra_body.guided_json=1")
    folder, service = evaluate(cli, "mini-denied", Turn(), further=further)
    trajectory = record(folder, "trajectory.json")
    assert (trajectory["end"], service.conversation()) == ("crashed", [])
    assert "guided_json: this field is not on the gateway's list" in trajectory["detail"]
    log = [json.loads(line) for line in (folder / "logs" / "gateway.jsonl").read_bytes().splitlines()]
    assert [entry["verdict"] for entry in log] == ["refused"]


@pytest.mark.mini
def test_its_time_is_up(cli: Cli) -> None:
    slow = Turn(text="I wait.", calls=(shell("sleep 300"),))
    folder, _ = evaluate(cli, "mini-late", slow, further=("--agent-seconds", "15"))
    trajectory = record(folder, "trajectory.json")
    assert (trajectory["end"], trajectory["complete"]) == ("timed_out", False)
    assert trajectory["tokens"]["input"] == 100
    assert [step["text"] for step in trajectory["steps"]] == ["I wait.", "sleep 300"]


@pytest.mark.mini
def test_no_limit_of_its_own_ends_it(cli: Cli) -> None:
    steps = 25
    # By the prices that come with mini-swe-agent this is far more than the 3 dollars at which it ends by itself.
    busy = [
        Turn(text=f"step {number}", calls=(shell("true"),), input_tokens=400_000 + number) for number in range(steps)
    ]
    folder, service = evaluate(
        cli,
        "mini-long",
        *busy,
        Turn(text="over", calls=(shell(END),)),
        model=PRICED,
        # It asks again after a failure, and the step is not lost.
        first=(Turn(status=500, error="try later"),),
    )
    trajectory = record(folder, "trajectory.json")
    assert (trajectory["end"], trajectory["complete"], trajectory["exit_code"]) == ("finished", True, 0)
    assert trajectory["tokens"]["input"] == sum(turn.input_tokens for turn in busy) + 100
    assert len(service.conversation()) == steps + 2


@pytest.mark.mini
@pytest.mark.parametrize(
    ("further", "asked", "decider"),
    [
        (("--arguments", "agent.step_limit=2"), 2, "the agent's own words"),
        (("--arguments", "agent.cost_limit=0.5"), 2, "the agent's own words"),
        (("--token-budget", "150000"), 1, "the gateway"),
    ],
)
def test_a_limit_that_the_user_sets_holds(further: tuple[str, ...], asked: int, decider: str, cli: Cli) -> None:
    turn = Turn(text="on", calls=(shell("true"),), input_tokens=140_000)
    folder, service = evaluate(cli, "mini-limited", turn, further=further, model=PRICED)
    trajectory = record(folder, "trajectory.json")
    assert (trajectory["end"], trajectory["complete"]) == ("out_of_budget", True)
    assert len(service.conversation()) == asked
    log = [json.loads(line) for line in (folder / "logs" / "gateway.jsonl").read_bytes().splitlines()]
    assert [entry["verdict"] for entry in log] == ["allowed"] * asked + ["out_of_budget"] * (decider == "the gateway")


def drive(url: str, model: str, folder: Path, *settings: str, **environment: str) -> tuple[int, list[dict[str, Any]]]:
    """Run the driver alone, without a sandbox; returns its exit code and its events."""
    needed()
    found = installed.find_python(NAME)
    assert found is not None
    done = subprocess.run(
        [*_outside(found), "-I", mini_driver.__file__, model, *settings],
        input=b"do it",
        capture_output=True,
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "placeholder",
            **environment,
        },
        timeout=120,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def _outside(found: installed.Installed) -> list[str]:
    """Return the interpreter where it lies on this machine: the mount whose place in a sandbox its path begins with."""
    inside = Path(found.path)
    (mount,) = (mount for mount in found.mounts if inside.is_relative_to(mount.target))
    return [str(mount.source / inside.relative_to(mount.target))]


@pytest.mark.mini
@pytest.mark.parametrize("model", ["some-lab/some-model:35b", "openai/gpt-oss-120b", "ollama/llama:8b"])
def test_the_name_of_the_model_goes_out_as_it_was_given(model: str, tmp_path: Path) -> None:
    with StandIn(Turn(calls=(shell(END),))) as service:
        code, events = drive(service.url, model, tmp_path, "")
    assert [(seen.path, seen.json["model"]) for seen in service.conversation()] == [("/v1/chat/completions", model)]
    assert "reasoning_effort" not in service.conversation()[0].json
    assert (code, events[-1]["type"], events[-1]["status"]) == (0, "result", "Submitted")


@pytest.mark.mini
def test_a_server_that_is_down_is_told_after_some_tries(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    code, events = drive(url, MODEL, tmp_path, "", MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT="2")
    assert (code, [event["type"] for event in events]) == (1, ["result"])
    assert "Connection error" in events[0]["error"]


@pytest.mark.parametrize(
    ("further", "missing"),
    [(("--service-url", "http://127.0.0.1:8000"), "--model"), (("--model", "some/model:8b"), "--service-url")],
)
def test_it_needs_a_model_and_an_address(
    further: tuple[str, ...], missing: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = cli.folder / "bin"
    folder.mkdir()
    script = folder / NAME
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    done = cli("evaluate", "--target", "cpu", "--sandbox", "bubblewrap", "--tasks", SOFTMAX, "--agent", AGENT, *further)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert done.told[0].startswith(f"akarena: agent {AGENT}: expected {missing}, ")
    assert not cli.runs.exists()
