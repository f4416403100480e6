"""The renderer for page text, with spans of it highlighted, and the spans of a question's words.

Of the Markdown that extraction leaves, headings are bold, list items have bullets, and tables and code keep their form,
so that a passage reads as it does in its page. Nothing else is read as Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from rag.patterns import lazy_regex
from rag.text import is_chinese, split_sentences, terms
from rag.ui.kit.markdown import code_block, escape

HEADING = lazy_regex(r"[ \t]{0,3}#{1,6}[ \t]+")
BULLET = lazy_regex(r"(?<![ \t])[ \t]*+[-*+][ \t]++")
ROW = lazy_regex(r"[ \t]*\|.*\|[ \t]*")
RULE = lazy_regex(r"[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*")
_FENCE = lazy_regex(r"[ \t]*(```+|~~~+)([^`]*)")
CELL = lazy_regex(r"(?<=\|)((?:[^|\\]|\\.)*)(?=\|)")
Span = tuple[int, int]
_COMMON = frozenset(
    "a an and are as at be by can do does did for from had has have how i if in into is it its long many may me "
    "much must my not of often on one or our shall should so some such than that the their them then there these "
    "they this those to was we were what when where which who whom whose why will with would you your".split()
)
_COMMON_HAN = frozenset("的了是在和与或吗呢吧啊几多少什么哪怎样如何为谁其应该可以能会要有个最被把就都而也请问")
_ENDINGS = r"(?:s|es|ed|d|ing|ly)?"
_ALONE = r"(?<![^\W_\u4e00-\u9fff])(?<!\d[.,:]){}(?![.,:]?\d)(?![^\W_\u4e00-\u9fff])"
"""A number that is no part of another one, such as 6.20 or 1,600; a Chinese word may touch it."""
_NUMBER = lazy_regex(_ALONE.format(r"\d+(?:[.,:]\d+)*+"))


@dataclass(frozen=True, slots=True)
class _Span:
    """A piece of text with the parts of it to highlight, as (start, end) in order, none empty."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()

    def cut(self, left: int, right: int) -> _Span:
        """Return the piece from `left` to `right`, without the white space at its ends."""
        text = self.text[left:right]
        left += len(text) - len(text.lstrip())
        return _Span(text.strip(), _clip(self.marks, left, left + len(text.strip())))

    @property
    def has_marks(self) -> bool:
        return any(self.text[start:end].strip() for start, end in self.marks)

    def markdown(self) -> str:
        parts: list[str] = []
        at = 0
        for start, end in self.marks:
            if has_marks := self.text[start:end].strip():
                parts += [escape(self.text[at:start]), f":yellow-background[{escape(has_marks)}]"]
                at = end
        return "".join([*parts, escape(self.text[at:])])


def _clip(marks: Iterable[tuple[int, int]], left: int, right: int) -> tuple[tuple[int, int], ...]:
    """Return the marks within `left` to `right`, relative to `left`."""
    clipped = ((max(start, left) - left, min(end, right) - left) for start, end in marks)
    return tuple((start, end) for start, end in clipped if start < end)


def passage_markdown(text: str, *highlights: tuple[int, int] | None) -> str:
    """Return page text as Streamlit Markdown, with `text[start:end]` highlighted for each of `highlights`, in order."""
    marks = tuple(span for span in highlights if span)
    lines = list(_lines(text, marks))
    blocks: list[str] = []
    for kind, group in groupby(zip(_kinds(lines), lines, strict=True), lambda pair: pair[0]):
        block = [line for _, line in group]
        if kind == "row":
            blocks.append(_table(block))
        elif kind == "code":
            blocks.append(_code(block))
        elif kind == "text":
            blocks += [_line(line) for line in block]
    return "\n\n".join(filter(None, blocks))


def text_height(text: str, pixels: int, characters: int, lines: int) -> int | Literal["content"]:
    """Return the height of a text: short ones take the room they need, long ones scroll."""
    return pixels if len(text) > characters or text.count("\n") > lines else "content"


def _kinds(lines: Sequence[_Span]) -> Iterator[str]:
    """Yield `text`, `row` of a table, `code`, or `fence` around code, for each line; a text may start within code."""
    fences = [fence for line in lines if (fence := _FENCE.fullmatch(line.text))]
    opened = "```" if len(fences) % 2 and lines[0].text.startswith("…") and not fences[0][2].strip() else ""
    for line in lines:
        fence = _FENCE.fullmatch(line.text)
        if fence and not opened:
            opened = fence[1]
            yield "fence"
        elif fence and fence[1].startswith(opened) and not fence[2].strip():
            opened = ""
            yield "fence"
        else:
            yield "code" if opened else "row" if ROW.fullmatch(line.text) else "text"


def _lines(text: str, marks: tuple[tuple[int, int], ...]) -> Iterator[_Span]:
    place = 0
    for line in text.split("\n"):
        yield _Span(line, _clip(marks, place, place + len(line)))
        place += len(line) + 1


def _line(line: _Span) -> str:
    heading, bullet = HEADING.match(line.text), BULLET.match(line.text)
    lead = heading or bullet
    body = line.cut(len(lead[0]) if lead else 0, len(line.text))
    content = body.markdown()
    if heading and content:
        return f"**{content}**"
    return f"• {content}" if bullet and content else content


def _code(lines: list[_Span]) -> str:
    """Return a code block; if part of it is highlighted, which a block cannot show, its lines as text."""
    if any(line.has_marks for line in lines):
        return "\\\n".join(filter(None, (line.cut(0, len(line.text)).markdown() for line in lines)))
    text = "\n".join(line.text for line in lines)
    return code_block(text) if text.strip() else ""


def _table(rows: list[_Span]) -> str:
    """Return a Markdown table; rows without the rule under a header, as in a later part of a long table, as lines.

    Only one of the first two rows can be the rule: a later row of dashes has empty cells.
    """
    rules = [place for place, row in enumerate(rows[:2]) if RULE.fullmatch(row.text)]
    rule = rules[-1] if rules else None
    cells = [
        [row.cut(*match.span(1)).markdown() for match in CELL.finditer(row.text)]
        for place, row in enumerate(rows)
        if place != rule
    ]
    if rule != 1:
        return "\n\n".join(" · ".join(filter(None, row)) for row in cells)
    width = max(map(len, cells))
    lines = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in cells]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def term_spans(question: str, text: str) -> list[Span]:
    """Return the spans of `text` with a content word of `question`, in order, none touching another.

    Latin words match with their common endings, Chinese by pairs of characters, and numbers as a whole.
    """
    texts = [term for term in dict.fromkeys(terms(question)) if not term.isdecimal() and not _is_common(term)]
    numbers = dict.fromkeys(_NUMBER.findall(question))
    patterns = [*map(_term_pattern, texts), *(_ALONE.format(re.escape(number)) for number in numbers)]
    matches = sorted(match.span() for pattern in patterns for match in re.finditer(pattern, text, re.IGNORECASE))
    merged: list[Span] = []
    for start, end in matches:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _is_common(term: str) -> bool:
    if is_chinese(term):
        return any(sign in _COMMON_HAN for sign in term)
    return term in _COMMON or len(term) == 1


def _term_pattern(term: str) -> str:
    if is_chinese(term):
        return re.escape(term)
    stem = re.sub(r"(?:s|es|ed|ing)$", "", term) if len(term) > 4 else term
    return rf"(?<![^\W_]){re.escape(stem)}{_ENDINGS if term.isalpha() else ''}(?![^\W_])"


def best_window(text: str, spans: Sequence[Span], size: int) -> Span:
    """Return about `size` characters of `text` with the most of `spans`: its beginning, else from the latest sentence
    on that keeps them."""
    if len(text) <= size:
        return 0, len(text)
    starts = [0, *(start for start, _ in split_sentences(text))]
    counts = [len(_words_within(text, spans, start, start + size)) for start in starts]
    first = counts.index(max(counts))
    while first and first + 1 < len(starts) and counts[first + 1] == counts[first]:
        first += 1
    left = starts[first]
    right = min(left + size, len(text))
    while right < len(text) and text[right].isascii() and text[right].isalnum():
        right += 1
    return left, right


def _words_within(text: str, spans: Sequence[Span], left: int, right: int) -> set[str]:
    return {text[start:end].lower() for start, end in spans if left <= start and end <= right}
