"""Counts of tokens out of answers, and budgets."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akarena.gateway import Budgets, Style
from akarena.gateway.budget import Ledger
from akarena.gateway.refusal import Denial
from akarena.gateway.usage import StreamMeter, add, read_plain, read_usage
from akarena.records.audit import Verdict
from akarena.records.trial import Tokens
from tests.services import Turn, anthropic, openai

TURN = Turn(
    text="some text",
    input_tokens=100,
    output_tokens=20,
    cache_read_tokens=70,
    cache_write_tokens=7,
    reasoning_tokens=5,
)
CLAUDE = Tokens(input=100, output=20, cache_read=70, cache_write=7, reasoning=0)
OPENAI = Tokens(input=100, output=20, cache_read=70, cache_write=0, reasoning=5)
STREAMS = {
    "messages": (Style.ANTHROPIC, list(anthropic.events(TURN, "m")), CLAUDE),
    "responses": (Style.OPENAI, list(openai.response_events(TURN, "m")), OPENAI),
    "chat": (Style.OPENAI, list(openai.completion_events(TURN, "m", usage=True)), OPENAI),
}


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(sorted(STREAMS)), cuts=st.lists(st.integers(0, 3000), max_size=20), crlf=st.booleans())
def test_streams_cut_anywhere(kind: str, cuts: list[int], crlf: bool) -> None:
    style, events, expected = STREAMS[kind]
    data = b"".join(events)
    if crlf:
        data = data.replace(b"\n", b"\r\n")
    meter = StreamMeter(style)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, end in itertools.pairwise(places):
        meter.feed(data[start:end])
    assert (meter.complete, meter.tokens()) == (True, expected)


@pytest.mark.parametrize("kind", STREAMS)
def test_a_broken_stream_has_no_count(kind: str) -> None:
    style, events, _ = STREAMS[kind]
    meter = StreamMeter(style)
    meter.feed(b"".join(events[:-1]))
    assert (meter.complete, meter.tokens()) == (False, None)


def test_plain_answers() -> None:
    assert read_plain(Style.ANTHROPIC, json.dumps(anthropic.plain(TURN, "m")).encode()) == CLAUDE
    assert read_plain(Style.OPENAI, json.dumps(openai.response(TURN, "m")).encode()) == OPENAI
    assert read_plain(Style.OPENAI, json.dumps(openai.completion(TURN, "m")).encode()) == OPENAI


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"usage":null}', b'{"usage":[]}', b"[" * 100_000])
def test_no_count_is_invented(body: bytes) -> None:
    assert read_plain(Style.ANTHROPIC, body) is None


@pytest.mark.parametrize(
    "usage",
    [{}, {"input_tokens": 1}, {"input_tokens": -1, "output_tokens": 1}, {"input_tokens": "1", "output_tokens": 1}],
)
def test_odd_counts(usage: dict[str, object]) -> None:
    assert read_usage(Style.ANTHROPIC, usage) is None


def test_cumulative_counts_are_not_summed() -> None:
    meter = StreamMeter(Style.ANTHROPIC)
    meter.feed(b'data: {"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}\n\n')
    for count in (5, 9):
        meter.feed(b'data: {"type":"message_delta","usage":{"output_tokens":%d,"input_tokens":null}}\n\n' % count)
    meter.feed(b'data: {"type":"message_stop"}\n\n')
    assert meter.tokens() == Tokens(input=10, output=9, cache_read=0, cache_write=0, reasoning=0)


def test_a_line_without_end_is_not_kept() -> None:
    meter = StreamMeter(Style.ANTHROPIC)
    for _ in range(20):
        meter.feed(b"x" * (1 << 20))
    assert len(meter._line) <= 8 << 20
    meter.feed(b"\ndata: " + b'{"type":"message_stop"}\n')
    assert meter.complete


class TestLedger:
    def test_reserved_before_and_settled_after(self) -> None:
        async def run() -> None:
            ledger = Ledger(Budgets(tokens=1000))
            first = await ledger.reserve(900, 10)
            waiting = asyncio.create_task(ledger.reserve(200, 10))
            await asyncio.sleep(0.01)
            assert not waiting.done(), "both together could use more than there is"
            first.settle(Tokens(input=50, output=50, cache_read=100, cache_write=100, reasoning=40))
            await ledger.release(first)
            second = await asyncio.wait_for(waiting, 1)
            assert (ledger.tokens, ledger.requests, ledger.bytes_up) == (300, 2, 20)
            await ledger.release(second)
            assert ledger.tokens == 500, "what was not settled counts as used"

        asyncio.run(run())

    def test_many_at_once_never_go_beyond(self) -> None:
        async def run() -> tuple[int, int]:
            ledger = Ledger(Budgets(tokens=1000, requests=40))
            verdicts: set[Verdict] = set()

            async def one(number: int) -> bool:
                try:
                    held = await ledger.reserve(100, 1)
                except Denial as denial:
                    verdicts.add(denial.verdict)
                    return False
                await asyncio.sleep(0.001 * (number % 3))
                if number % 2:
                    held.settle(Tokens(input=10, output=80, cache_read=0, cache_write=0, reasoning=0))
                await ledger.release(held)
                return True

            passed = sum(await asyncio.gather(*(one(number) for number in range(100))))
            assert verdicts == {Verdict.OUT_OF_BUDGET}
            return passed, ledger.tokens

        passed, used = asyncio.run(run())
        assert 10 <= passed <= 11
        assert used <= 1000

    @pytest.mark.parametrize(
        ("budgets", "words"),
        [
            (Budgets(requests=1), "budget of 1 requests"),
            (Budgets(tokens=250), "150 are left, and this request could use 200"),
            (Budgets(upload_bytes=15), "budget of 15 bytes upwards"),
        ],
    )
    def test_each_budget_says_its_name(self, budgets: Budgets, words: str) -> None:
        async def run() -> None:
            ledger = Ledger(budgets)
            first = await ledger.reserve(100, 10)
            await ledger.release(first)
            await ledger.reserve(200, 10)

        with pytest.raises(Denial, match=words):
            asyncio.run(run())

    def test_time(self) -> None:
        async def run() -> None:
            ledger = Ledger(Budgets(seconds=0.05))
            async with ledger.time_limit():
                await asyncio.sleep(5)

        with pytest.raises(Denial, match=r"0\.05 s, is over"):
            asyncio.run(run())

    @pytest.mark.parametrize("value", [0, -1, float("nan")])
    def test_budgets_are_positive(self, value: float) -> None:
        with pytest.raises(ValueError, match="expected a number above 0"):
            Budgets(seconds=value)


def test_sums() -> None:
    assert add(None, CLAUDE) == CLAUDE
    assert add(CLAUDE, OPENAI) == Tokens(input=200, output=40, cache_read=140, cache_write=7, reasoning=5)
