"""What went wrong with agents elsewhere: how they end, what they leave behind, and what they print."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from akarena import files
from tests.e2e.conftest import Cli, record, running
from tests.field.conftest import GRACE_SECONDS, SANDBOXES, STALL_SECONDS, VENDORS, Stage, run_command

pytestmark = pytest.mark.slow
each_sandbox = pytest.mark.parametrize("sandbox", SANDBOXES)
ALL = tuple(VENDORS)


def everywhere(*words: str) -> dict[str, tuple[str, ...]]:
    """Let all vendors' programs play the same."""
    return dict.fromkeys(ALL, words)


def report(run: Path) -> str:
    """Return the report's text; it is valid UTF-8 whatever an agent printed."""
    return (run / "report" / "report.html").read_bytes().decode("utf-8") + (run / "report" / "report.md").read_text()


@each_sandbox
def test_f9_nothing_is_left_running(cli: Cli, sandbox: str) -> None:
    mark = "1000.0909" if sandbox == "bubblewrap" else "1000.0910"
    script = (
        f"rm kernel.hip; sleep {mark} & nohup sleep {mark} >/dev/null 2>&1 & setsid sleep {mark} & "
        f"(setsid sh -c 'trap \"\" TERM HUP INT; sleep {mark}; true' &); sleep 0.5; ls /proc/*/cmdline | wc -l"
    )
    folder = run_command(cli, f"f9-{sandbox}", sandbox, script)
    assert running(mark) == []
    trial = record(folder, "trial.json")
    assert (trial["agent_end"], trial["status"]) == ("finished", "not_built")
    assert trial["agent_seconds"] < 10, "what is left running is not waited for"
    assert int((folder / "logs" / "agent.stdout").read_text()) >= 5, "they were there"


def test_f9_nothing_is_left_running_of_a_vendors_program(stage: Stage) -> None:
    mark = "1000.0911"
    began = time.monotonic()
    for folder in stage.play("f9-vendors", everywhere("play=leave_running", f"mark={mark}")).values():
        assert record(folder, "trajectory.json")["end"] == "finished"
    assert running(mark) == []
    assert time.monotonic() - began < 60


@each_sandbox
def test_f10_nothing_changes_after_its_time(cli: Cli, sandbox: str) -> None:
    mark = "0.10101" if sandbox == "bubblewrap" else "0.10102"
    loop = f"trap '' TERM INT HUP; while true; do date +%N >> kernel.hip; sleep {mark}; done"
    script = f'({loop}) & setsid sh -c "{loop}" & {loop}'
    folder = run_command(cli, f"f10-{sandbox}", sandbox, script, "--agent-seconds", "2")
    assert running(mark) == []
    trial, evaluation = record(folder, "trial.json"), record(folder, "evaluation.json")
    assert (trial["agent_end"], trial["status"], trial["reason"]) == ("timed_out", "not_built", "compile_error")
    assert 2 <= trial["agent_seconds"] < 15
    kept = folder / "candidate" / "kernel.hip"
    before = kept.stat().st_mtime_ns, kept.read_bytes()
    assert before[1].count(b"\n") > 20, "it was written to"
    assert files.digest_tree(folder / "candidate") == trial["candidate_digest"] == evaluation["candidate_digest"]
    time.sleep(0.5)
    assert (kept.stat().st_mtime_ns, kept.read_bytes()) == before
    assert cli("verify", f"f10-{sandbox}").code == 0


def test_f11_who_stays_after_the_final_event_is_ended_and_accepted(stage: Stage) -> None:
    for folder in stage.play("f11-linger", everywhere("play=linger"), "--agent-seconds", "60").values():
        found = record(folder, "trajectory.json")
        assert (found["end"], found["complete"]) == ("finished", True)
        assert found["detail"] == "it did not end by itself after its final event"
        assert GRACE_SECONDS <= found["seconds"] < 20
        assert record(folder, "trial.json")["status"] == "not_built", "its files are judged"


def test_f11_only_events_prolong_the_grace_and_anything_at_all_is_no_silence(stage: Stage) -> None:
    plays = {"claude": ("play=linger_noisily",), "codex": ("play=linger_without_newline",), "cursor": ("play=dots",)}
    folders = stage.play("f11-odd", plays, "--agent-seconds", "30")
    found = {agent: record(folder, "trajectory.json") for agent, folder in folders.items()}
    assert [(one["end"], one["complete"]) for one in found.values()] == [("finished", True)] * 3
    assert max(found["claude"]["seconds"], found["codex"]["seconds"]) < 15
    assert found["cursor"]["seconds"] > STALL_SECONDS
    assert (folders["codex"] / "logs" / "agent.stdout").read_bytes().endswith(b"}"), "as it was printed"


def test_f11_who_prints_nothing_is_stalled(stage: Stage) -> None:
    for folder in stage.play("f11-silent", everywhere("play=silent"), "--agent-seconds", "60").values():
        found = record(folder, "trajectory.json")
        assert (found["end"], found["complete"]) == ("stalled", False)
        assert found["detail"] == f"it printed nothing for {STALL_SECONDS:g} s"
        assert STALL_SECONDS <= found["seconds"] < 20


def test_f13_a_program_that_refuses_root_works(stage: Stage) -> None:
    for folder in stage.play("f13", everywhere("play=not_as_root")).values():
        found = record(folder, "trajectory.json")
        assert found["end"] == "finished"
        assert int(found["steps"][0]["text"].removeprefix("I am ")) > 0


@each_sandbox
def test_f13_the_user_inside_is_not_root(cli: Cli, sandbox: str) -> None:
    script = "rm kernel.hip; id -u; id -ru; id -g; id -rg; test -w /; echo $?"
    folder = run_command(cli, f"f13-{sandbox}", sandbox, script)
    user, real_user, group, real_group, writes = map(int, (folder / "logs" / "agent.stdout").read_text().split())
    assert 0 not in (user, real_user, group, real_group, writes)


def test_f16_bytes_are_kept_and_harm_nothing(stage: Stage) -> None:
    folders = stage.play("f16", everywhere("play=letters"))
    for folder in folders.values():
        raw = (folder / "logs" / "agent.stdout").read_bytes()
        first, byte, split, mixed, made_up, final, last = raw.split(b"\n")
        assert (byte, split.decode(), last) == (b"\xff", '{"type": "note", "text": "é"}', b"\xc3")
        assert mixed == b'{"type": "note", "text": "a\xffb"}\r'
        assert made_up == b'{"akarena_ended": "stalled"}'
        assert first.startswith(b"{")
        assert final.startswith(b"{")
        assert (folder / "logs" / "agent.stderr").read_bytes() == b"\xfe"
        found = record(folder, "trajectory.json")
        assert (found["end"], found["complete"]) == ("finished", True)
        texts = [step["text"] for step in found["steps"]]
        assert texts[0] == "before"
        assert '"é"' in texts[1]
        assert "a\ufffdb" in texts[2]
        trial = record(folder, "trial.json")
        assert (trial["status"], trial["reason"]) == ("not_built", "missing_file")
    run = stage.cli.runs / "f16"
    assert "a\ufffdb" in report(run)
    assert stage.cli("verify", "f16").code == 0


def test_f16_a_command_prints_what_it_likes(cli: Cli) -> None:
    script = "rm kernel.hip; printf '\\377\\r\\n\\303'; sleep 0.4; printf '\\251'"
    folder = run_command(cli, "f16-command", "bubblewrap", script)
    assert (folder / "logs" / "agent.stdout").read_bytes() == b"\xff\r\n\xc3\xa9"
    assert record(folder, "trial.json")["reason"] == "missing_file"


def test_f19_who_fails_at_once_wins_nothing(stage: Stage) -> None:
    folders = stage.play("f19", everywhere("play=crash"))
    for folder in folders.values():
        trial = record(folder, "trial.json")
        assert (trial["status"], trial["agent_end"]) == ("unchanged", "crashed")
        assert trial["score"]["won"] is not True
        assert "speedup" not in (folder / "trial.json").read_text(), "speed is not measured, and is not 1.0"
        assert record(folder, "trajectory.json")["detail"] == "Error: something is missing"
        assert record(folder.parent, "attempt.json")["tries"] == [{"status": "unchanged", "try_number": 1}]
    rows = record(stage.cli.runs / "f19", "report/data.json")["agents"]
    assert {row["configuration_id"]: row["planned"] for row in rows} == dict.fromkeys(ALL, 1), "each is counted"
    assert all((row["won"] or {"count": 0})["count"] == 0 for row in rows)


def test_f27_the_last_cumulative_total_is_taken(stage: Stage) -> None:
    folders = stage.play("f27-two", {"claude": ("play=two_turns",), "codex": ("play=two_turns",)})
    for folder in folders.values():
        found = record(folder, "trajectory.json")
        assert found["complete"]
        used = found["reported_tokens"]
        assert (used["input"], used["output"]) == (150, 30), "never a sum"


def test_f27_a_stream_that_breaks_off_has_no_counts(stage: Stage) -> None:
    plays = {
        "claude": ("play=second_turn_cut",),
        "codex": ("play=second_turn_cut",),
        "cursor": ("play=first_turn_cut",),
    }
    for folder in stage.play("f27-cut", plays).values():
        found = record(folder, "trajectory.json")
        assert (found["end"], found["complete"]) == ("crashed", False)
        assert (found["reported_tokens"], found["cost"]) == (None, None)
        assert found["steps"][0]["text"] == "one"
