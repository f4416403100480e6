"""The renderer of page text with highlighted spans, and the search for a question's words in it.

Of the Markdown that extraction leaves, headings become bold, list items get bullets, and quotations, tables, code and
struck-through parts keep their form, so that a passage looks as it does in its page. Everything else is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from rag.text import is_chinese, lazy_regex, split_sentences, terms
from rag.types import Citation, Passage
from rag.ui.kit.markdown import code_block, escape, markdown_table

HEADING = lazy_regex(r"[ \t]{0,3}#{1,6}[ \t]+")
BULLET = lazy_regex(r"(?<![ \t])[ \t]*+[-*+][ \t]++")
_QUOTATION = lazy_regex(r"[ \t]*+(?:>(?:[ \t]++|\Z))++(?!\d)")  # without numbers: "> 5 kg" is a comparison
ROW = lazy_regex(r"[ \t]*\|.*\|[ \t]*")
RULE = lazy_regex(r"[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*")
_FENCE = lazy_regex(r"[ \t]*(```+|~~~+)([^`]*)")
_STRUCK = lazy_regex(r"(?<!\\~)\\~\\~(?!\s|\\~)((?:[^\\\n]|\\[^~])++)(?<!\s)\\~\\~(?!\\~)")  # after `escape`
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
"""The pattern of a number that is not part of another one, such as 6.20 or 1,600; it may touch Chinese words."""
_NUMBER = lazy_regex(_ALONE.format(r"\d+(?:[.,:]\d+)*+"))


@dataclass(frozen=True, slots=True)
class _Span:
    """Text with the non-empty spans to highlight, as (start, end) in order."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()

    def cut(self, left: int, right: int) -> _Span:
        """Return the part from `left` to `right`, stripped of white space."""
        text = self.text[left:right]
        left += len(text) - len(text.lstrip())
        return _Span(text.strip(), _clip(self.marks, left, left + len(text.strip())))

    def markdown(self) -> str:
        parts: list[str] = []
        at = 0
        for start, end in self.marks:
            if highlight := self.text[start:end].strip():
                parts += [_escape(self.text[at:start]), f":yellow-background[{_escape(highlight)}]"]
                at = end
        return "".join([*parts, _escape(self.text[at:])])


def _escape(text: str) -> str:
    """Escape all but struck-through parts (`~~…~~`), such as a former price."""
    return _STRUCK.sub(r"~~\1~~", escape(text))


def _clip(marks: Iterable[tuple[int, int]], left: int, right: int) -> tuple[tuple[int, int], ...]:
    """Return the marks within `left` to `right`, relative to `left`."""
    clipped = ((max(start, left) - left, min(end, right) - left) for start, end in marks)
    return tuple((start, end) for start, end in clipped if start < end)


def passage_markdown(text: str, *highlights: tuple[int, int] | None) -> str:
    """Return page text as Streamlit Markdown, with `text[start:end]` highlighted for each of `highlights`, in order."""
    marks = tuple(span for span in highlights if span)
    lines, place = list[_Span](), 0
    for line in text.split("\n"):
        lines.append(_Span(line, _clip(marks, place, place + len(line))))
        place += len(line) + 1
    blocks: list[str] = []
    for kind, group in groupby(zip(_kinds(lines), lines, strict=True), lambda pair: pair[0]):
        block = [line for _, line in group]
        if kind == "row":
            blocks.append(_table(block))
        elif kind == "code":
            blocks.append(_code(block))
        elif kind == "text":
            blocks += _paragraphs(block)
    return "\n\n".join(filter(None, blocks))


def text_height(text: str, pixels: int, characters: int, lines: int) -> int | Literal["content"]:
    """Return the height of a text's container: `content` for short text, else `pixels`, with scrolling."""
    return pixels if len(text) > characters or text.count("\n") > lines else "content"


def _kinds(lines: Sequence[_Span]) -> Iterator[str]:
    """Yield `text`, `row` (of a table), `code` or `fence` for each line; the text may start inside a code block."""
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


def _paragraphs(lines: Iterable[_Span]) -> Iterator[str]:
    """Yield a paragraph for each line; the further lines of a list item stay with its first."""
    paragraph = ""
    for line in lines:
        content = _line(line)
        if paragraph and content and line.text.startswith("  ") and not BULLET.match(line.text):
            paragraph += f"\\\n{content}"
        else:
            yield paragraph
            paragraph = content
    yield paragraph


def _line(line: _Span) -> str:
    if quotation := _QUOTATION.match(line.text):
        inner = _line(line.cut(quotation.end(), len(line.text)))
        return f"> {inner}" if inner else ""
    heading, bullet = HEADING.match(line.text), BULLET.match(line.text)
    lead = heading or bullet
    body = line.cut(len(lead[0]) if lead else 0, len(line.text))
    content = body.markdown()
    if heading and content:
        return f"**{content}**"
    return f"• {content}" if bullet and content else content


def _code(lines: list[_Span]) -> str:
    """Return a code block, or plain lines if part of it is highlighted, which a code block cannot show."""
    if any(line.text[start:end].strip() for line in lines for start, end in line.marks):
        return "\\\n".join(filter(None, (line.cut(0, len(line.text)).markdown() for line in lines)))
    text = "\n".join(line.text for line in lines)
    return code_block(text) if text.strip() else ""


def _table(rows: list[_Span]) -> str:
    """Return a Markdown table, or plain lines without a delimiter row, as in a later part of a long table.

    Only one of the first two rows can be the delimiter row: a later row of dashes has empty cells.
    """
    rules = [place for place, row in enumerate(rows[:2]) if RULE.fullmatch(row.text)]
    rule = rules[-1] if rules else None
    cells = [
        [row.cut(*match.span(1)).markdown() for match in CELL.finditer(row.text)]
        for place, row in enumerate(rows)
        if place != rule
    ]
    if rule == 1:
        return markdown_table(cells)
    return "\n\n".join(" · ".join(filter(None, row)) for row in cells)


def term_spans(question: str, text: str) -> list[Span]:
    """Return the spans of `text` that match content words of `question`, in order, merged if they touch.

    Latin words match with common endings, Chinese text by pairs of characters, and numbers as a whole.
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
    """Return the span of about `size` characters of `text` that has most of the words in `spans`.

    Of several, it is the one at the beginning of `text`, else the last that begins with a sentence, else with a word.
    """
    if len(text) <= size:
        return 0, len(text)
    sentences = {0, *(start for start, _ in split_sentences(text))}

    def rank(left: int) -> tuple[int, bool, bool, int]:
        found = {text[start:end].lower() for start, end in spans if left <= start and end <= left + size}
        return len(found), left in sentences, left == 0, left

    left = max(sentences | {start for start, _ in spans}, key=rank)
    right = min(left + size, len(text))
    while right < len(text) and text[right].isascii() and text[right].isalnum():
        right += 1
    return left, right


# Sources

PageNow = Literal["newer", "gone", "off_site"]


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """A span of a page, shown next to the answer that cites it; `n` is its mark, `passage` has the text around it."""

    n: int
    library: str
    location: Citation | Passage
    passage: Passage | None = None
    state: PageNow | None = None

    @property
    def quote(self) -> str:
        return self.location.quote if isinstance(self.location, Citation) else self.location.text
