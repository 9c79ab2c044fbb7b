"""Counts of tokens out of answers, and budgets."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akarena.costs import cost_of, most_of, settled
from akarena.gateway import Budgets, Patience, Style, find
from akarena.gateway.budget import Ledger
from akarena.gateway.refusal import Denial
from akarena.gateway.settings import Settings
from akarena.gateway.usage import StreamMeter, add, read_plain, read_usage
from akarena.records.audit import Verdict
from akarena.records.run import Prices
from akarena.records.trial import Cost, CostSource, Tokens
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
PRICES = Prices(input=2.0, output=5.0, cache_read=1.0, cache_write=4.0)
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

    def test_dollars_are_reserved_before_and_settled_after(self) -> None:
        async def run() -> None:
            ledger = Ledger(Budgets(usd=1.0, prices=PRICES))
            # 100 000 tokens of a prompt at the dearest price, 4, and as many of an answer at 5.
            first = await ledger.reserve(200_000, 10, 100_000)
            assert first.held_usd == pytest.approx(0.9)
            waiting = asyncio.create_task(ledger.reserve(100_000, 10, 0))
            await asyncio.sleep(0.01)
            assert not waiting.done(), "both together could cost more than there is"
            first.settle(Tokens(input=100_000, output=0, cache_read=0, cache_write=0, reasoning=0))
            await ledger.release(first)
            second = await asyncio.wait_for(waiting, 1)
            assert ledger.usd == pytest.approx(0.2)
            await ledger.release(second)
            assert ledger.usd == pytest.approx(0.6), "what was not settled counts with all that was held"
            with pytest.raises(Denial, match=r"of 1 dollars, 0\.4 are left, and this request could cost 0\.5"):
                await ledger.reserve(100_000, 1, 100_000)

        asyncio.run(run())

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=12))
    def test_a_request_that_fits_alone_never_waits_for_ever(self, requests: list[tuple[int, int]]) -> None:
        async def run() -> None:
            prices = Prices(input=0.1, output=0.7, cache_read=0.3, cache_write=0.1)
            most = max(most_of(prompt, answer, prices) for prompt, answer in requests)
            ledger = Ledger(Budgets(usd=most or 1.0, prices=prices))

            async def one(prompt: int, answer: int) -> None:
                held = await ledger.reserve(prompt + answer, 1, answer)
                await asyncio.sleep(0)
                held.settle(None)
                await ledger.release(held)

            await asyncio.wait_for(asyncio.gather(*(one(*request) for request in requests)), 5)

        asyncio.run(run())

    def test_dollars_need_prices(self) -> None:
        with pytest.raises(ValueError, match="without prices"):
            Budgets(usd=1.0)

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


def test_costs() -> None:
    assert cost_of(CLAUDE, PRICES) == pytest.approx((100 * 2 + 20 * 5 + 70 * 1 + 7 * 4) / 1e6)
    assert cost_of(CLAUDE.model_copy(update={"reasoning": 20}), PRICES) == cost_of(CLAUDE, PRICES)
    assert cost_of(CLAUDE, Prices(input=0, output=0, cache_read=0, cache_write=0)) == 0.0


def test_the_cost_of_a_trial() -> None:
    reported = Cost(usd=0.42, source=CostSource.REPORTED)
    assert settled(None, PRICES, None) == (None, "")
    assert settled(None, PRICES, reported) == (reported, ""), "nothing was counted"
    assert settled(CLAUDE, None, reported) == (reported, "")
    priced = Cost(usd=cost_of(CLAUDE, PRICES), source=CostSource.PRICED)
    assert settled(CLAUDE, PRICES, None) == (priced, "")
    assert settled(CLAUDE, PRICES, reported) == (priced, "the agent reports a cost of 0.42 dollars")


def test_settings_cross_the_pipe_whole() -> None:
    budgets = Budgets(usd=2.5, prices=PRICES, tokens=10)
    for one in (budgets, Budgets()):
        sent = Settings(find("anthropic"), "/s", "/a", ("m",), one, Patience(retries=1))
        assert Settings.from_json(sent.to_json()) == sent


class TestPatience:
    def test_pauses_double_with_a_random_part(self) -> None:
        patience = Patience()
        for retries, most in enumerate((2, 4, 8, 16, 32)):
            pauses = [patience.pause(529, {}, retries, 0.0) for _ in range(50)]
            assert all(pause is not None and 0.75 * most <= pause <= most for pause in pauses)
            assert len(set(pauses)) > 10
        assert patience.pause(529, {}, 5, 0.0) is None

    @pytest.mark.parametrize(
        ("headers", "least", "most"),
        [
            ({"retry-after": "7"}, 7.0, 7.5),
            ({"retry-after": " 7.5 "}, 7.5, 8.0),
            ({"retry-after": "7", "retry-after-ms": "1500"}, 1.5, 2.0),
            ({"retry-after": "3600"}, 60.0, 60.0),
            ({"retry-after": "0"}, 0.0, 0.5),
            ({"retry-after": "Fri, 31 Dec 2027 23:59:59 GMT"}, 1.5, 2.0),
            ({"retry-after": "-5"}, 1.5, 2.0),
            ({"retry-after": "nan"}, 1.5, 2.0),
            ({"retry-after": "9" * 5000}, 1.5, 2.0),
        ],
    )
    def test_what_the_service_asks_for(self, headers: dict[str, str], least: float, most: float) -> None:
        pause = Patience().pause(429, headers, 0, 0.0)
        assert pause is not None
        assert least <= pause <= most

    def test_it_ends(self) -> None:
        patience = Patience()
        assert patience.pause(429, {"retry-after": "60"}, 1, 60.0) is not None
        assert patience.pause(429, {"retry-after": "60"}, 2, 61.0) is None
        assert patience.pause(500, {"retry-after": "1"}, 0, 0.0) is None
        assert patience.pause(200, {}, 0, 0.0) is None


def test_sums() -> None:
    assert add(None, CLAUDE) == CLAUDE
    assert add(CLAUDE, OPENAI) == Tokens(input=200, output=40, cache_read=140, cache_write=7, reasoning=5)
