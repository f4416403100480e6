"""Document text from the lines of pages: paragraphs, lists and headings, in one section per page, also of scans."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, takewhile
from statistics import median
from typing import Any

from rag.reading.layout.tables import Line, Word, arrange_lines
from rag.text import UNSURE, clean_line, clean_text, detect_language, lazy_regex, letters_and_digits, weigh

_EDGE_LINES = 3
"""Lines at a page's start and end, in text order, that may be running heads."""
_SAME_HEIGHT = 8.0
_DIGITS = lazy_regex(r"\d+")
_ROMAN = lazy_regex(r"[ivxlc]{1,7}", re.IGNORECASE)
_BULLET = lazy_regex(r"[•◦‣▪▫■□●○·⁃–—*-](?:\s+|$)")
_NUMBERED = lazy_regex(r"(?:\(?\d{1,3}[.)]|\(?[a-z][.)]|[（(]?[一二三四五六七八九十]{1,3}[、）)])\s*\S")
_HYPHENATED = lazy_regex(r"(?<!\w)(\w++)(?<=[^\W\d_])[-\u00ad\u2010]$")
_LEADERS = lazy_regex(r"(?<![.·…])(?<![.·…]\s)(?:[.·…]\s?+){4,}+\s*+(?=\S{0,6}$)")
_WORD = lazy_regex(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_WIDE_END = lazy_regex("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\u3000-\u303f]$")
_SENTENCE_END = lazy_regex(r"[.!?:;。！？：；…][\"'”’」』）)\]]*$")
_HEADING_SIZE = 1.14
_MAX_HEADING = 160
_LONGEST_WORD = 80
_FULL_LINE_SHARE = 0.72
"""Lines of at least this share of the usual width continue in the next one."""


def drop_running_heads(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Drop headers, footers and page numbers: lines at the same height on the edges of several pages."""
    largest = _HEADING_SIZE * measure_body_size(pages)  # a larger line is a heading, even at the top of each page
    places: dict[str, list[float]] = {}
    for page in pages:
        for pattern, line in {_mask_numbers(line): line for line in _get_edges(page) if line.size < largest}.items():
            places.setdefault(pattern, []).append(line.y)
    minimum = 2 if len(pages) <= 3 else 3
    heights_of_heads = {pattern: _find_common_height(heights, minimum) for pattern, heights in places.items()}
    return [_drop_heads(page, heights_of_heads) for page in pages]


def measure_body_size(pages: Sequence[Sequence[Line]]) -> float:
    """Return the most common font size of a document's characters, or 0 if it has none."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[line.size] += 0 if line.is_table else len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def measure_width(lines: Iterable[Line], share: float) -> float:
    """Return the length (see `weigh`) that a share of the lines does not exceed, or 0 without lines."""
    lengths = sorted(weigh(line.text) for line in lines if not line.is_table)
    return lengths[int(share * (len(lengths) - 1))] if lengths else 0.0


@dataclass(frozen=True, slots=True)
class Layout:
    """Properties of a document used to read its lines: body size, usual width, words, table-of-contents titles.

    `words`, in lower case, tell whether a word that is hyphenated at a line end keeps its hyphen.
    """

    size: float
    width: float
    words: frozenset[str]
    titles: frozenset[str] = frozenset()

    def is_heading(self, line: Line) -> bool:
        """Return whether a line is larger than the body text, or is in the table of contents."""
        if (
            line.is_code
            or len(line.text) > _MAX_HEADING
            or _LEADERS.search(line.text)
            or not re.search(r"[^\W\d_]", line.text)
        ):
            return False
        return line.size >= _HEADING_SIZE * self.size or letters_and_digits(line.text) in self.titles

    def blocks(self, lines: Sequence[Line]) -> list[tuple[str, str]]:
        """Return (kind, text) blocks: "heading", "text", "list", "item", "code" or "table"; text may be multi-line."""
        width = max(measure_width(lines, 0.85), 0.8 * self.width)
        gap = _find_line_spacing(lines)
        result: list[tuple[str, str]] = []
        last: Line | None = None
        for line in lines:
            kind = self._kind(line)
            if last is not None and self._continues(result[-1], kind, last, line, gap):
                result[-1] = (result[-1][0], self._join(result[-1], last, line, width))
            else:
                result.append((kind, _BULLET.sub("", line.text) if kind == "list" else line.text))
            last = line
        as_is = ("code", "table")
        return [(kind, text if kind in as_is else _LEADERS.sub("… ", text)) for kind, text in result if text.strip()]

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

    def _continues(self, block: tuple[str, str], kind: str, last: Line, line: Line, gap: float) -> bool:
        if block[0] == "heading":
            near = abs(last.y - line.y) <= 2.2 * max(line.size, 1.0)
            return kind == "heading" and last.size == line.size and near and len(block[1]) < _MAX_HEADING
        if "code" in (block[0], kind):
            return block[0] == kind
        if kind != "text" or block[0] == "table" or UNSURE in f"{last.text}{line.text}":
            return False
        if gap and line.y - last.y > 1.45 * gap:  # at the top of the next column
            return last.size == line.size and not _SENTENCE_END.search(last.text)
        if gap and abs(last.y - line.y) > 1.45 * gap:
            return False
        if block[0] == "list" and line.x < last.x - 0.3 * line.size:
            return False
        is_indented = line.x > last.x + 0.8 * line.size and _SENTENCE_END.search(last.text)
        return not (is_indented and block[0] == "text")

    def _join(self, block: tuple[str, str], last: Line, line: Line, width: float) -> str:
        """Append a line to a block: rejoin a hyphenated word, and add no space next to Chinese characters."""
        kind, text = block
        divided = _HYPHENATED.search(text[-_LONGEST_WORD:])  # in time independent of the length of the block
        is_short = kind == "text" and weigh(last.text) < _FULL_LINE_SHARE * width
        if kind == "code" or (is_short and not divided):
            return f"{text}\n{line.text}"
        if divided and line.text[:1].islower():
            start, end = divided[1].lower(), re.match(r"[^\W\d_]*", line.text)
            tail = end[0].lower() if end else ""
            keeps_hyphen = f"{start}-{tail}" in self.words and f"{start}{tail}" not in self.words
            return f"{text[:-1]}{'-' if keeps_hyphen else ''}{line.text}"
        if not text or _WIDE_END.search(text[-1:]) or re.match("[\u2e80-\u9fff\uff00-\uffef]", line.text):
            return text + line.text
        return f"{text} {line.text}"


def _mask_numbers(line: Line) -> str:
    text = line.text.strip(" -–—|·")
    return "#" if _ROMAN.fullmatch(text) else _DIGITS.sub("#", text)


def _get_edges(page: Sequence[Line]) -> list[Line]:
    return [
        line for line in [*page[:_EDGE_LINES], *page[max(_EDGE_LINES, len(page) - _EDGE_LINES) :]] if not line.is_table
    ]


def _find_common_height(heights: Sequence[float], minimum: int) -> float | None:
    """Return the height that at least `minimum` pages share, or None."""
    ascending = sorted(heights)
    for first, last in zip(ascending, ascending[minimum - 1 :], strict=False):
        if last - first <= _SAME_HEIGHT:
            return (first + last) / 2
    return None


def _drop_heads(page: Sequence[Line], heights: dict[str, float | None]) -> list[Line]:
    edges = {id(line) for line in _get_edges(page)}
    remaining = []
    for line in page:
        height = heights.get(_mask_numbers(line)) if id(line) in edges else None
        if height is None or abs(line.y - height) > _SAME_HEIGHT:
            remaining.append(line)
    return remaining or list(page)


def _find_line_spacing(lines: Sequence[Line]) -> float:
    """Return a page's most common line spacing, in its units, or 0 if unknown."""
    gaps = [round(abs(line.y - following.y), 1) for line, following in pairwise(lines)]
    counts = Counter(gap for gap in gaps if gap > 0.5)
    return counts.most_common(1)[0][0] if len(lines) > 3 and counts else 0.0


@dataclass(frozen=True, slots=True)
class Document:
    """A document's text in Markdown, its language, and its largest lines, which may be its title."""

    text: str
    language: str
    title_candidate: str


def build_document(
    pages: Sequence[Sequence[Line]], titles: frozenset[str] = frozenset(), confidence: Mapping[int, float] | None = None
) -> Document:
    """Build a document from its pages; `titles` are those of its table of contents, normalised by `letters_and_digits`.

    `confidence` maps pages (from 1) read by text recognition to the mean confidence (0 to 1) in their letters.
    """
    body = drop_running_heads(pages)
    width = measure_width(chain.from_iterable(body), 0.6)
    # The last word of a line may be the first half of another.
    words = frozenset(word.lower() for page in body for line in page for word in _WORD.findall(line.text)[:-1])
    layout = Layout(measure_body_size(body), width, words, titles)
    language = detect_language(" ".join(line.text for page in body[:50] for line in page))
    text = clean_text("\n\n".join(_iter_sections(layout, body, language, confidence or {})))
    return Document(text, language, _find_title_candidate(pages[0], layout.size))


def format_heading(text: str) -> str:
    return clean_line(text.replace("\n", " "), 120)


def _iter_sections(
    layout: Layout, pages: Sequence[Sequence[Line]], language: str, confidence: Mapping[int, float]
) -> Iterator[str]:
    """Yield a section for each page with text, titled with the heading that it continues, if any."""
    part = ""
    for number, lines in enumerate(pages, 1):
        blocks = layout.blocks(lines)
        if not blocks:
            continue
        name = f"第 {number} 页" if language == "zh" else f"Page {number}"
        if number in confidence:
            share = f"{confidence[number]:.0%}"
            name += f" · 由 OCR 识别（把握 {share}）" if language == "zh" else f" · read by OCR ({share} sure)"
        is_continued = part and blocks[0][0] != "heading"
        yield f"## {name} · {part}" if is_continued else f"## {name}"
        yield from _render(blocks)
        part = next((format_heading(text) for kind, text in reversed(blocks) if kind == "heading"), part)


def _render(blocks: Sequence[tuple[str, str]]) -> Iterator[str]:
    items: list[str] = []
    for kind, text in [*blocks, ("", "")]:
        if kind == "list":
            items.append("- " + text.replace("\n", "\n  "))
            continue
        if items:
            yield "\n".join(items)
            items = []
        if kind == "heading":
            yield f"### {format_heading(text)}"
        elif kind == "code":
            yield f"```\n{text}\n```"
        elif kind == "table":
            yield text
        elif text:
            # Lines may happen to start with Markdown syntax.
            yield "\n".join("\\" + line if line.startswith(("#", "|", "```")) else line for line in text.split("\n"))


def _find_title_candidate(page: Sequence[Line], size: float) -> str:
    """Return the first page's largest line and up to three more of its size as a title; "" if it is body text."""
    candidates = [line for line in page if any(character.isalpha() for character in line.text)]
    top = max((line.size for line in candidates), default=0.0)
    if top <= size * 1.05:
        return ""
    first = next(i for i, line in enumerate(page) if line.size == top and line in candidates)
    largest = takewhile(lambda line: line.size == top, page[first : first + 4])
    return format_heading(" ".join(line.text for line in largest))


_MIN_LETTERS = 5
"""A page with fewer letters and digits counts as empty."""
_MIN_SCORE = 0.6
_SURE_SCORE = 0.8
_SAME_SIZE = (0.7, 1.35)
"""Letters within these factors of the usual size count as that size, since boxes are inexact."""
_MIN_LINES = 3
_MIN_FILL = 0.6
_MAX_CROSSING = 0.2
_MARGIN = 0.2


RecognizedPages = Mapping[str, Sequence[Sequence[Any]]]
"""The lines that `rag.reading.ocr` found, by page number (a string, as JSON requires)."""


@dataclass(frozen=True, slots=True)
class Scans:
    """The mean confidence (0 to 1) in the letters of each recognised page by number, and the quality gate's signals."""

    confidence: dict[int, float]
    signals: tuple[str, ...]


def has_letters(page: Sequence[Line]) -> bool:
    """Return whether a page has text."""
    return sum(character.isalnum() for line in page for character in line.text) >= _MIN_LETTERS


def add_scans(pages: list[list[Line]], recognized: RecognizedPages) -> Scans:
    """Replace the lines of recognised pages in `pages`."""
    confidence: dict[int, float] = {}
    signals: set[str] = set()
    for name, items in recognized.items():
        lines, share = _read_lines(items)
        if has_letters(lines):
            pages[int(name) - 1] = lines
            confidence[int(name)] = share
            signals |= {"ocr", "ocr_low"} if any(UNSURE in line.text for line in lines) else {"ocr"}
    return Scans(confidence, tuple(sorted(signals)))


def _read_lines(items: Sequence[Sequence[Any]]) -> tuple[list[Line], float]:
    """Return a page's lines and the mean confidence in their letters; drop lines with a score below _MIN_SCORE."""
    rows = [(score, y, size, words) for score, y, size, words in items if score >= _MIN_SCORE and words]
    letters = sum(len(word) for _, _, _, words in rows for word, _, _ in words)
    if not letters:
        return [], 0.0
    usual = median(size for _, _, size, _ in rows)
    smallest, largest = (factor * usual for factor in _SAME_SIZE)
    lines = []
    for score, y, size, words in rows:
        line = [Word(text, x, end, y, usual if smallest <= size <= largest else size) for text, x, end in words]
        if score < _SURE_SCORE:
            line[-1] = replace(line[-1], text=f"{line[-1].text} {UNSURE}")
        lines.append(line)
    confidence = sum(score * len(word) for score, _, _, words in rows for word, _, _ in words) / letters
    blocks = [_join_rows(block) for block in _iter_blocks(sorted(lines, key=lambda line: -line[0].y), 0)]
    return [
        line for line_rows in blocks for line in arrange_lines(line_rows, [], [], [False] * len(line_rows))
    ], confidence


def _join_rows(lines: Sequence[list[Word]]) -> list[list[Word]]:
    """Join lines at the same height into rows, from top to bottom."""
    rows: list[list[Word]] = []
    for line in lines:
        if rows and rows[-1][0].y - line[0].y < 0.5 * min(rows[-1][0].size, line[0].size):
            rows[-1] += [replace(word, y=rows[-1][0].y) for word in line]
        else:
            rows.append(list(line))
    return [sorted(row, key=lambda word: word.x) for row in rows]


def _iter_blocks(lines: list[list[Word]], depth: int) -> Iterator[list[list[Word]]]:
    """Yield blocks of lines in reading order: of two columns, the left one comes first."""
    gutter = _find_gutter(lines) if depth < 3 else None
    if gutter is None:
        yield lines
        return
    sides: tuple[list[list[Word]], list[list[Word]]] = ([], [])
    for line in [*lines, []]:
        if line and not line[0].x < gutter < line[-1].end:
            sides[line[0].x >= gutter].append(line)
            continue
        for side in sides:
            if side:
                yield from _iter_blocks(list(side), depth + 1)
                side.clear()
        if line:
            yield [line]


def _find_gutter(lines: Sequence[list[Word]]) -> float | None:
    """Return the x position of a gutter between two text columns that few lines cross, or None."""
    if len(lines) < 2 * _MIN_LINES:
        return None
    left, right = min(line[0].x for line in lines), max(line[-1].end for line in lines)
    inner = left + _MARGIN * (right - left), right - _MARGIN * (right - left)
    size = median(line[0].size for line in lines)
    places = {line[0].x - 0.4 * size for line in lines if inner[0] < line[0].x < inner[1]}
    crossings = ((sum(line[0].x < place < line[-1].end for line in lines), place) for place in places)
    crossing, gutter = min(crossings, default=(len(lines), left))
    if crossing > _MAX_CROSSING * len(lines):
        return None
    sides = [line for line in lines if line[-1].end <= gutter], [line for line in lines if line[0].x >= gutter]
    return gutter if all(map(_is_column, sides)) else None


def _is_column(lines: Sequence[list[Word]]) -> bool:
    """Return whether lines fill their width, as in a column of text but not of a table."""
    if len(lines) < _MIN_LINES:
        return False
    width = max(line[-1].end for line in lines) - min(line[0].x for line in lines)
    letters = median(sum(len(word.text) for word in line) for line in lines)
    return letters > 12 and median(line[-1].end - line[0].x for line in lines) > _MIN_FILL * width
