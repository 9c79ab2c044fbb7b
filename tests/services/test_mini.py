"""The real mini-swe-agent in a sandbox, through the forwarder and the gateway, against the stand-in service.

It is not part of the project: ``pip install mini-swe-agent`` into an environment of its own, with the ``bin`` folder of
that on the PATH.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, SOFTMAX, Cli, attempt, record
from tests.services import StandIn, ToolCall, Turn

pytestmark = pytest.mark.mini

KEY = "sk-secret-91cd-for-the-service"
AGENT = "openai-compatible"
MODEL = "some-lab/some-model:35b"
SOLUTION = (ROOT / "tasks" / SOFTMAX / "solution" / "kernel.hip").read_text("utf-8")
END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def shell(text: str) -> ToolCall:
    return ToolCall("bash", {"command": text})


def evaluate(cli: Cli, run_id: str, *script: Turn, further: tuple[str, ...] = ()) -> tuple[Path, StandIn]:
    """Let it work on a task through the whole command line; returns its try."""
    if shutil.which("mini-swe-agent") is None:
        pytest.skip("mini-swe-agent is not installed (pip install mini-swe-agent)")
    with StandIn(*script) as service:
        run = cli.evaluate(
            *(run_id, "--agent", AGENT, "--model", MODEL, "--sandbox", "bubblewrap", "--service-url", service.url),
            *("--tasks", SOFTMAX, *further),
        )
    assert [path for path in run.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == []
    return attempt(run, SOFTMAX, AGENT), service


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line, with a folder for the runs of one test."""
    monkeypatch.setenv("TEST_SERVICE_KEY", KEY)
    return Cli(tmp_path)


def test_it_solves_a_task(cli: Cli) -> None:
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
    )
    trajectory, trial = record(folder, "trajectory.json"), record(folder, "trial.json")
    assert (trial["status"], trial["seen"]["state"], trial["unseen"]["state"]) == ("judged", "correct", "correct")
    assert (trajectory["end"], trajectory["exit_code"], trajectory["complete"]) == ("finished", 0, True)
    counted = {"input": 1434, "output": 117, "cache_read": 50, "cache_write": 0, "reasoning": 7}
    assert (trajectory["tokens"], trajectory["reported_tokens"], trajectory["notes"]) == (counted, None, [])
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


def test_a_server_that_refuses_is_asked_once(cli: Cli) -> None:
    folder, service = evaluate(cli, "mini-refused", Turn(status=401, error="bad key"))
    trajectory = record(folder, "trajectory.json")
    assert (trajectory["end"], trajectory["tokens"]) == ("refused", None)
    assert len(service.conversation()) == 1


def test_what_the_gateway_refuses_is_asked_once(cli: Cli) -> None:
    further = ("--arguments", "model.model_kwargs.extra_body.guided_json=1")
    folder, service = evaluate(cli, "mini-denied", Turn(), further=further)
    trajectory = record(folder, "trajectory.json")
    assert (trajectory["end"], service.conversation()) == ("crashed", [])
    assert "guided_json: this field is not on the gateway's list" in trajectory["detail"]
    log = [json.loads(line) for line in (folder / "logs" / "gateway.jsonl").read_bytes().splitlines()]
    assert [entry["verdict"] for entry in log] == ["refused"]


def test_its_time_is_up(cli: Cli) -> None:
    slow = Turn(text="I wait.", calls=(shell("sleep 300"),))
    folder, _ = evaluate(cli, "mini-late", slow, further=("--agent-seconds", "15"))
    trajectory = record(folder, "trajectory.json")
    assert (trajectory["end"], trajectory["complete"]) == ("timed_out", False)
    assert trajectory["tokens"]["input"] == 100
    assert [step["text"] for step in trajectory["steps"]] == ["I wait.", "sleep 300"]
