"""Rewrites what only a GPU compiler reads, so that g++ can build a HIP source for the CPU target.

Three things are not C++: the launch ``kernel<<<grid, block>>>(...)``, ``extern __shared__ T name[];`` and the
``__noinline__`` keyword. Each is replaced inside its own lines, so compiler messages keep the user's line numbers.

Uses the standard library only: the build runs this file by itself, as ``python chevrons.py SOURCE RESULT``.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

_TOKEN = re.compile(
    r"""
    (?P<blank>\s+|\\\r?\n|//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<literal>(?:u8|[uUL])?R"(?P<mark>[^\s()\\"]{0,16})\(.*?\)(?P=mark)"
      |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:[eEpP][+-]|'[\w]|[\w.])*)
  | (?P<word>[^\W\d]\w*)
  | (?P<mark_>::|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSE = {close: opening for opening, close in _OPEN.items()}
_TEMPLATE_MARKS = frozenset({"::", ",", "*", "&", "-", "+"})
_KEYWORDS = frozenset({"return", "else", "do", "if", "while", "for", "switch"})
_ATTRIBUTES = frozenset({"alignas", "__align__", "__attribute__"})
_CLASS_WORDS = frozenset({"struct", "class", "union", "enum"})


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    is_word: bool
    in_directive: bool

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass
class _Source:
    """The tokens of one text, and the replacements by position that are applied together at the end."""

    text: str
    tokens: list[_Token]
    edits: list[tuple[int, int, str]] = field(default_factory=list)

    def replace(self, first: int, last: int, text: str) -> None:
        """Replaces the tokens from index `first` to `last`, line breaks between them excepted."""
        start, end = self.tokens[first].start, self.tokens[last].end
        self.edits.append((start, end, text + "".join(re.findall(r"\\?\n", self.text[start:end]))))

    def insert(self, at: int, text: str) -> None:
        self.edits.append((self.tokens[at].start, self.tokens[at].start, text))

    def edited(self) -> str:
        parts, position = [], 0
        for start, end, text in sorted(self.edits, key=lambda edit: edit[:2]):
            parts += [self.text[position:start], text]
            position = end
        return "".join([*parts, self.text[position:]])

    def is_at(self, i: int, marks: str) -> bool:
        """True when these marks stand at token i with nothing between them."""
        part = self.tokens[i : i + len(marks)]
        return "".join(token.text for token in part) == marks and part[-1].end - part[0].start == len(marks)

    def word_at(self, i: int) -> str:
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def error(self, at: int, message: str) -> ValueError:
        line = self.text.count("\n", 0, self.tokens[at].start) + 1
        return ValueError(f"line {line}: {message}")


def rewrite(source: str) -> str:
    """Turns kernel launches and dynamic shared memory into the macros of the CPU headers.

    Args:
        source: Text of one HIP source or header. Comments, strings and shifts stay as they are.

    Returns:
        The text for the C++ compiler, with the same number of lines; unchanged if there was nothing to rewrite.

    Raises:
        ValueError: A launch is not closed, or has no kernel or no arguments; the message starts with the line number.
    """
    work = _Source(source, _tokens(source))
    in_function = _function_scopes(work.tokens)
    for i, token in enumerate(work.tokens):
        if token.text == "<" and _is_launch(work, i):
            _rewrite_launch(work, i)
        elif token.text == "__shared__":
            _rewrite_shared(work, i, in_function[i])
        elif token.text == "__noinline__" and work.word_at(i - 1) not in ("(", ","):
            work.replace(i, i, "__attribute__((__noinline__))")
    return work.edited()


def _tokens(source: str) -> list[_Token]:
    """Words, numbers, literals and single marks, without blanks and comments."""
    result: list[_Token] = []
    in_directive, at_line_start = False, True
    for match in _TOKEN.finditer(source):
        if match["blank"] is not None:
            if "\n" in match[0] and not match[0].startswith(("\\", "/*")):
                in_directive, at_line_start = False, True
            continue
        in_directive = in_directive or (at_line_start and match[0] == "#")
        at_line_start = False
        result.append(_Token(match[0], match.start(), match["word"] is not None, in_directive))
    return result


def _is_launch(work: _Source, i: int) -> bool:
    if i == 0 or not work.is_at(i, "<<<") or work.is_at(i, "<<<<") or work.is_at(i - 1, "<<<<"):
        return False
    before = work.tokens[i - 1]
    return before.text != "operator" and (before.is_word or before.text in (">", ")", "]"))


def _rewrite_launch(work: _Source, i: int) -> None:
    first = _kernel_start(work, i)
    close, commas = _configuration(work, i)
    if not 1 <= len(commas) <= 3:
        raise work.error(i, f"a launch takes 2 to 4 settings between <<< and >>>, found {len(commas) + 1}")
    opening = close + 3
    if work.word_at(opening) != "(":
        raise work.error(close, "expected ( with the kernel's arguments after >>>")
    end = _closing(work, opening)
    if end is None:
        raise work.error(opening, "the ( of a kernel launch is not closed")
    work.insert(first, "hipLaunchKernelGGL((")
    work.replace(i, i + 2, "), dim3(")
    for comma, text in zip(commas, ("), dim3(", "), (", "), ("), strict=False):
        work.replace(comma, comma, text)
    work.replace(close, close + 2, {1: "), 0, 0", 2: "), 0", 3: ")"}[len(commas)])
    work.replace(opening, opening, "" if end == opening + 1 else ", ")


def _kernel_start(work: _Source, i: int) -> int:
    """Goes back from <<< over ``ns::kernel<T, 4>``, ``object.kernel``, ``(kernel)`` or ``kernels[2]``."""
    tokens, at = work.tokens, i - 1
    while at >= 0:
        while at >= 0 and tokens[at].text in (">", "]"):
            at = (_angle_start(tokens, at) if tokens[at].text == ">" else _group_start(tokens, at)) - 1
        if at >= 0 and tokens[at].text == ")":
            at = _group_start(tokens, at)
            before = work.word_at(at - 1)
            if at < 0 or not before.isidentifier() or before in _KEYWORDS:
                break
            at -= 1
        if at < 0 or not tokens[at].is_word:
            raise work.error(i, "cannot find the kernel before <<<")
        if work.word_at(at - 1) == "template":
            at -= 1
        link, owner = work.word_at(at - 1), work.word_at(at - 2)
        if link not in ("::", ".", "->"):
            break
        if not (owner.isidentifier() or owner in (">", ")", "]")) or owner in _KEYWORDS:
            at -= 1  # ::kernel
            break
        at -= 2
    if at < 0:
        raise work.error(i, "cannot find the kernel before <<<")
    return at


def _group_start(tokens: list[_Token], at: int) -> int:
    """Index of the bracket that the one at `at` closes, or -1."""
    depth = 0
    for j in range(at, -1, -1):
        depth += (tokens[j].text in _CLOSE) - (tokens[j].text in _OPEN)
        if depth == 0:
            return j
    return -1


def _angle_start(tokens: list[_Token], at: int) -> int:
    """Index of the < that the > at `at` closes, or -1."""
    depth = 0
    while at >= 0:
        text = tokens[at].text
        if text in _CLOSE:
            at = _group_start(tokens, at)
        elif text == ";" or text in _OPEN:
            return -1
        depth += (text == ">") - (text == "<")
        if depth == 0:
            return at
        at -= 1
    return -1


def _closing(work: _Source, at: int) -> int | None:
    """Index of the bracket that closes the one at `at`."""
    depth = 0
    for j in range(at, len(work.tokens)):
        depth += (work.tokens[j].text in _OPEN) - (work.tokens[j].text in _CLOSE)
        if depth == 0:
            return j
    return None


def _configuration(work: _Source, i: int) -> tuple[int, list[int]]:
    """Index of the first > of >>>, and of the commas that part the settings."""
    at, commas = i + 3, list[int]()
    while at < len(work.tokens):
        text = work.tokens[at].text
        if text == ">" and work.is_at(at, ">>>"):
            return at, commas
        if text in _CLOSE or text == ";":
            break
        if text == ",":
            commas.append(at)
        elif text == "<":
            at = _template_end(work, at) or at
        elif text in _OPEN:
            end = _closing(work, at)
            if end is None:
                break
            at = end
        at += 1
    raise work.error(i, "the <<< of a kernel launch is not closed by >>>")


def _template_end(work: _Source, at: int) -> int | None:
    """Index of the > that ends template arguments such as ``<int, 4>`` in ``f<int, 4>(n)``; None for a comparison."""
    depth = 0
    for j in range(at, len(work.tokens)):
        token = work.tokens[j]
        if token.text in ("<", ">"):
            depth += 1 if token.text == "<" else -1
            if depth == 0:
                return j if work.word_at(j + 1) in ("(", "::", "{") and work.tokens[at - 1].is_word else None
        elif not (token.is_word or token.text[0].isdigit() or token.text in _TEMPLATE_MARKS):
            return None
    return None


def _function_scopes(tokens: list[_Token]) -> list[bool]:
    """For each token: does it stand inside a function, and not only in namespaces and classes?"""
    result: list[bool] = []
    stack, head = [False], list[str]()
    for token in tokens:
        if token.in_directive:
            result.append(True)  # a macro's text ends up in functions
            continue
        if token.text == "}" and len(stack) > 1:
            stack.pop()
        result.append(stack[-1])
        if token.text == "{":
            is_class = not {"(", "="}.intersection(head) and not _CLASS_WORDS.isdisjoint(head)
            is_namespace = "namespace" in head or head == ["extern", '"C"']
            stack.append(stack[-1] or not (is_class or is_namespace))
        head = [] if token.text in ("{", "}", ";") else [*head[-200:], token.text]
    return result


def _rewrite_shared(work: _Source, at: int, in_function: bool) -> None:
    """Rewrites one ``__shared__`` declaration if it is ``extern``, or says ``alignas`` where g++ does not take it."""
    first = at
    while first > 0:
        before = work.tokens[first - 1].text
        group = _group_start(work.tokens, first - 1) if before == ")" else -1
        if group > 0 and work.tokens[group - 1].text in _ATTRIBUTES:
            first = group - 1
        elif before in ("extern", "static", "const", "volatile"):
            first -= 1
        else:
            break
    bracket = at + 1
    while bracket < len(work.tokens) and work.tokens[bracket].text not in ("[", ";", "=", "{", "}"):
        bracket += 1
    words = {token.text for token in work.tokens[first:bracket]}
    if "extern" in words and work.is_at(bracket, "[]"):
        _rewrite_dynamic(work, first, bracket, in_function)
    else:
        for i in range(first, bracket):
            if work.tokens[i].text == "alignas":
                work.replace(i, i, "__align__")


def _rewrite_dynamic(work: _Source, first: int, bracket: int, in_function: bool) -> None:
    """``extern __shared__ T name[]`` becomes a pointer in a function, and an object that converts to one elsewhere."""
    name = bracket - 1
    i = type_start = first
    while i < len(work.tokens):
        text = work.tokens[i].text
        if text in _ATTRIBUTES and work.word_at(i + 1) == "(" and (end := _closing(work, i + 1)) is not None:
            work.replace(i, end, "")
            i = end
        elif text in ("extern", "static", "__shared__"):
            work.replace(i, i, "")
        elif i == bracket:
            work.replace(i, i + 1, " = HIP_ON_CPU_DYNAMIC_SHARED" if in_function else "")
            i += 1
        elif i > bracket:
            break
        elif type_start == first and i < name:
            type_start = i
            if not in_function:
                work.insert(i, "static hip_on_cpu::DynamicShared<")
        i += 1
    work.insert(name, "*" if in_function else "> ")


def main(arguments: list[str]) -> int:
    """Rewrites the file SOURCE into the file RESULT, whose compiler messages name SOURCE."""
    if len(arguments) != 2:
        print("usage: chevrons.py SOURCE RESULT", file=sys.stderr)
        return 2
    source = Path(arguments[0])
    try:
        text = rewrite(source.read_text(encoding="utf-8"))
    except ValueError as error:
        print(f"{source.name}: {error}", file=sys.stderr)
        return 1
    Path(arguments[1]).write_text(f'#line 1 "{source.name}"\n{text}', encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
