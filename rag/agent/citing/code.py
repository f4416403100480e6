"""Code within an answer: where it stands, and what is code though nothing marks it as such.

In code a number in brackets is an index and an address a part of a command: neither is touched.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rag.text import fenced_blocks

_TICKS = re.compile(r"`+")
_AHEAD: Final = 40  # runs of backticks after which one is taken to be left open
_INDEXED = re.compile(
    r"(?<![\w`.])(?P<word>[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){0,5})"
    r"(?P<first>\[(?P<index>[^\[\]`\n]{1,40})\])(?P<rest>(?:\[[^\[\]`\n]{1,40}\]|\([^()\[\]`\s]{0,60}\)|\.[a-z_]\w{0,60}){0,8})",
    re.ASCII,
)
_ASSIGNED = re.compile(r"\s{0,2}(?:[-+*/|&]?=(?![=>])|==|<-)")
_ASSIGNS = re.compile(r"[\w\])]\s{0,2}(?::=|[-+*/]?=)\s{0,2}$")
_DOTTED = re.compile(r"\.(?!(?:html?|json|info|yaml|jpeg|tiff|docx|xlsx|pptx|toml)$)[a-z_]\w{3,}$")
_ADDRESS = re.compile(r"^\(\W*(?:[a-z][a-z0-9+.-]*:|www\.|[/#.])|^\([^)]*\.[a-z]{2,}(?:[/?#)]|$)", re.IGNORECASE)

_ENDS = re.compile(r"[*_]{0,3}\s{0,2}(?:[.,;:!?。，；：！？、]|\Z|\n)")

Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Known:
    """The text of the pages, their code alone, and how many they are: what a mark can name."""

    text: str
    code: str
    count: int


def code_spans(text: str) -> list[tuple[int, int]]:
    """Spans of fenced blocks and of code within lines, with their fences and backticks, in order."""
    spans: list[tuple[int, int]] = []
    at = 0
    for start, end in fenced_blocks(text):
        spans += [*_inline(text, at, start), (start, end)]
        at = end
    return [*spans, *_inline(text, at, len(text))]


def _inline(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    runs = list(_TICKS.finditer(text, start, end))
    place = 0
    while place < len(runs):
        opening = runs[place]
        length = len(opening.group())
        ahead = range(place + 1, min(len(runs), place + 1 + _AHEAD))
        closing = next((i for i in ahead if len(runs[i].group()) == length), None)
        if closing is None or "\n\n" in text[opening.end() : runs[closing].start()]:
            place += 1
            continue
        yield opening.start(), runs[closing].end()
        place = closing + 1


def inside(spans: Spans, at: int) -> bool:
    place = bisect_right(spans, (at, float("inf"))) - 1
    return place >= 0 and spans[place][0] <= at < spans[place][1]


def outside_code(pattern: re.Pattern[str], change: Callable[[re.Match[str]], str], text: str) -> str:
    """`text` with every match of `pattern` changed that does not begin in code."""
    spans = code_spans(text)
    return pattern.sub(lambda match: match.group() if inside(spans, match.start()) else change(match), text)


def with_code_marked(text: str, pages: Sequence[str]) -> str:
    """`text` with what is plainly code in backticks, so that nothing takes its index for a mark or a link.

    An index behind a word is code where its shape says so, or where the text of `pages` has it as code.
    """
    if not _INDEXED.search(text):
        return text
    known = _Known("\n".join(pages), "\n".join(page[a:b] for page in pages for a, b in code_spans(page)), len(pages))
    return outside_code(_INDEXED, lambda match: f"`{match.group()}`" if _is_code(match, known) else match.group(), text)


def _is_code(match: re.Match[str], known: _Known) -> bool:
    index, rest, whole = match["index"], match["rest"], match.group()
    if rest.startswith("("):
        return not _ADDRESS.match(rest) and not index.isdecimal()
    if not index.isdecimal():
        return False
    if whole in known.code or int(index) == 0 or "[0]" in rest or rest.startswith(".") or re.search(r"\[\D", rest):
        return True
    if "_" in match["word"] or _DOTTED.search(match["word"]):
        return whole in known.text or int(index) > known.count or not _ENDS.match(match.string, match.end())
    before = match.string[max(0, match.start() - 8) : match.start()]
    return bool(_ASSIGNED.match(match.string, match.end()) or _ASSIGNS.search(before))
