"""Numbers and hostile text, made fit to be read: rounded once, bounded, and without invisible characters."""

from __future__ import annotations

import html
import re
import unicodedata

_PLAIN = re.compile(r"[\x20-\x7e\n\t]*")
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u034f")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_MARKUP = re.compile(r"[\\`*\[\]~|$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def rounded(value: float, digits: int = 3) -> float:
    """Round to significant digits."""
    return float(f"{value:.{digits}g}")


def number(value: float | int | None) -> str:
    """Write an already rounded number in full, without an exponent where that is readable; null is a dash."""
    if value is None:
        return "\u2013"
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e7):
        return f"{int(value)}"
    return f"{value:f}".rstrip("0") if 1e-3 <= abs(value) < 1e7 else f"{value:g}"


def percent(rate: float) -> str:
    """Write a rounded rate in percent."""
    return f"{number(rounded(100 * rate, 4))} %"


def visible(text: str, *, multiline: bool = True) -> str:
    """Replace every control, bidirectional and other invisible character by something that can be seen.

    C0 controls become their pictures (ESC is ``\u241b``), everything else its code point in brackets. Newline and tab
    stay where ``multiline`` is true.
    """
    kept = "\n\t" if multiline else ""
    if _PLAIN.fullmatch(text) and (multiline or not ("\n" in text or "\t" in text)):
        return text
    return "".join(c if c in kept else _shown(c) for c in text)


def line(text: str, limit: int = 300) -> str:
    """Return one visible line of at most about ``limit`` characters; the middle of a longer text is left out."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]} [... {len(text) - 2 * half} characters left out ...] {text[-half:]}"
    return visible(text, multiline=False)


def block(text: str, *, lines: int, width: int = 240, head: bool = True) -> str:
    """Return visible text of bounded size.

    Args:
        text: Any text.
        lines: Most lines. Of more, the first and the last half are kept, or the last ones only.
        width: Most characters of a line; the rest of a longer one is counted.
        head: Whether the beginning is worth keeping; if not, only the end is kept.
    """
    found = text.removesuffix("\n").split("\n")
    if len(found) > lines:
        left_out = len(found) - lines
        first = lines // 2 if head else 0
        found = [*found[:first], f"[... {left_out} lines left out ...]", *found[first + left_out :]]
    cut = [f"{one[:width]} [... +{len(one) - width} characters]" if len(one) > width else one for one in found]
    return visible("\n".join(cut))


def markdown(text: str) -> str:
    """Escape one line of text so that Markdown shows it literally, in a table cell too."""
    escaped = html.escape(_MARKUP.sub(r"\\\g<0>", visible(text, multiline=False)), quote=False)
    # At the beginning of a line these would start a heading or a list, unless they belong to a number.
    if not re.match(r"-?\d*\.?\d", escaped) or re.match(r"\d+[.)](\s|$)", escaped):
        escaped = re.sub(r"^(\d*)([#+=.)-])", r"\1\\\2", escaped)
    # Bare addresses would become links.
    return re.sub(r"(?i)\bwww\.", "www&#46;", escaped.replace("://", "&#58;//")).replace("@", "&#64;")


def fenced(text: str, language: str = "") -> str:
    """Put text into a Markdown code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _shown(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if character in _FILLERS or unicodedata.category(character) in _INVISIBLE:
        return f"\u27e8U+{code:04X}\u27e9"
    return character
