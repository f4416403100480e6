"""Readers for PDF files (each page under a heading with its number, for citations) and pictures of text.

Pages are numbered from 1 in file order, as in `#page=12` of a URL, not by their printed numbers. Pictures are
photographs, screenshots and scans, read by text recognition.
"""

from __future__ import annotations

import ctypes
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

from rag.errors import IngestError
from rag.reading.extraction.metadata import (
    clean_author,
    clean_title,
    find_iso_date,
    site_from_url,
    title_from_url,
    too_long_error,
)
from rag.reading.layout.document import RecognizedPages, add_scans, build_document, format_heading, has_letters
from rag.reading.layout.tables import (
    RAISED_SHARE,
    Box,
    Line,
    Word,
    append_raised,
    arrange_lines,
    build_line,
    find_grids,
    normalize_glyphs,
    rotate,
)
from rag.reading.parser import ExtractedDocument
from rag.reading.quality import find_mojibake
from rag.text import lazy_regex, letters_and_digits
from rag.web.guard import printable
from rag.web.media import MAX_CHARACTERS

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage, PdfTextPage

logger = logging.getLogger(__name__)


# pdfium's view of a page: its words, line by line, and the straight lines drawn on it.

_MONOSPACED = lazy_regex(rb"courier|mono|consol|menlo|typewriter|cmtt|sftt|lmtt|inconsolata", re.IGNORECASE)
_HYPHENS = "\x02\ufffe"
"""pdfium's characters for a hyphen that divides a word at the end of a line; no line end follows."""
_PIECE = lazy_regex(rf"[^\s{_HYPHENS}]+[{_HYPHENS}]?|[{_HYPHENS}]|\n")
_ALEF_LAM = lazy_regex("[اأإآ]ل")
MAX_LINES = 20_000
"""Max. lines of a page; real pages have about a hundred."""
_MAX_OBJECTS = 10_000
_SAMPLE_SIZE = 100


class PageText:
    """The words that pdfium finds on a page."""

    def __init__(self, text: PdfTextPage) -> None:
        """Read up to MAX_CHARACTERS."""
        import pypdfium2.raw as pdfium

        self._pdfium, self._text = pdfium, text.raw
        self._first, self._last, self._matrix = pdfium.FS_RECTF(), pdfium.FS_RECTF(), pdfium.FS_MATRIX()
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self._name, self._flags = ctypes.create_string_buffer(100), ctypes.c_int()
        self._count = min(pdfium.FPDFText_CountChars(text), MAX_CHARACTERS)
        self._characters = _ALEF_LAM.sub(self._order_letters, self._read_text())

    def lines(self) -> list[list[Word]]:
        """Return the words of each line in drawing order."""
        return list(islice(_group_lines(self._iter_words()), MAX_LINES))

    def is_code(self, word: Word) -> bool:
        """Return whether a word is in a monospaced font."""
        self._pdfium.FPDFText_GetFontInfo(self._text, word.start, self._name, len(self._name), self._flags)
        return bool(_MONOSPACED.search(self._name.value))

    def unmapped_share(self) -> float:
        """Return the share of characters that no font maps to Unicode, based on a sample."""
        sample = range(0, self._count, max(1, self._count // _SAMPLE_SIZE))
        wrong = [i for i in sample if self._pdfium.FPDFText_HasUnicodeMapError(self._text, i) == 1]
        return len(wrong) / max(1, len(sample))

    def _read_text(self) -> str:
        """Return the page's characters, each at its pdfium index; FPDFText_GetText may omit some."""
        buffer = (ctypes.c_ushort * (self._count + 1))()
        size = self._pdfium.FPDFText_GetText(self._text, 0, self._count, buffer)
        text = bytes(buffer).decode("utf-16-le", "replace")[: max(0, size - 1)]
        if len(text) == self._count:
            return text
        return "".join([chr(self._pdfium.FPDFText_GetUnicode(self._text, i)) for i in range(self._count)])

    def _iter_words(self) -> Iterator[Word | None]:
        """Yield the page's words, and None wherever pdfium ends a line."""
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
        rotation = round(math.degrees(math.atan2(matrix.b, matrix.a)))
        x, end = min(first.left, last.left), max(first.right, last.right)
        if rotation:
            corners = [(box.left, box.bottom) for box in (first, last)] + [(b.right, b.top) for b in (first, last)]
            x, *_, end = sorted(rotate(*corner, rotation)[0] for corner in corners)
        y = self._get_origin(start, rotation)[1]
        if text[-1] in _HYPHENS:
            text = text[:-1] + "-"
        digits = len(text.rstrip(".,;:)]"))
        if (
            digits > 1
            and text[digits - 1].isdigit()
            and self._get_origin(start + digits - 1, rotation)[1] > y + RAISED_SHARE * size
        ):
            at = next(i for i in range(1, digits) if self._get_origin(start + i, rotation)[1] > y + RAISED_SHARE * size)
            text = append_raised(text[:at], text[at:digits]) + text[digits:]
        return Word(text, x, end, y, size, rotation, start)

    def _get_origin(self, at: int, rotation: int = 0) -> tuple[float, float]:
        """Return the position of a character along and across text rotated by `rotation` degrees."""
        self._pdfium.FPDFText_GetCharOrigin(self._text, at, self._x, self._y)
        return rotate(self._x.value, self._y.value, rotation)

    def _order_letters(self, match: re.Match[str]) -> str:
        """Return alef and lam in order: pdfium reverses those of one glyph, as in لا."""
        is_one_glyph = self._get_origin(match.start()) == self._get_origin(match.start() + 1)
        return match[0][::-1] if is_one_glyph else match[0]


def _group_lines(words: Iterable[Word | None]) -> Iterator[list[Word]]:
    """Group words by line. pdfium ends a line at a superscript number, and sometimes between two cells of a row."""
    line: list[Word] = []
    has_ended = False
    for word in words:
        if word is None:
            has_ended = True
            continue
        if line and (word.rotation != line[0].rotation or (has_ended and not _continues_line(line, word))):
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


def _find_strokes(page: PdfPage) -> Iterator[Box]:
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


# Pages and documents.

_MAX_ANNOTATIONS = 5000
_HIDDEN_FLAGS = 2 | 32
_PASSWORD_FLAG = 1 << 13
_MAX_FIELD_SIZE = 12.0


def _insert_fields(page: PdfPage, lines: list[list[Word]], rotation: int) -> list[list[Word]]:
    """Insert the contents of form fields and annotations into the page's lines, next to their labels."""
    result = [list(words) for words in lines]
    for text, (x, bottom, end, top) in _read_annotations(page, rotation):
        size = min(_MAX_FIELD_SIZE, 0.8 * (top - bottom))
        # A label is level with the middle of a one-line field, or with the first line of a larger one.
        rows = [n for n, words in enumerate(result) if bottom - 0.3 * size < words[0].y < top]
        row = min(rows, key=lambda n: _distance(result[n], x, end), default=None)
        y = result[row][0].y if row is not None else (bottom + top) / 2 - 0.3 * size
        field_words = [Word(word, x, end, y, size, rotation) for word in text.split()]
        if row is None:
            above = [n for n, words in enumerate(result) if words[0].y > y]
            result.insert(max(above, key=lambda n: -result[n][0].y) + 1 if above else 0, field_words)
        else:
            at = next((i for i, word in enumerate(result[row]) if word.x >= x), len(result[row]))
            result[row][at:at] = field_words
    return result


def _distance(words: Sequence[Word], x: float, end: float) -> float:
    return min(max(x - word.end, word.x - end, 0) for word in words)


def _read_annotations(page: PdfPage, rotation: int) -> Iterator[tuple[str, tuple[float, float, float, float]]]:
    """Yield the text of each visible annotation, and its rectangle along and across the page's text."""
    import pypdfium2.raw as pdfium

    box = pdfium.FS_RECTF()
    for i in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        item = pdfium.FPDFPage_GetAnnot(page, i)
        text = "" if pdfium.FPDFAnnot_GetFlags(item) & _HIDDEN_FLAGS else _read_annotation(pdfium, page, item)
        pdfium.FPDFAnnot_GetRect(item, box)
        pdfium.FPDFPage_CloseAnnot(item)
        if text.strip():
            (x, y), (end, up) = rotate(box.left, box.bottom, rotation), rotate(box.right, box.top, rotation)
            yield text, (min(x, end), min(y, up), max(x, end), max(y, up))


def _read_annotation(pdfium: Any, page: PdfPage, item: Any) -> str:
    kind = pdfium.FPDFAnnot_GetSubtype(item)
    if kind == pdfium.FPDF_ANNOT_FREETEXT:
        return _read_string(lambda *buffer: pdfium.FPDFAnnot_GetStringValue(item, b"Contents", *buffer))
    if kind != pdfium.FPDF_ANNOT_WIDGET or not page.formenv:
        return ""
    form = page.formenv
    field = pdfium.FPDFAnnot_GetFormFieldType(form, item)
    if field in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
        return "[x]" if pdfium.FPDFAnnot_IsChecked(form, item) else "[ ]"
    if field in (pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX):
        options = range(min(pdfium.FPDFAnnot_GetOptionCount(form, item), _MAX_ANNOTATIONS))
        picks = [n for n in options if pdfium.FPDFAnnot_IsOptionSelected(form, item, n)]
        if picks:
            labels = (
                _read_string(lambda *buffer, n=n: pdfium.FPDFAnnot_GetOptionLabel(form, item, n, *buffer))
                for n in picks
            )
            return ", ".join(labels)
    if field == pdfium.FPDF_FORMFIELD_PUSHBUTTON or pdfium.FPDFAnnot_GetFormFieldFlags(form, item) & _PASSWORD_FLAG:
        return ""
    return _read_string(lambda *buffer: pdfium.FPDFAnnot_GetFormFieldValue(form, item, *buffer))


def _read_string(read: Any) -> str:
    """Return the UTF-16 text that a pdfium function writes into a buffer, given the buffer and its size in bytes."""
    size = read(None, 0)
    buffer = ctypes.create_string_buffer(size)
    read(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[:size].decode("utf-16-le", "replace").rstrip("\0")


MAX_PAGES = 3000
_UNMAPPED_SHARE = 0.3
_PICTURE_SHARE = 0.5
"""A page without text is a scan if images cover more than this share of it."""
_FORM = r"(?:form|schedule)\s+(?=\S*\d)[\w/-]{1,10}"
# Large print on the cover of every SEC filing: the authority, the form, and the law that requires it.
_FILING_WORDS = lazy_regex(
    rf"(?:\W{{0,9}}(?:{_FORM}|\d{{1,2}}-[a-z]{{1,2}}(?:/a)?|united states(?: of america)?"
    r"|(?:u\.?s\.? )?securities and exchange commission|washington,? d\.?c\.?(?: \d{5})?"
    r"|(?:annual|quarterly|current|transition) report))+\W{0,9}",
    re.IGNORECASE,
)
_FILER_NAME = lazy_regex(r"\(exact name of (?:the )?(?:registrant|issuer)", re.IGNORECASE)


def read_pdf(body: bytes, url: str, recognized: RecognizedPages | None = None) -> ExtractedDocument:
    """Extract a PDF file page by page.

    `recognized` has the pages read by text recognition so far; the others that need it are `unreadable_pages`.

    Raises IngestError: "pdf_encrypted", "pdf_broken", "pdf_too_many_pages", "document_too_long"; also "pdf_unmapped"
    (its fonts do not define which letters they draw) and "pdf_no_text" (a scan without a text layer), unless
    `recognized` is {} and pages are `unreadable_pages`.
    """
    with closing(_open(body, url)) as document:
        pages, pictures, garbled = _read_pages(document, url)
        titles = frozenset(letters_and_digits(normalize_glyphs(entry.get_title())) for entry in document.get_toc())
        about = document.get_metadata_dict()
    scans = add_scans(pages, recognized or {})
    if not any(map(has_letters, pages)) and not (recognized == {} and (pictures or garbled)):
        if garbled:
            raise IngestError("pdf_unmapped", url=printable(url))
        raise IngestError("pdf_no_text", url=printable(url), pages=len(pages))
    layout = build_document(pages, titles, scans.confidence)
    return ExtractedDocument(
        _choose_title(about["Title"], pages[0], layout.title_candidate) or title_from_url(url),
        layout.language,
        site_from_url(url),
        "",
        layout.text,
        author=clean_author(about["Author"]),
        published=find_iso_date(about["CreationDate"])[:10],
        modified=find_iso_date(about["ModDate"])[:10],
        signals=scans.signals,
        unreadable_pages=tuple(sorted({*pictures, *garbled} - scans.confidence.keys())),
    )


def _open(body: bytes, url: str) -> PdfDocument:
    from pypdfium2 import PdfDocument, PdfiumError
    from pypdfium2.raw import FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY

    logging.getLogger("pypdfium2").setLevel(logging.CRITICAL)  # it warns about forms that it does not read
    try:
        document = PdfDocument(body)
        document.init_forms()
        count = len(document)
    except PdfiumError as error:
        is_locked = error.err_code in (FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY)
        raise IngestError("pdf_encrypted" if is_locked else "pdf_broken", url=printable(url)) from error
    if count > MAX_PAGES:
        raise IngestError("pdf_too_many_pages", url=printable(url), pages=count, limit=MAX_PAGES)
    if not count:
        raise IngestError("pdf_broken", url=printable(url))
    return document


def _read_pages(document: PdfDocument, url: str) -> tuple[list[list[Line]], list[int], list[int]]:
    """Return each page's lines, and the numbers of pages without any: pictures, and pages with wrong letters."""
    from pypdfium2 import PdfiumError

    pages: list[list[Line]] = []
    pictures: list[int] = []
    garbled: list[int] = []
    size = broken = 0
    for number in range(1, len(document) + 1):
        lines: list[Line] = []
        try:
            with closing(document[number - 1]) as page, closing(page.get_textpage()) as text:
                words = PageText(text)
                lines = _read_lines(page, words)
                if not has_letters(lines):
                    pictures += [number] if _is_picture(page) else []
                elif words.unmapped_share() > _UNMAPPED_SHARE or find_mojibake("\n".join(line.text for line in lines)):
                    garbled.append(number)
                    lines = []
        except PdfiumError:
            logger.debug("pdf: page %d", number, exc_info=True)
            broken += 1
        pages.append(lines)
        size += sum(len(line.text) for line in lines)
        if size > MAX_CHARACTERS:
            raise too_long_error(url)
    if broken:
        logger.warning("pdf: %d of %d pages cannot be read", broken, len(pages))
    if broken == len(pages):
        raise IngestError("pdf_broken", url=printable(url))
    return pages, pictures, garbled


def _read_lines(page: PdfPage, text: PageText) -> list[Line]:
    """Return a page's lines; those in another direction than most, such as margin notes, come last."""
    lines = text.lines()
    rotations: Counter[int] = Counter()
    for words in lines:
        rotations[words[0].rotation] += len(words)
    rotation = rotations.most_common(1)[0][0] if rotations else 0
    aside = [build_line(words) for words in lines if words[0].rotation != rotation]
    main = _insert_fields(page, [words for words in lines if words[0].rotation == rotation], rotation)
    grids, horizontal = find_grids(_find_strokes(page), rotation)
    return arrange_lines(main, grids, horizontal, [text.is_code(words[0]) for words in main]) + aside


def _is_picture(page: PdfPage) -> bool:
    """Return whether images cover most of a page."""
    import pypdfium2.raw as pdfium

    covered = 0.0
    for item in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        left, bottom, right, top = item.get_bounds()
        covered += (right - left) * (top - bottom)
    width, height = page.get_size()
    return bool(covered > _PICTURE_SHARE * width * height)


def _choose_title(own_title: str, page: Sequence[Line], candidate: str) -> str:
    """Return a document's title: from its metadata, or else its largest lines, unless they are stock words of filings.

    An SEC filing is named after its filer and form, if its cover states the filer; otherwise, the title is "".
    """
    for title in (clean_title(own_title), candidate):
        if title and not _FILING_WORDS.fullmatch(title) and " pursuant to section " not in title.lower():
            return title
    texts = [line.text for line in page]
    filer_row = next((n for n, text in enumerate(texts) if n and _FILER_NAME.match(text)), 0)
    form = next((text for text in texts[:filer_row] if re.fullmatch(_FORM, text, re.IGNORECASE)), "")
    return format_heading(" · ".join(filter(None, [texts[filer_row - 1], form]))) if filer_row else ""


def read_picture(url: str, recognized: RecognizedPages | None) -> ExtractedDocument:
    """Extract the text of a picture, which is page 1; without `recognized` lines, that page is `unreadable_pages`.

    Raises IngestError: "picture_unread" without text recognition, "picture_no_text".
    """
    if recognized is None:
        raise IngestError("picture_unread", url=printable(url))
    pages: list[list[Line]] = [[]]
    scans = add_scans(pages, recognized)
    if recognized and not scans.confidence:
        raise IngestError("picture_no_text", url=printable(url))
    layout = build_document(pages, confidence=scans.confidence)
    return ExtractedDocument(
        layout.title_candidate or title_from_url(url),
        layout.language,
        site_from_url(url),
        "",
        layout.text,
        signals=scans.signals,
        unreadable_pages=() if scans.confidence else (1,),
    )
