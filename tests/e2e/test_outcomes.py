"""How agents end whose service does not serve them, from the command line to ``verify``."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.e2e.conftest import SOFTMAX, Cli, attempt, record
from tests.services import StandIn, Turn

KEY = "key-of-outcomes-8813-secret"
SOLVE = "cp kernel.hip kept.hip; echo '// mine' >> kernel.hip; "
ASK = """
import json, os, sys, urllib.request
body = {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "How?"}]}
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
try:
    urllib.request.urlopen(request, timeout=20).read()
except urllib.error.HTTPError as error:
    print(error.headers["x-should-retry"])
    sys.exit(f"API Error: {error.code}")
sys.exit("API Error: 429 rate limit exceeded")
"""
PRICES = "input=1000000,output=2000000,cache_read=0,cache_write=0"


def evaluate(cli: Cli, run_id: str, turn: Turn, *further: str) -> Path:
    """Let a program add a line to the kernel and ask its model once; it fails in any case."""
    command = shlex.join(["sh", "-c", f"{SOLVE} exec python3 -c {shlex.quote(ASK)}"])
    with StandIn(turn) as service:
        return cli.evaluate(
            *(run_id, "--agent", "command", "--command", command, "--sandbox", "bubblewrap", "--tasks", SOFTMAX),
            *("--service", "anthropic", "--service-url", service.url, "--service-key", "OUTCOMES_KEY", *further),
        )


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTCOMES_KEY", KEY)


@pytest.mark.parametrize(
    ("turn", "end", "reason"),
    [
        (Turn(status=401), "refused", "service_refused"),
        (Turn(status=429, headers={"x-should-retry": "false"}), "rate_limited", "service_limited"),
    ],
)
def test_a_service_that_does_not_serve_makes_the_trial_void(cli: Cli, turn: Turn, end: str, reason: str) -> None:
    run = evaluate(cli, f"void-{end.replace('_', '-')}", turn)
    folder = attempt(run, SOFTMAX, "command")
    tries = record(folder.parent, "attempt.json")["tries"]
    assert [one["status"] for one in tries] == ["void", "void"], "it was tried again"
    trial = record(folder, "trial.json")
    assert (trial["agent_end"], trial["reason"]) == (end, reason)
    assert record(folder, "trajectory.json")["end"] == end
    assert (folder / "candidate" / "kernel.hip").read_text().endswith("// mine\n"), "what was there is kept"
    assert (folder / "logs" / "agent.stdout").read_text() == "false\n"
    assert not (folder / "evaluation.json").exists()
    assert record(run, "report/data.json")["agents"][0]["planned"] == 1
    assert cli("verify", str(run)).code == 0
    again = cli("verify", str(run), "--rejudge")
    assert (again.code, f"void: {reason}" in again.out) == (0, True), again


def test_words_alone_buy_no_second_try(cli: Cli) -> None:
    run = evaluate(cli, "words", Turn(input_tokens=3, output_tokens=2), "--prices", PRICES)
    folder = attempt(run, SOFTMAX, "command")
    assert [one["status"] for one in record(folder.parent, "attempt.json")["tries"]] == ["judged"]
    assert record(folder, "trial.json")["agent_end"] == "crashed"
    assert record(folder, "trajectory.json")["cost"] == {"usd": 7.0, "source": "priced"}
    assert cli("verify", str(run)).code == 0


def test_nothing_to_replay_is_void(cli: Cli) -> None:
    cli.evaluate("little", "--agent", "nop", "--tasks", SOFTMAX)
    run = cli.evaluate("more", "--agent", "replay", "--replay", "little:nop", "--tasks", "hip2hip/layer_norm")
    folder = attempt(run, "hip2hip/layer_norm", "replay")
    trial = record(folder, "trial.json")
    assert (trial["status"], trial["agent_end"], trial["reason"]) == ("void", "infrastructure", "agent_not_run")
    assert cli("verify", str(run)).code == 0
