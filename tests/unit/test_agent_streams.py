"""The parsers of the three command-line agents: what they take from a stream, and that no stream upsets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from akarena.agents.claude import ClaudeParser
from akarena.agents.codex import CodexParser
from akarena.agents.cursor import CursorParser
from akarena.agents.stream import Parser, Work, parse
from akarena.records.trial import AgentEnd, CostSource, Step, StepKind, Tokens

Event = dict[str, Any]


def lines(*events: Event | bytes) -> bytes:
    """Write events as the supervisor passes them on, one a second."""
    texts = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    return b"".join(b"@%d.500 %b\n" % (second, text) for second, text in enumerate(texts))


def read(parser: Parser, *events: Event | bytes) -> Work:
    parse(lines(*events), parser)
    return parser.work


def short(steps: tuple[Step, ...]) -> list[tuple[str, str, str | None, str | None]]:
    return [(step.kind.value, step.text, step.tool, step.result) for step in steps]


def said(text: str, message: str = "m1") -> Event:
    return {"type": "assistant", "message": {"id": message, "content": [{"type": "text", "text": text}]}}


def claude_call(key: str) -> tuple[Event, Event]:
    use = {"type": "tool_use", "id": key, "name": "Bash", "input": {"command": "make"}}
    back = {"type": "tool_result", "tool_use_id": key, "content": [{"type": "text", "text": "built"}]}
    return (
        {"type": "assistant", "message": {"id": "m2", "content": [use]}},
        {"type": "user", "message": {"content": [back]}},
    )


CLAUDE_USAGE = {
    "claude-a": {"inputTokens": 10, "outputTokens": 7, "cacheReadInputTokens": 5, "cacheCreationInputTokens": 3},
    "claude-b": {"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0},
}
CLAUDE_RESULT: Event = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "done",
    "total_cost_usd": 0.25,
    "usage": {"input_tokens": 10, "output_tokens": 7},
    "modelUsage": CLAUDE_USAGE,
}
CLAUDE = (
    {"type": "system", "subtype": "init"},
    said("I build."),
    *claude_call("t1"),
    said("Done.", "m3"),
    CLAUDE_RESULT,
)


def item(kind: str, **fields: Any) -> Event:
    return {"type": kind, "item": fields}


def codex_usage(given: int, cached: int, answered: int) -> Event:
    usage = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": answered}
    return {"type": "turn.completed", "usage": usage | {"reasoning_output_tokens": 4}}


CODEX_CALL = {"id": "i2", "type": "command_execution", "command": "make"}
CODEX = (
    {"type": "thread.started", "thread_id": "1"},
    {"type": "turn.started"},
    item("item.completed", id="i0", type="reasoning", text="hm"),
    item("item.completed", id="i1", type="agent_message", text="I build."),
    item("item.started", **CODEX_CALL, aggregated_output="", exit_code=None),
    item("item.updated", **CODEX_CALL, aggregated_output="bu", exit_code=None),
    item("item.completed", **CODEX_CALL, aggregated_output="built", exit_code=0),
    codex_usage(100, 40, 20),
)


def cursor_call(subtype: str, **call: Any) -> Event:
    return {"type": "tool_call", "subtype": subtype, "call_id": "c1", "tool_call": {"shellToolCall": call}}


CURSOR_RESULT: Event = {"type": "result", "subtype": "success", "is_error": False, "result": "done"}
CURSOR = (
    {"type": "system", "subtype": "init", "model": "x"},
    {"type": "user", "message": {"content": [{"type": "text", "text": "prompt"}]}},
    said("I build."),
    cursor_call("started", args={"command": "make"}),
    cursor_call("completed", args={"command": "make"}, result={"success": "built"}),
    CURSOR_RESULT,
)
STREAMS: list[tuple[Callable[[], Parser], tuple[Event, ...]]] = [
    (ClaudeParser, CLAUDE),
    (CodexParser, CODEX),
    (CursorParser, CURSOR),
]
each = pytest.mark.parametrize(("make", "events"), STREAMS, ids=["claude", "codex", "cursor"])


def test_claude() -> None:
    work = read(ClaudeParser(), *CLAUDE)
    assert short(work.steps()) == [
        ("message", "I build.", None, None),
        ("tool_call", '{"command": "make"}', "Bash", "built"),
        ("message", "Done.", None, None),
    ]
    assert [step.seconds for step in work.steps()] == [1.5, 2.5, 4.5]
    assert work.tokens == Tokens(input=11, output=9, cache_read=5, cache_write=3, reasoning=0)
    assert work.cost is not None
    assert (work.cost.usd, work.cost.source) == (0.25, CostSource.REPORTED)
    assert (work.complete, work.error, work.end) == (True, "", None)


def test_claude_without_usage_by_model() -> None:
    usage = {"input_tokens": 6, "output_tokens": 7, "cache_read_input_tokens": 8, "cache_creation_input_tokens": 9}
    result = {"type": "result", "subtype": "success", "usage": usage}
    assert read(ClaudeParser(), result).tokens == Tokens(input=6, output=7, cache_read=8, cache_write=9, reasoning=0)


def test_codex() -> None:
    work = read(CodexParser(), *CODEX)
    assert short(work.steps()) == [
        ("reasoning", "hm", None, None),
        ("message", "I build.", None, None),
        ("tool_call", "make", "command", "built"),
    ]
    assert work.steps()[2].seconds == 4.5
    assert work.tokens == Tokens(input=60, output=20, cache_read=40, cache_write=0, reasoning=4)
    assert (work.cost, work.complete, work.error) == (None, True, "")


def test_codex_tells_counts_of_the_whole_thread() -> None:
    work = read(CodexParser(), codex_usage(100, 40, 20), codex_usage(150, 60, 30))
    assert work.tokens == Tokens(input=90, output=30, cache_read=60, cache_write=0, reasoning=4)


def test_codex_items_of_other_kinds() -> None:
    changes = [{"path": "kernel.hip", "kind": "update"}]
    work = read(
        CodexParser(),
        item("item.completed", id="1", type="file_change", changes=changes, status="completed"),
        item("item.completed", id="2", type="mcp_tool_call", tool="t", arguments={"a": 1}, error={"message": "no"}),
        item("item.completed", id="3", type="web_search", query="q"),
        item("item.completed", id="4", type="command_execution", command="false", aggregated_output="x", exit_code=1),
        item("item.completed", id="5", type="hologram", data=1),
        item("item.completed", id="6", type="error", message="a warning"),
    )
    assert short(work.steps())[:4] == [
        ("tool_call", json.dumps(changes), "file_change", "completed"),
        ("tool_call", '{"a": 1}', "t", '{"message": "no"}'),
        ("tool_call", "q", "web_search", None),
        ("tool_call", "false", "command", "exit code 1\nx"),
    ]
    assert [step.kind for step in work.steps()[4:]] == [StepKind.OTHER, StepKind.MESSAGE]
    assert work.unknown == {"item hologram": 1}


@pytest.mark.parametrize("beside", [False, True], ids=["below tool_call", "beside call_id"])
def test_cursor(beside: bool) -> None:
    events: list[Event] = [dict(event) for event in CURSOR]
    if beside:
        events = [{**event, **event.pop("tool_call", {})} for event in events]
    work = read(CursorParser(), *events)
    assert short(work.steps()) == [
        ("message", "I build.", None, None),
        ("tool_call", '{"command": "make"}', "shell", '{"success": "built"}'),
    ]
    assert (work.tokens, work.cost, work.complete, work.error) == (None, None, True, "")


@pytest.mark.parametrize(
    ("parser", "event", "error", "end"),
    [
        (ClaudeParser(), CLAUDE_RESULT | {"is_error": True, "result": "API Error"}, "API Error", None),
        (ClaudeParser(), CLAUDE_RESULT | {"is_error": True, "api_error_status": 401}, "done", AgentEnd.REFUSED),
        (ClaudeParser(), CLAUDE_RESULT | {"is_error": True, "api_error_status": 529}, "done", AgentEnd.RATE_LIMITED),
        (ClaudeParser(), {"type": "result", "subtype": "error_max_turns"}, "error_max_turns", AgentEnd.OUT_OF_BUDGET),
        (CodexParser(), {"type": "turn.failed", "error": {"message": "no stream"}}, "no stream", None),
        (CodexParser(), {"type": "turn.failed"}, "the turn failed", None),
        (CursorParser(), CURSOR_RESULT | {"is_error": True, "result": "quota"}, "quota", None),
    ],
)
def test_a_final_event_can_tell_of_an_error(parser: Parser, event: Event, error: str, end: AgentEnd | None) -> None:
    work = read(parser, event)
    assert (work.complete, work.error, work.end) == (True, error, end)


def test_an_error_that_codex_gets_over_is_none() -> None:
    work = read(CodexParser(), {"type": "error", "message": "Reconnecting... 1/5"}, codex_usage(1, 0, 1))
    assert (work.error, work.steps()[0].text) == ("", "error: Reconnecting... 1/5")


@each
def test_a_stream_that_breaks_off_is_not_complete(make: Callable[[], Parser], events: tuple[Event, ...]) -> None:
    data = lines(*events)
    ends = [place for place, byte in enumerate(data) if byte == ord("\n")]
    for cut in (*range(0, ends[-2] + 1, 17), ends[-1] - 1):
        parser = make()
        parse(data[:cut], parser)
        assert not parser.work.complete, cut
        assert parser.work.tokens is None, "nothing is counted that was not told"
        assert parser.work.cost is None


@each
def test_an_event_that_comes_twice_counts_once(make: Callable[[], Parser], events: tuple[Event, ...]) -> None:
    once, twice = read(make(), *events), read(make(), *(event for event in events for _ in (1, 2)))
    assert short(twice.steps()) == short(once.steps())
    assert twice.tokens == once.tokens


@pytest.mark.parametrize(("make", "events"), STREAMS[:2], ids=["claude", "codex"])
def test_a_stream_that_is_repeated_counts_once(make: Callable[[], Parser], events: tuple[Event, ...]) -> None:
    assert short(read(make(), *events, *events).steps()) == short(read(make(), *events).steps())


def test_the_first_result_of_a_call_is_its_result_and_a_result_without_a_call_is_none() -> None:
    use, back = claude_call("t1")
    other = json.loads(json.dumps(back).replace("built", "forged"))
    alone = json.loads(json.dumps(back).replace("t1", "t9"))
    assert [step.result for step in read(ClaudeParser(), alone, use, back, other).steps()] == ["built"]


BAD: list[Any] = [None, True, 1, -1, 1.5, "x", "", [], [1, None, [2]], {}, {"type": "text"}, [{"type": "text"}]]


@each
@pytest.mark.parametrize("bad", BAD, ids=[json.dumps(bad) for bad in BAD])
def test_any_field_may_be_anything(make: Callable[[], Parser], events: tuple[Event, ...], bad: Any) -> None:
    parser = make()
    for event in events:
        for changed in _with_each_replaced(event, bad):
            parser.read(changed)
    parser.work.steps()
    list(parser.work.notes())


def _with_each_replaced(value: Any, bad: Any) -> Any:
    """Yield the event with each of its values, at any depth, replaced in turn."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: changed} for changed in (bad, *_with_each_replaced(inner, bad)))
            yield {name: other for name, other in value.items() if name != key}
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from ([*value[:place], changed, *value[place + 1 :]] for changed in _with_each_replaced(inner, bad))


@each
def test_lines_that_are_no_events_are_counted_and_the_rest_is_read(
    make: Callable[[], Parser], events: tuple[Event, ...]
) -> None:
    hostile = [
        b"not json",
        b"{",
        b'{"type": "assistant"',
        b"\xff\xfe\x00",
        b"[1]",
        b'"text"',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1" * 5000,
        b"\x1b[31mred\x1b[0m",
        b"@1.5 x",
    ]
    plain, mixed = read(make(), *events), read(make(), *hostile, *events, b"end")
    assert mixed.broken == len(hostile) + 1
    assert short(mixed.steps()) == short(plain.steps())
    assert (mixed.complete, mixed.tokens) == (True, plain.tokens)
    assert f"{len(hostile) + 1} lines of the stream are no JSON object" in list(mixed.notes())


@each
def test_unknown_events_are_kept_as_they_are(make: Callable[[], Parser], events: tuple[Event, ...]) -> None:
    new = {"type": "telepathy", "data": {"a": [1, 2]}}
    work = read(make(), new, *events, {"no": "type"})
    kept = [step for step in work.steps() if step.kind is StepKind.OTHER]
    assert [json.loads(step.text) for step in kept] == [new, {"no": "type"}]
    assert any("telepathy (1)" in note for note in work.notes())


def test_a_line_of_5_mb_is_read_and_its_text_cut() -> None:
    work = read(ClaudeParser(), said("x" * 5_000_000), CLAUDE_RESULT)
    assert len(work.steps()[0].text) == 20_000
    assert work.complete


def test_what_is_kept_of_a_long_stream_is_bounded() -> None:
    events = [said("y" * 20_000, f"m{number}") for number in range(900)]
    work = read(ClaudeParser(), *events, CLAUDE_RESULT)
    assert sum(len(step.text) for step in work.steps()) == 16_000_000
    assert work.complete
    assert any("the trajectory is full" in note for note in work.notes())


def test_text_that_is_no_unicode_is_replaced() -> None:
    work = read(ClaudeParser(), b'{"type":"assistant","message":{"content":[{"type":"text","text":"a\\ud800b\xff"}]}}')
    assert work.steps()[0].text == "a?b�"


@pytest.mark.parametrize("cost", ["NaN", "Infinity", "-1", '"1"', "true", "1e400", "null"])
def test_a_cost_that_is_no_amount_is_none(cost: str) -> None:
    line = json.dumps(CLAUDE_RESULT).replace("0.25", cost).encode()
    work = read(ClaudeParser(), line)
    assert (work.cost, work.complete) == (None, True)


@pytest.mark.parametrize("tokens", [-1, 1.5, "7", None, 1 << 60, True])
def test_a_count_that_is_none_is_not_added(tokens: Any) -> None:
    usage = {"input_tokens": 5, "output_tokens": tokens}
    found = read(CodexParser(), {"type": "turn.completed", "usage": usage}).tokens
    assert found == Tokens(input=5, output=0, cache_read=0, cache_write=0, reasoning=0)


def test_usage_that_is_missing_is_not_invented() -> None:
    assert read(CodexParser(), {"type": "turn.completed"}).tokens is None
    assert read(ClaudeParser(), {"type": "result", "subtype": "success"}).tokens is None


def test_the_raw_stream_comes_out_as_it_was() -> None:
    raw = b'{"type":"x"}\n\xff\n\nplain\n{"type":"y"}'
    data = b"".join(b"@%d.000 %b\n" % (number, line) for number, line in enumerate(raw.split(b"\n")))
    parser = ClaudeParser()
    assert parse(data + b'@9.000 {"akarena_ended": "exited", "code": 0}\n', parser) == raw + b"\n"
    assert parser.work.exited == "exited"


def test_an_end_that_the_agent_made_up_is_not_believed_when_more_follows() -> None:
    data = b'@1.000 {"akarena_ended": "stalled"}\n' + lines(CURSOR_RESULT)
    parser = CursorParser()
    parse(data, parser)
    assert parser.work.exited == ""
