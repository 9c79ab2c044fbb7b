"""Three agents with two models each on three tasks, twice: interrupted again and again, compared at the end."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.conftest import SOFTMAX, Cli, copy_task, other_root, record
from tests.services import StandIn

pytestmark = pytest.mark.slow

TASKS = tuple(f"hip2hip/copy_{number}" for number in range(3))
ATTEMPTS = 2
KILLS = 5
MODELS = ("model-a", "model-b")
PRICES = {"input": 1.0, "output": 2.0, "cache_read": 0.0, "cache_write": 0.0}
# One of the tasks is solved, by one model: on the others the kernel is taken away, so that nothing has to be built.
WORK = """
import json, os, sys, time
if sys.argv[1:] == ["--version"]:
    print("fake 1.0")
    sys.exit()
model = sys.argv[sys.argv.index("--model") + 1]
time.sleep(0.3)
prompt = open(os.environ["AKARENA_PROMPT_FILE"]).read()
if not ("copy 1" in prompt and model == "model-a"):
    os.unlink("kernel.hip")
"""
CLAUDE = """
show = lambda **event: print(json.dumps(event), flush=True)
show(type="assistant", message={"id": "m", "content": [{"type": "text", "text": "I am " + model}]})
show(type="result", subtype="success", is_error=False, result="done", total_cost_usd=0.25,
     usage={"input_tokens": 10, "output_tokens": 5})
"""
CODEX = """
show = lambda **event: print(json.dumps(event), flush=True)
show(type="item.completed", item={"id": "i", "type": "agent_message", "text": "I am " + model})
show(type="turn.completed", usage={"input_tokens": 20, "cached_input_tokens": 0, "output_tokens": 6})
"""


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/usr/bin/env python3\n" + text)
    path.chmod(0o755)


def agents_file(url: str) -> str:
    lines = ["schema_version = 1"]
    for agent in ("claude", "codex", "command"):
        for model in MODELS:
            lines += ["[[agents]]", f'id = "{agent}-{model[-1]}"', f'agent = "{agent}"', f'model = "{model}"']
            lines += [f'service_url = "{url}"'] if agent != "command" else []
            if agent == "command":
                command = json.dumps(["python3", "-c", WORK, "--model", model])
                lines.append(f"command = {command}")
            if agent == "codex":
                lines.append("prices = {" + ", ".join(f"{name} = {value}" for name, value in PRICES.items()) + "}")
    return "\n".join(lines)


def attempts(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.glob("trials/*/*/*/*/attempt.json")}


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    folder = tmp_path_factory.mktemp("many")
    cli = Cli(folder, other_root(folder / "root"))
    for task in TASKS:
        copied = copy_task(cli.root, SOFTMAX, task)
        text = (copied / "task.toml").read_text("utf-8")
        name = task.rpartition("/")[2].replace("_", " ")
        (copied / "task.toml").write_text(text.replace('title = "', f'title = "{name}: ', 1))
    return cli


def test_it_survives_being_killed_anywhere(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("claude", CLAUDE), ("codex", CODEX)):
        program(cli.folder / "fake" / name, WORK + text)
    monkeypatch.setenv("PATH", str(cli.folder / "fake"), prepend=":")
    path = cli.folder / "agents.toml"
    planned = len(TASKS) * 6 * ATTEMPTS
    run, draw = cli.runs / "many", random.Random(5)
    arguments = cli.evaluate_arguments(
        *("many", "--agents-file", str(path), "--sandbox", "bubblewrap", "--attempts", str(ATTEMPTS)),
        *("--suggest-iterations", "3"),
    )
    kept: dict[str, bytes] = {}
    with StandIn() as service:
        path.write_text(agents_file(service.url))
        for number in range(KILLS):
            process = cli.start(*(arguments if number == 0 else ("resume", "many", "--no-inspection")))
            wanted = draw.randint(len(kept) + 1, len(kept) + 5)
            end = time.monotonic() + 120
            while len(attempts(run)) < wanted and process.poll() is None and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(draw.random())
            assert process.poll() is None, process.communicate()
            process.kill()
            process.communicate()
            now = attempts(run)
            assert len(now) >= wanted
            assert {name: now[name] for name in kept} == kept, "what is finished is never written again"
            kept = now
        assert len(kept) < planned
        done = cli("resume", "many", "--no-inspection")
    assert done.code == 0, done.err
    ended = attempts(run)
    assert len(ended) == planned
    assert {name: ended[name] for name in kept} == kept
    assert cli("verify", "many").code == 0
    counted = Counter(
        (trial["task_id"], trial["configuration_id"], trial["attempt"])
        for name in ended
        for trial in [
            record(run / name.rpartition("/")[0] / f"t{json.loads(ended[name])['counted_try']}", "trial.json")
        ]
    )
    assert len(counted) == planned
    assert set(counted.values()) == {1}


def test_the_order_is_random_and_recorded(cli: Cli) -> None:
    events = [json.loads(line) for line in (cli.runs / "many" / "events.jsonl").read_text().splitlines()]
    assert [event["kind"] for event in events].count("run_resumed") == KILLS
    started = [event for event in events if event["kind"] == "try_started"]
    order = list(dict.fromkeys((event["attempt"], event["task_id"], event["configuration_id"]) for event in started))
    assert len(order) == len(TASKS) * 6 * ATTEMPTS
    assert [attempt for attempt, _, _ in order] == sorted(attempt for attempt, _, _ in order)
    rounds = [[agent for attempt, task, agent in order if (attempt, task) == (1, one)] for one in TASKS]
    assert len({tuple(agents) for agents in rounds}) > 1, "not the same order on each task"


def test_the_report_compares_the_configurations(cli: Cli) -> None:
    run = cli.runs / "many"
    rows = {row["configuration_id"]: row for row in record(run, "report/data.json")["agents"]}
    assert set(rows) == {f"{agent}-{model}" for agent in ("claude", "codex", "command") for model in "ab"}
    for name, row in rows.items():
        assert (row["planned"], row["missing"], row["void"]) == (6, 0, 0)
        right = 2 if name.endswith("-a") else 0
        assert (row["correct_both"]["count"], row["correct_both"]["of"]) == (0 if right == 0 else row["unchanged"], 6)
        assert row["unchanged"] == right
    lock, manifest = record(run, "lock.json"), record(run, "manifest.json")
    assert {program["name"]: program["version"] for program in lock["programs"]} == {
        name: "fake 1.0" for name in rows if not name.startswith("command")
    }
    assert manifest["suggested_iterations"] == 3
    prompt = next(run.glob("trials/*/*/codex-a/a1/t*/logs/prompt.md")).read_text()
    assert "about 3 rounds" in prompt
    trajectory = json.loads(next(run.glob("trials/*/copy_0/claude-b/a1/t*/trajectory.json")).read_bytes())
    assert trajectory["steps"][0]["text"] == "I am model-b"
