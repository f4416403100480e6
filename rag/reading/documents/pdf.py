"""PDF files: the text of each page under a heading with the page number, for citations; and pictures of text.

Pages are numbered from 1 in file order, as in `#page=12` of a URL, not by the numbers printed on them. Pictures are
photographs, screenshots and scanned sheets, read by text recognition.
"""

from __future__ import annotations

import ctypes
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag.errors import IngestError
from rag.patterns import lazy_regex
from rag.reading.documents.pdf_page import PageText, find_strokes
from rag.reading.documents.properties import clean_author, clean_title, parse_day, too_long_error
from rag.reading.extraction.metadata import name_of, site_of
from rag.reading.layout.document import build_document, fold_heading, one_line
from rag.reading.layout.rules import find_grids
from rag.reading.layout.scans import RecognizedPages, add_scans, has_letters
from rag.reading.layout.tables import arrange_lines
from rag.reading.layout.words import Line, Word, line_of, normalize_glyphs, rotate
from rag.reading.parser import Extracted
from rag.reading.quality import find_mojibake
from rag.web.guard import printable
from rag.web.media import MAX_CHARACTERS

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_MAX_ANNOTATIONS = 5000
_HIDDEN = 2 | 32
_PASSWORD = 1 << 13
_LETTERS = 12.0


def insert_fields(page: PdfPage, lines: list[list[Word]], turn: int) -> list[list[Word]]:
    """Insert the contents of form fields and annotations into the page's lines, next to their labels."""
    result = [list(words) for words in lines]
    for text, (x, bottom, end, top) in _read_annotations(page, turn):
        size = min(_LETTERS, 0.8 * (top - bottom))
        # A label is level with the middle of a one-line field, or with the first line of a larger one.
        rows = [n for n, words in enumerate(result) if bottom - 0.3 * size < words[0].y < top]
        row = min(rows, key=lambda n: _distance(result[n], x, end), default=None)
        y = result[row][0].y if row is not None else (bottom + top) / 2 - 0.3 * size
        field_words = [Word(word, x, end, y, size, turn) for word in text.split()]
        if row is None:
            above = [n for n, words in enumerate(result) if words[0].y > y]
            result.insert(max(above, key=lambda n: -result[n][0].y) + 1 if above else 0, field_words)
        else:
            at = next((i for i, word in enumerate(result[row]) if word.x >= x), len(result[row]))
            result[row][at:at] = field_words
    return result


def _distance(words: Sequence[Word], x: float, end: float) -> float:
    return min(max(x - word.end, word.x - end, 0) for word in words)


def _read_annotations(page: PdfPage, turn: int) -> Iterator[tuple[str, tuple[float, float, float, float]]]:
    """Yield the text of each visible annotation, and its rectangle along and across the page's text."""
    import pypdfium2.raw as pdfium

    box = pdfium.FS_RECTF()
    for i in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        item = pdfium.FPDFPage_GetAnnot(page, i)
        text = "" if pdfium.FPDFAnnot_GetFlags(item) & _HIDDEN else _read_annotation(pdfium, page, item)
        pdfium.FPDFAnnot_GetRect(item, box)
        pdfium.FPDFPage_CloseAnnot(item)
        if text.strip():
            (x, y), (end, up) = rotate(box.left, box.bottom, turn), rotate(box.right, box.top, turn)
            yield text, (min(x, end), min(y, up), max(x, end), max(y, up))


def _read_annotation(pdfium: Any, page: PdfPage, item: Any) -> str:
    kind = pdfium.FPDFAnnot_GetSubtype(item)
    if kind == pdfium.FPDF_ANNOT_FREETEXT:
        return _read(lambda *buffer: pdfium.FPDFAnnot_GetStringValue(item, b"Contents", *buffer))
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
                _read(lambda *buffer, n=n: pdfium.FPDFAnnot_GetOptionLabel(form, item, n, *buffer)) for n in picks
            )
            return ", ".join(labels)
    if field == pdfium.FPDF_FORMFIELD_PUSHBUTTON or pdfium.FPDFAnnot_GetFormFieldFlags(form, item) & _PASSWORD:
        return ""
    return _read(lambda *buffer: pdfium.FPDFAnnot_GetFormFieldValue(form, item, *buffer))


def _read(read: Any) -> str:
    """Return the UTF-16 text that a pdfium function writes into a buffer, given the buffer and its size in bytes."""
    size = read(None, 0)
    buffer = ctypes.create_string_buffer(size)
    read(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[:size].decode("utf-16-le", "replace").rstrip("\0")


logger = logging.getLogger(__name__)

MAX_PAGES = 3000
_UNMAPPED_SHARE = 0.3
_PICTURE_SHARE = 0.5
"""A page without text is a scan if pictures cover more than this share of it."""
_FORM = r"(?:form|schedule)\s+(?=\S*\d)[\w/-]{1,10}"
# Large print on the first page of every filing: the authority, the form, and the law that requires it.
_FILING_WORDS = lazy_regex(
    rf"(?:\W{{0,9}}(?:{_FORM}|\d{{1,2}}-[a-z]{{1,2}}(?:/a)?|united states(?: of america)?"
    r"|(?:u\.?s\.? )?securities and exchange commission|washington,? d\.?c\.?(?: \d{5})?"
    r"|(?:annual|quarterly|current|transition) report))+\W{0,9}",
    re.IGNORECASE,
)
_FILER_NAME = lazy_regex(r"\(exact name of (?:the )?(?:registrant|issuer)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Pages:
    """Each page's lines, and the numbers of pages without any: pictures (`scans`) or bad letters (`garbled`)."""

    lines: list[list[Line]]
    scans: list[int]
    garbled: list[int]


def read_pdf(body: bytes, url: str, recognized: RecognizedPages | None = None) -> Extracted:
    """Return the text of a PDF file, page by page; pages without readable text are its `unread` ones.

    `recognized` has the pages read by text recognition so far; the others that need it are `unread`.

    Raises IngestError: "pdf_encrypted", "pdf_broken", "document_too_long", "pdf_unmapped" (its fonts do not define
    which letters they draw), "pdf_no_text" (a scan without a text layer); not the last two if `recognized` is empty.
    """
    with closing(_open(body, url)) as document:
        pages = _read_pages(document, url)
        titles = frozenset(fold_heading(normalize_glyphs(entry.get_title())) for entry in document.get_toc())
        about = document.get_metadata_dict()
    scans = add_scans(pages.lines, recognized or {})
    if not any(map(has_letters, pages.lines)) and not (recognized == {} and (pages.scans or pages.garbled)):
        if pages.garbled:
            raise IngestError("pdf_unmapped", url=printable(url))
        raise IngestError("pdf_no_text", url=printable(url), pages=len(pages.lines))
    layout = build_document(pages.lines, titles, scans.sure)
    return Extracted(
        _choose_title(about["Title"], pages.lines[0], layout.largest) or name_of(url),
        layout.language,
        site_of(url),
        "",
        layout.text,
        author=clean_author(about["Author"]),
        published=parse_day(about["CreationDate"]),
        modified=parse_day(about["ModDate"]),
        signals=scans.signals,
        unread=tuple(sorted(number for number in (*pages.scans, *pages.garbled) if number not in scans.sure)),
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


def _read_pages(document: PdfDocument, url: str) -> _Pages:
    from pypdfium2 import PdfiumError

    pages: list[list[Line]] = []
    scans: list[int] = []
    garbled: list[int] = []
    size = broken = 0
    for number in range(1, len(document) + 1):
        lines: list[Line] = []
        try:
            with closing(document[number - 1]) as page, closing(page.get_textpage()) as text:
                words = PageText(text, MAX_CHARACTERS)
                lines = _read_lines(page, words)
                if not has_letters(lines):
                    scans += [number] if _is_picture(page) else []
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
    return _Pages(pages, scans, garbled)


def _read_lines(page: PdfPage, text: PageText) -> list[Line]:
    """Return a page's lines; those in another direction than most, such as margin notes, come last."""
    lines = text.lines()
    turns: Counter[int] = Counter()
    for words in lines:
        turns[words[0].turn] += len(words)
    turn = turns.most_common(1)[0][0] if turns else 0
    aside = [line_of(words) for words in lines if words[0].turn != turn]
    main = insert_fields(page, [words for words in lines if words[0].turn == turn], turn)
    return (
        arrange_lines(main, *find_grids(find_strokes(page), turn), [text.is_code(words[0]) for words in main]) + aside
    )


def _is_picture(page: PdfPage) -> bool:
    """Return whether pictures cover most of a page."""
    import pypdfium2.raw as pdfium

    covered = 0.0
    for item in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        left, bottom, right, top = item.get_bounds()
        covered += (right - left) * (top - bottom)
    width, height = page.get_size()
    return bool(covered > _PICTURE_SHARE * width * height)


def _choose_title(own_title: str, page: Sequence[Line], largest: str) -> str:
    """Return a document's title: its own, or else its largest lines; "" if these are those of any filing.

    A filing is named after its filer, if the standard words on its cover name it, and its form.
    """
    for title in (clean_title(own_title), largest):
        if title and not _FILING_WORDS.fullmatch(title) and " pursuant to section " not in title.lower():
            return title
    texts = [line.text for line in page]
    filer_row = next((n for n, text in enumerate(texts) if n and _FILER_NAME.match(text)), 0)
    form = next((text for text in texts[:filer_row] if re.fullmatch(_FORM, text, re.IGNORECASE)), "")
    return one_line(" · ".join(filter(None, [texts[filer_row - 1], form]))) if filer_row else ""


def read_picture(url: str, recognized: RecognizedPages | None) -> Extracted:
    """Return the text of a picture, which is page 1; without `recognized` lines, that page is `unread`.

    Raises IngestError: "picture_unread" without text recognition, "picture_no_text".
    """
    if recognized is None:
        raise IngestError("picture_unread", url=printable(url))
    pages: list[list[Line]] = [[]]
    scans = add_scans(pages, recognized)
    if recognized and not scans.sure:
        raise IngestError("picture_no_text", url=printable(url))
    layout = build_document(pages, sure=scans.sure)
    unread = () if scans.sure else (1,)
    title = layout.largest or name_of(url)
    return Extracted(title, layout.language, site_of(url), "", layout.text, signals=scans.signals, unread=unread)
