"""pdfium's view of a PDF page: its words, line by line, and the straight lines drawn on it."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rag.patterns import lazy_regex
from rag.reading.layout.rules import Box
from rag.reading.layout.words import RAISED_SHARE, Word, append_raised, rotate

if TYPE_CHECKING:
    from pypdfium2 import PdfPage, PdfTextPage

_MONOSPACED = lazy_regex(rb"courier|mono|consol|menlo|typewriter|cmtt|sftt|lmtt|inconsolata", re.IGNORECASE)
_HYPHENS = "\x02\ufffe"
"""pdfium's characters for a hyphen that divides a word at the end of a line; no line end follows."""
_PIECE = lazy_regex(rf"[^\s{_HYPHENS}]+[{_HYPHENS}]?|[{_HYPHENS}]|\n")
_ALEF_LAM = lazy_regex("[اأإآ]ل")
MAX_LINES = 20_000
"""Max. lines of a page; real pages have about a hundred."""
_MAX_OBJECTS = 10_000
_SAMPLE = 100


class PageText:
    """The words that pdfium finds on a page."""

    def __init__(self, text: PdfTextPage, limit: int) -> None:
        """Read up to `limit` characters."""
        import pypdfium2.raw as pdfium

        self._pdfium, self._text = pdfium, text.raw
        self._first, self._last, self._matrix = pdfium.FS_RECTF(), pdfium.FS_RECTF(), pdfium.FS_MATRIX()
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self._name, self._flags = ctypes.create_string_buffer(100), ctypes.c_int()
        self._count = min(pdfium.FPDFText_CountChars(text), limit)
        self._characters = _ALEF_LAM.sub(self._order_letters, self._read_text())

    def lines(self) -> list[list[Word]]:
        """Return the words of each line in drawing order."""
        return list(islice(_group_lines(self._iter_words()), MAX_LINES))

    def is_code(self, word: Word) -> bool:
        """Return whether a word is in a monospaced font."""
        self._pdfium.FPDFText_GetFontInfo(self._text, word.start, self._name, len(self._name), self._flags)
        return bool(_MONOSPACED.search(self._name.value))

    def unmapped_share(self) -> float:
        """Return the share of characters whose meaning no font defines, based on a sample."""
        sample = range(0, self._count, max(1, self._count // _SAMPLE))
        wrong = [i for i in sample if self._pdfium.FPDFText_HasUnicodeMapError(self._text, i) == 1]
        return len(wrong) / max(1, len(sample))

    def _read_text(self) -> str:
        """Return the page's characters, each at its index; pdfium's text of a page omits some."""
        buffer = (ctypes.c_ushort * (self._count + 1))()
        size = self._pdfium.FPDFText_GetText(self._text, 0, self._count, buffer)
        text = bytes(buffer).decode("utf-16-le", "replace")[: max(0, size - 1)]
        if len(text) == self._count:
            return text
        return "".join([chr(self._pdfium.FPDFText_GetUnicode(self._text, i)) for i in range(self._count)])

    def _iter_words(self) -> Iterator[Word | None]:
        """Yield the page's words, and None at each line end of pdfium."""
        for match in _PIECE.finditer(self._characters):
            if match[0] != "\n":
                yield self._build_word(match[0], match.start())
            if match[0][-1] in _HYPHENS or match[0] == "\n":
                yield None

    def _build_word(self, text: str, start: int) -> Word:
        pdfium, page, matrix, first, last = self._pdfium, self._text, self._matrix, self._first, self._last
        pdfium.FPDFText_GetLooseCharBox(page, start, first)
        pdfium.FPDFText_GetLooseCharBox(page, start + len(text) - 1, last)
        pdfium.FPDFText_GetMatrix(page, start, matrix)
        size = pdfium.FPDFText_GetFontSize(page, start) * math.hypot(matrix.c, matrix.d)
        turn = round(math.degrees(math.atan2(matrix.b, matrix.a)))
        x, end = min(first.left, last.left), max(first.right, last.right)
        if turn:
            corners = [(box.left, box.bottom) for box in (first, last)] + [(b.right, b.top) for b in (first, last)]
            x, *_, end = sorted(rotate(*corner, turn)[0] for corner in corners)
        y = self._get_height(start, turn)
        if text[-1] in _HYPHENS:
            text = text[:-1] + "-"
        digits = len(text.rstrip(".,;:)]"))
        if (
            digits > 1
            and text[digits - 1].isdigit()
            and self._get_height(start + digits - 1, turn) > y + RAISED_SHARE * size
        ):
            at = next(i for i in range(1, digits) if self._get_height(start + i, turn) > y + RAISED_SHARE * size)
            text = append_raised(text[:at], text[at:digits]) + text[digits:]
        return Word(text, x, end, y, size, turn, start)

    def _get_height(self, at: int, turn: int) -> float:
        self._pdfium.FPDFText_GetCharOrigin(self._text, at, self._x, self._y)
        return rotate(self._x.value, self._y.value, turn)[1]

    def _order_letters(self, match: re.Match[str]) -> str:
        """Return alef and lam in order: pdfium reverses those of one glyph, as in لا."""
        places = []
        for at in (match.start(), match.start() + 1):
            self._pdfium.FPDFText_GetCharOrigin(self._text, at, self._x, self._y)
            places.append((self._x.value, self._y.value))
        return match[0][::-1] if places[0] == places[1] else match[0]


def _group_lines(words: Iterable[Word | None]) -> Iterator[list[Word]]:
    """Group words by line. pdfium ends a line at a superscript number, and sometimes between two cells of a row."""
    line: list[Word] = []
    has_ended = False
    for word in words:
        if word is None:
            has_ended = True
            continue
        if line and (word.turn != line[0].turn or (has_ended and not _continues_line(line, word))):
            yield line
            line = []
        line.append(word)
        has_ended = False
    if line:
        yield line


def _continues_line(line: Sequence[Word], word: Word) -> bool:
    """Return whether a word after a line end still belongs to that line."""
    last, size = line[-1], max(line[0].size, word.size)
    is_behind = word.x >= last.end - 0.3 * size and last.text[-1:] != "-"
    if abs(word.y - line[0].y) <= RAISED_SHARE * size:
        return is_behind
    is_small = word.size < size or last.size < size
    return is_behind and is_small and abs(word.y - line[0].y) < 0.6 * size and word.x - last.end < size


def find_strokes(page: PdfPage) -> Iterator[Box]:
    """Yield the horizontal and vertical lines, and the rectangles, that a page draws."""
    import pypdfium2.raw as pdfium

    sides = [ctypes.c_float() for _ in range(4)]
    raw_page = page.raw
    for i in range(min(pdfium.FPDFPage_CountObjects(raw_page), _MAX_OBJECTS)):
        item = pdfium.FPDFPage_GetObject(raw_page, i)
        if pdfium.FPDFPageObj_GetType(item) != pdfium.FPDF_PAGEOBJ_PATH:
            continue
        if pdfium.FPDFPath_CountSegments(item) <= 5:
            pdfium.FPDFPageObj_GetBounds(item, *sides)
            yield sides[0].value, sides[1].value, sides[2].value, sides[3].value
        else:
            yield from _find_segments(pdfium, item)


def _find_segments(pdfium: Any, item: Any) -> Iterator[Box]:
    """Yield the horizontal and vertical segments of a longer path."""
    matrix, x, y = pdfium.FS_MATRIX(), ctypes.c_float(), ctypes.c_float()
    pdfium.FPDFPageObj_GetMatrix(item, matrix)
    previous = 0.0, 0.0
    for i in range(min(pdfium.FPDFPath_CountSegments(item), _MAX_OBJECTS)):
        segment = pdfium.FPDFPath_GetPathSegment(item, i)
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        current = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        is_straight = abs(current[0] - previous[0]) < 1 or abs(current[1] - previous[1]) < 1
        if is_straight and pdfium.FPDFPathSegment_GetType(segment) == pdfium.FPDF_SEGMENT_LINETO:
            yield (*previous, *current)
        previous = current
