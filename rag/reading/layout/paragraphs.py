"""From the lines of a document's pages to paragraphs: running heads gone, words and sentences whole again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag.reading.layout.words import Line
from rag.text import UNSURE, weigh

_EDGE = 3
"""How many lines from a page's beginning and end may be running heads, in the order of its text."""
_SAME_HEIGHT = 8.0
_DIGITS = re.compile(r"\d+")
_ROMAN = re.compile(r"[ivxlc]{1,7}", re.IGNORECASE)
_BULLET = re.compile(r"[•◦‣▪▫■□●○·⁃–—*-](?:\s+|$)")
_NUMBERED = re.compile(r"(?:\(?\d{1,3}[.)]|\(?[a-z][.)]|[（(]?[一二三四五六七八九十]{1,3}[、）)])\s*\S")
_HYPHENATED = re.compile(r"(?<!\w)(\w++)(?<=[^\W\d_])[-\u00ad\u2010]$")
_LEADERS = re.compile(r"(?<![.·…])(?<![.·…]\s)(?:[.·…]\s?+){4,}+\s*+(?=\S{0,6}$)")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_WIDE_END = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\u3000-\u303f]$")
_SENTENCE_END = re.compile(r"[.!?:;。！？：；…][\"'”’」』）)\]]*$")
_HEADING_SIZE = 1.14
_MAX_HEADING = 160
_LONGEST_WORD = 80
_FULL = 0.72
"""A line of at least this share of the page's usual width goes on in the next one."""


def without_running_heads(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """The pages without what stands in the same place at the edge of several: heads, feet, page numbers."""
    largest = _HEADING_SIZE * body_size(pages)  # what is larger is a heading, though it may stand at each page's top
    places: dict[str, list[float]] = {}
    for page in pages:
        for pattern, line in {_pattern(line): line for line in _edges(page) if line.size < largest}.items():
            places.setdefault(pattern, []).append(line.y)
    needed = 2 if len(pages) <= 3 else 3
    running = {pattern: _one_place(heights, needed) for pattern, heights in places.items()}
    return [_without(page, running) for page in pages]


def body_size(pages: Sequence[Sequence[Line]]) -> float:
    """The size that most characters of a document are set in; 0 without any."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[line.size] += 0 if line.is_table else len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def usual_width(pages: Sequence[Sequence[Line]]) -> float:
    """The length of a document's fuller lines, in Latin characters' worth; 0 without any."""
    lengths = sorted(_length(line) for page in pages for line in page if not line.is_table)
    return lengths[int(0.6 * (len(lengths) - 1))] if lengths else 0.0


def vocabulary(pages: Sequence[Sequence[Line]]) -> frozenset[str]:
    """The words that stand within lines, by which a word that was divided at a line's end is known again."""
    words = {word.lower() for page in pages for line in page for word in _WORD.findall(line.text)[:-1]}
    return frozenset(words)


@dataclass(frozen=True, slots=True)
class Layout:
    """What a whole document says about how its lines are to be read."""

    size: float
    width: float
    words: frozenset[str]
    titles: frozenset[str] = frozenset()

    def is_heading(self, line: Line) -> bool:
        """Whether a line is set larger than the body, or is in the document's own table of contents."""
        if (
            line.is_code
            or len(line.text) > _MAX_HEADING
            or _LEADERS.search(line.text)
            or not re.search(r"[^\W\d_]", line.text)
        ):
            return False
        return line.size >= _HEADING_SIZE * self.size or plain(line.text) in self.titles

    def blocks(self, lines: Sequence[Line]) -> list[tuple[str, str]]:
        """The page as (kind, text): "heading", "text", "list" or "code"; a text may hold several lines."""
        width = max(_usual_width(lines), 0.8 * self.width)
        gap = _usual_gap(lines)
        found: list[tuple[str, str]] = []
        last: Line | None = None
        for line in lines:
            kind = self._kind(line)
            if last is not None and found and self._goes_on(found[-1], kind, last, line, width, gap):
                joined = self._joined(found[-1], last, line, width)
                found[-1] = (found[-1][0], joined)
            else:
                found.append((kind, _BULLET.sub("", line.text) if kind == "list" else line.text))
            last = line
        as_is = ("code", "table")
        return [(kind, text if kind in as_is else _LEADERS.sub("… ", text)) for kind, text in found if text.strip()]

    def _kind(self, line: Line) -> str:
        if line.is_table:
            return "table"
        if line.is_code:
            return "code"
        if self.is_heading(line):
            return "heading"
        if _BULLET.match(line.text):
            return "list"
        return "item" if _LEADERS.search(line.text) or _NUMBERED.match(line.text) else "text"

    def _goes_on(self, block: tuple[str, str], kind: str, last: Line, line: Line, width: float, gap: float) -> bool:
        if block[0] == "heading":
            near = abs(last.y - line.y) <= 2.2 * max(line.size, 1.0)
            return kind == "heading" and last.size == line.size and near and len(block[1]) < _MAX_HEADING
        if "code" in (block[0], kind):
            return block[0] == kind
        if kind != "text" or block[0] == "table" or UNSURE in f"{last.text}{line.text}":
            return False
        if gap and abs(last.y - line.y) > 1.45 * gap:
            return False
        if block[0] == "list" and line.x < last.x - 0.3 * line.size:
            return False
        is_indented = line.x > last.x + 0.8 * line.size and _SENTENCE_END.search(last.text)
        return not (is_indented and block[0] == "text")

    def _joined(self, block: tuple[str, str], last: Line, line: Line, width: float) -> str:
        kind, text = block
        if kind == "code":
            return f"{text}\n{line.text}"
        if kind == "text" and _length(last) < _FULL * width and not _divided(text):
            return f"{text}\n{line.text}"
        if not text:
            return line.text
        return self._sewn(text, line.text)

    def _sewn(self, text: str, more: str) -> str:
        """Two lines as one: a divided word put together, no space between Chinese characters."""
        divided = _divided(text)
        if divided and more[:1].islower():
            start, end = divided[1].lower(), re.match(r"[^\W\d_]*", more)
            tail = end[0].lower() if end else ""
            keeps = f"{start}-{tail}" in self.words and f"{start}{tail}" not in self.words
            return f"{text[:-1]}{'-' if keeps else ''}{more}"
        if _WIDE_END.search(text[-1:]) or re.match("[\u2e80-\u9fff\uff00-\uffef]", more):
            return text + more
        return f"{text} {more}"


def _divided(text: str) -> re.Match[str] | None:
    """The word that a hyphen divides at the end of a text, however long that is."""
    return _HYPHENATED.search(text[-_LONGEST_WORD:])


def plain(text: str) -> str:
    """Letters and digits of a heading, to compare it with a table of contents."""
    return re.sub(r"[\W_]+", "", text).lower()


def _pattern(line: Line) -> str:
    text = line.text.strip(" -–—|·")
    return "#" if _ROMAN.fullmatch(text) else _DIGITS.sub("#", text)


def _edges(page: Sequence[Line]) -> list[Line]:
    return [line for line in [*page[:_EDGE], *page[max(_EDGE, len(page) - _EDGE) :]] if not line.is_table]


def _one_place(heights: Sequence[float], needed: int) -> float | None:
    """The height at which a line stands on as many pages as needed; None when there is none."""
    ordered = sorted(heights)
    for first, last in zip(ordered, ordered[needed - 1 :], strict=False):
        if last - first <= _SAME_HEIGHT:
            return (first + last) / 2
    return None


def _without(page: Sequence[Line], running: dict[str, float | None]) -> list[Line]:
    edges = {id(line) for line in _edges(page)}
    kept = [line for line in page if not (id(line) in edges and _runs(line, running.get(_pattern(line))))]
    return kept or list(page)


def _runs(line: Line, place: float | None) -> bool:
    return place is not None and abs(line.y - place) <= _SAME_HEIGHT


def _length(line: Line) -> float:
    return weigh(line.text)


def _usual_width(lines: Sequence[Line]) -> float:
    """The length that full lines of a page have, in Latin characters' worth."""
    lengths = sorted(_length(line) for line in lines if not line.is_table)
    return lengths[int(0.85 * (len(lengths) - 1))] if lengths else 0.0


def _usual_gap(lines: Sequence[Line]) -> float:
    """The distance between two lines of a paragraph, in the page's units; 0 when it cannot be told."""
    gaps = [round(abs(one.y - other.y), 1) for one, other in pairwise(lines)]
    counted = Counter(gap for gap in gaps if gap > 0.5)
    return counted.most_common(1)[0][0] if len(lines) > 3 and counted else 0.0
