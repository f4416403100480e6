"""What pdfium tells of a PDF's page: its words, line by line, and the straight lines that it draws."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rag.reading.layout.rules import Box
from rag.reading.layout.words import RAISED, Word, raised, turned

if TYPE_CHECKING:
    from pypdfium2 import PdfPage, PdfTextPage

_MONOSPACED = re.compile(rb"courier|mono|consol|menlo|typewriter|cmtt|sftt|lmtt|inconsolata", re.IGNORECASE)
_HYPHENS = "\x02\ufffe"
"""What pdfium makes of a hyphen that divides a word at a line's end; no line end follows it."""
_PIECE = re.compile(rf"[^\s{_HYPHENS}]+[{_HYPHENS}]?|[{_HYPHENS}]|\n")
_ALEF_LAM = re.compile("[اأإآ]ل")
MAX_LINES = 20_000
"""Lines of a page; a page for people has some hundred."""
_MAX_OBJECTS = 10_000
_SAMPLE = 100


class PageText:
    """The words that pdfium finds on a page."""

    def __init__(self, text: PdfTextPage, limit: int) -> None:
        """At most `limit` characters are read."""
        import pypdfium2.raw as pdfium

        self._pdfium, self._text = pdfium, text.raw
        self._first, self._last, self._matrix = pdfium.FS_RECTF(), pdfium.FS_RECTF(), pdfium.FS_MATRIX()
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self._name, self._flags = ctypes.create_string_buffer(100), ctypes.c_int()
        self._count = min(pdfium.FPDFText_CountChars(text), limit)
        self._characters = _ALEF_LAM.sub(self._in_order, self._read())

    def lines(self) -> list[list[Word]]:
        """The words of each line in the order in which they are drawn."""
        return list(islice(_grouped(self._words()), MAX_LINES))

    def is_code(self, word: Word) -> bool:
        """Whether a word is set in a typewriter's letters."""
        self._pdfium.FPDFText_GetFontInfo(self._text, word.start, self._name, len(self._name), self._flags)
        return bool(_MONOSPACED.search(self._name.value))

    def unmapped(self) -> float:
        """The share of the characters that no font says the meaning of, by a sample."""
        sample = range(0, self._count, max(1, self._count // _SAMPLE))
        wrong = [i for i in sample if self._pdfium.FPDFText_HasUnicodeMapError(self._text, i) == 1]
        return len(wrong) / max(1, len(sample))

    def _read(self) -> str:
        """The page's characters, each at its number; the text that pdfium makes of a page leaves some of them out."""
        buffer = (ctypes.c_ushort * (self._count + 1))()
        size = self._pdfium.FPDFText_GetText(self._text, 0, self._count, buffer)
        text = bytes(buffer).decode("utf-16-le", "replace")[: max(0, size - 1)]
        if len(text) == self._count:
            return text
        return "".join([chr(self._pdfium.FPDFText_GetUnicode(self._text, i)) for i in range(self._count)])

    def _words(self) -> Iterator[Word | None]:
        """The page's words; None where pdfium ends a line."""
        for found in _PIECE.finditer(self._characters):
            if found[0] != "\n":
                yield self._word(found[0], found.start())
            if found[0][-1] in _HYPHENS or found[0] == "\n":
                yield None

    def _word(self, text: str, start: int) -> Word:
        pdfium, page, matrix, first, last = self._pdfium, self._text, self._matrix, self._first, self._last
        pdfium.FPDFText_GetLooseCharBox(page, start, first)
        pdfium.FPDFText_GetLooseCharBox(page, start + len(text) - 1, last)
        pdfium.FPDFText_GetMatrix(page, start, matrix)
        size = pdfium.FPDFText_GetFontSize(page, start) * math.hypot(matrix.c, matrix.d)
        turn = round(math.degrees(math.atan2(matrix.b, matrix.a)))
        x, end = min(first.left, last.left), max(first.right, last.right)
        if turn:
            corners = [(box.left, box.bottom) for box in (first, last)] + [(b.right, b.top) for b in (first, last)]
            x, *_, end = sorted(turned(*corner, turn)[0] for corner in corners)
        y = self._height(start, turn)
        if text[-1] in _HYPHENS:
            text = text[:-1] + "-"
        digits = len(text.rstrip(".,;:)]"))
        if digits > 1 and text[digits - 1].isdigit() and self._height(start + digits - 1, turn) > y + RAISED * size:
            at = next(i for i in range(1, digits) if self._height(start + i, turn) > y + RAISED * size)
            text = raised(text[:at], text[at:digits]) + text[digits:]
        return Word(text, x, end, y, size, turn, start)

    def _height(self, at: int, turn: int) -> float:
        self._pdfium.FPDFText_GetCharOrigin(self._text, at, self._x, self._y)
        return turned(self._x.value, self._y.value, turn)[1]

    def _in_order(self, found: re.Match[str]) -> str:
        """Alef and lam in their order: pdfium writes those of one glyph, as in لا, backwards."""
        places = []
        for at in (found.start(), found.start() + 1):
            self._pdfium.FPDFText_GetCharOrigin(self._text, at, self._x, self._y)
            places.append((self._x.value, self._y.value))
        return found[0][::-1] if places[0] == places[1] else found[0]


def _grouped(words: Iterable[Word | None]) -> Iterator[list[Word]]:
    """Words by line. pdfium ends a line at a raised number, and sometimes between two cells of a row."""
    line: list[Word] = []
    has_ended = False
    for word in words:
        if word is None:
            has_ended = True
            continue
        if line and (word.turn != line[0].turn or (has_ended and not _goes_on(line, word))):
            yield line
            line = []
        line.append(word)
        has_ended = False
    if line:
        yield line


def _goes_on(line: Sequence[Word], word: Word) -> bool:
    """Whether a word behind a line's end stands on that line all the same."""
    last, size = line[-1], max(line[0].size, word.size)
    is_behind = word.x >= last.end - 0.3 * size and last.text[-1:] != "-"
    if abs(word.y - line[0].y) <= RAISED * size:
        return is_behind
    is_small = word.size < size or last.size < size
    return is_behind and is_small and abs(word.y - line[0].y) < 0.6 * size and word.x - last.end < size


def straight_pieces(page: PdfPage) -> Iterator[Box]:
    """The level and upright pieces, and the rectangles, that a page draws."""
    import pypdfium2.raw as pdfium

    sides = [ctypes.c_float() for _ in range(4)]
    drawn = page.raw
    for i in range(min(pdfium.FPDFPage_CountObjects(drawn), _MAX_OBJECTS)):
        item = pdfium.FPDFPage_GetObject(drawn, i)
        if pdfium.FPDFPageObj_GetType(item) != pdfium.FPDF_PAGEOBJ_PATH:
            continue
        if pdfium.FPDFPath_CountSegments(item) <= 5:
            pdfium.FPDFPageObj_GetBounds(item, *sides)
            yield sides[0].value, sides[1].value, sides[2].value, sides[3].value
        else:
            yield from _segments(pdfium, item)


def _segments(pdfium: Any, item: Any) -> Iterator[Box]:
    """The level and upright pieces of a path of many."""
    matrix, x, y = pdfium.FS_MATRIX(), ctypes.c_float(), ctypes.c_float()
    pdfium.FPDFPageObj_GetMatrix(item, matrix)
    before = 0.0, 0.0
    for i in range(min(pdfium.FPDFPath_CountSegments(item), _MAX_OBJECTS)):
        segment = pdfium.FPDFPath_GetPathSegment(item, i)
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        here = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        is_straight = abs(here[0] - before[0]) < 1 or abs(here[1] - before[1]) < 1
        if is_straight and pdfium.FPDFPathSegment_GetType(segment) == pdfium.FPDF_SEGMENT_LINETO:
            yield (*before, *here)
        before = here
