import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akarena.report import text

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202egnp.\x00 | `x` \u200b\r\n[a](http://evil) ![b](www.evil.example)"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1.23456, 1.23), (0.000123456, 0.000123), (123456.0, 123000.0), (0.0, 0.0), (-2.5, -2.5)],
)
def test_rounded(value: float, expected: float) -> None:
    assert text.rounded(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "\u2013"),
        (3, "3"),
        (3.0, "3"),
        (1.5, "1.5"),
        (0.0123, "0.0123"),
        (1.2e-9, "1.2e-09"),
        (4.0e12, "4e+12"),
        (123000.0, "123000"),
        (0.0, "0"),
    ],
)
def test_number(value: float | None, expected: str) -> None:
    assert text.number(value) == expected


@given(st.floats(1e-9, 1e12))
def test_number_loses_nothing_of_a_rounded_value(value: float) -> None:
    rounded = text.rounded(value)
    assert float(text.number(rounded)) == rounded


def test_percent() -> None:
    assert [text.percent(rate) for rate in (0.0, 0.333, 1.0, 0.0546)] == ["0 %", "33.3 %", "100 %", "5.46 %"]


@given(st.text())
def test_nothing_invisible_is_left(value: str) -> None:
    shown = text.visible(value)
    assert all(c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in shown)
    assert text.visible(shown) == shown
    assert "\n" not in text.visible(value, multiline=False)


def test_what_is_made_visible() -> None:
    assert text.visible("a\x00\x1b[0m\u202e\x7f\x9b\ud800") == "a\u2400\u241b[0m\u27e8U+202E\u27e9\u2421" + (
        "\u27e8U+009B\u27e9\u27e8U+D800\u27e9"
    )
    assert text.visible("a\n\tb") == "a\n\tb"
    assert text.visible("a\n\tb", multiline=False) == "a\u240a\u2409b"
    assert text.visible("übermäßig 漢字 ✓") == "übermäßig 漢字 ✓"


@given(st.text(max_size=3000))
def test_a_line_is_bounded(value: str) -> None:
    assert len(text.line(value, 100)) <= 160 * 9
    assert "\n" not in text.line(value, 100)


def test_a_block_keeps_both_ends_and_counts_the_rest() -> None:
    shown = text.block("\n".join(f"line {i}" for i in range(1000)), lines=4)
    assert shown.split("\n") == ["line 0", "line 1", "[... 996 lines left out ...]", "line 998", "line 999"]
    tail = text.block("\n".join(f"line {i}" for i in range(1000)), lines=2, head=False)
    assert tail.split("\n") == ["[... 998 lines left out ...]", "line 998", "line 999"]
    assert text.block("x" * 10**6, lines=4) == "x" * 240 + " [... +999760 characters]"
    assert text.block("one\n", lines=4) == "one"


def test_markdown_is_inert() -> None:
    shown = text.markdown(HOSTILE)
    for live in ("<script", "\n", "\x1b", "\u202e", "\x00", "http://", "www.e"):
        assert live not in shown
    assert "\\|" in shown
    assert "\\`x\\`" in shown
    assert "\\[a\\](http&#58;//evil) !\\[b\\]" in shown


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("# title", "\\# title"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("-0.5", "-0.5"),
        ("1.5x", "1.5x"),
        ("rms_norm", "rms_norm"),
        ("_emphasis_", "\\_emphasis\\_"),
        ("> quote", "&gt; quote"),
        ("@someone", "&#64;someone"),
    ],
)
def test_markdown_keeps_plain_words_readable(value: str, expected: str) -> None:
    assert text.markdown(value) == expected


@given(st.text(alphabet="`~a\n", max_size=40))
def test_a_fence_is_not_closed_from_inside(value: str) -> None:
    lines = text.fenced(value).split("\n")
    fence = lines[0]
    assert set(fence) == {"`"}
    assert lines[-1] == fence
    assert not any(line.strip().startswith(fence) for line in lines[1:-1])
