"""PDF files: the text of each page under a heading with the page's number, so that a citation can name it.

The number counts the file's pages from 1, as `#page=12` in an address does, not the numbers printed on them.
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
from rag.reading.documents.pdf_page import PageText, straight_pieces
from rag.reading.extraction.metadata import name_of, site_of
from rag.reading.layout.document import laid_out, one_line
from rag.reading.layout.paragraphs import plain
from rag.reading.layout.rules import find_grids
from rag.reading.layout.scans import Recognized, has_letters, with_scans
from rag.reading.layout.tables import arranged
from rag.reading.layout.words import Line, Word, line_of, readable, turned
from rag.reading.parser import Extracted
from rag.reading.properties import day_of, name_said, title_said
from rag.reading.quality import find_mojibake
from rag.web.guard import shown
from rag.web.media import MAX_CHARACTERS

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_MAX_ANNOTATIONS = 5000
_HIDDEN = 2 | 32
_PASSWORD = 1 << 13
_LETTERS = 12.0


def with_fields(page: PdfPage, lines: list[list[Word]], turn: int) -> list[list[Word]]:
    """The page's lines with what is filled in beside or below them."""
    found = [list(words) for words in lines]
    for text, (x, bottom, end, top) in _filled(page, turn):
        size = min(_LETTERS, 0.8 * (top - bottom))
        # A label stands about as high as the middle of a field of one line, or else as the first line of many.
        rows = [n for n, words in enumerate(found) if bottom - 0.3 * size < words[0].y < top]
        beside = min(rows, key=lambda n: _distance(found[n], x, end), default=None)
        y = found[beside][0].y if beside is not None else (bottom + top) / 2 - 0.3 * size
        written = [Word(word, x, end, y, size, turn) for word in text.split()]
        if beside is None:
            above = [n for n, words in enumerate(found) if words[0].y > y]
            found.insert(max(above, key=lambda n: -found[n][0].y) + 1 if above else 0, written)
        else:
            at = next((i for i, word in enumerate(found[beside]) if word.x >= x), len(found[beside]))
            found[beside][at:at] = written
    return found


def _distance(words: Sequence[Word], x: float, end: float) -> float:
    return min(max(x - word.end, word.x - end, 0) for word in words)


def _filled(page: PdfPage, turn: int) -> Iterator[tuple[str, tuple[float, float, float, float]]]:
    """The text of each annotation that shows one, and its rectangle along and across the page's text."""
    import pypdfium2.raw as pdfium

    box = pdfium.FS_RECTF()
    for i in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        item = pdfium.FPDFPage_GetAnnot(page, i)
        text = "" if pdfium.FPDFAnnot_GetFlags(item) & _HIDDEN else _shown(pdfium, page, item)
        pdfium.FPDFAnnot_GetRect(item, box)
        pdfium.FPDFPage_CloseAnnot(item)
        if text.strip():
            (x, y), (end, up) = turned(box.left, box.bottom, turn), turned(box.right, box.top, turn)
            yield text, (min(x, end), min(y, up), max(x, end), max(y, up))


def _shown(pdfium: Any, page: PdfPage, item: Any) -> str:
    kind = pdfium.FPDFAnnot_GetSubtype(item)
    if kind == pdfium.FPDF_ANNOT_FREETEXT:
        return _string(lambda *buffer: pdfium.FPDFAnnot_GetStringValue(item, b"Contents", *buffer))
    if kind != pdfium.FPDF_ANNOT_WIDGET or not page.formenv:
        return ""
    form = page.formenv
    field = pdfium.FPDFAnnot_GetFormFieldType(form, item)
    if field in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
        return "[x]" if pdfium.FPDFAnnot_IsChecked(form, item) else "[ ]"
    if field in (pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX):
        options = range(min(pdfium.FPDFAnnot_GetOptionCount(form, item), _MAX_ANNOTATIONS))
        chosen = [n for n in options if pdfium.FPDFAnnot_IsOptionSelected(form, item, n)]
        if chosen:
            labels = (
                _string(lambda *buffer, n=n: pdfium.FPDFAnnot_GetOptionLabel(form, item, n, *buffer)) for n in chosen
            )
            return ", ".join(labels)
    if field == pdfium.FPDF_FORMFIELD_PUSHBUTTON or pdfium.FPDFAnnot_GetFormFieldFlags(form, item) & _PASSWORD:
        return ""
    return _string(lambda *buffer: pdfium.FPDFAnnot_GetFormFieldValue(form, item, *buffer))


def _string(read: Any) -> str:
    """What a function of pdfium writes into a buffer as UTF-16; its second argument is the buffer's size in bytes."""
    size = read(None, 0)
    buffer = ctypes.create_string_buffer(size)
    read(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[:size].decode("utf-16-le", "replace").rstrip("\0")


logger = logging.getLogger(__name__)

MAX_PAGES = 3000
_UNMAPPED_SHARE = 0.3
_PICTURE_SHARE = 0.5
"""A picture of at least this part of a page without text is what was scanned."""
_FORM = r"(?:form|schedule)\s+(?=\S*\d)[\w/-]{1,10}"
# What stands large on the first page of every filing: the authority, the form, and the law that asks for it.
_FORMAL = re.compile(
    rf"(?:\W{{0,9}}(?:{_FORM}|\d{{1,2}}-[a-z]{{1,2}}(?:/a)?|united states(?: of america)?"
    r"|(?:u\.?s\.? )?securities and exchange commission|washington,? d\.?c\.?(?: \d{5})?"
    r"|(?:annual|quarterly|current|transition) report))+\W{0,9}",
    re.IGNORECASE,
)
_NAME_BELOW = re.compile(r"\(exact name of (?:the )?(?:registrant|issuer)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Pages:
    """Each page's lines, and the numbers of those without: pictures (`scans`), or letters without sense (`garbled`)."""

    lines: list[list[Line]]
    scans: list[int]
    garbled: list[int]


def read_pdf(body: bytes, url: str, recognized: Recognized | None = None) -> Extracted:
    """The text of a PDF file, page by page; those that have none to be read are its `unread` ones.

    `recognized` are pages that were read by text recognition; without any, those that should be are told as `unread`.

    Raises IngestError: "pdf_encrypted", "pdf_broken", "document_too_long", "pdf_unmapped" (its fonts do not say which
    letters they draw), "pdf_no_text" (a scan without a text layer); the last two not where `recognized` is empty.
    """
    with closing(_open(body, url)) as document:
        pages = _pages(document, url)
        titles = frozenset(plain(readable(entry.get_title())) for entry in document.get_toc())
        about = document.get_metadata_dict()
    scans = with_scans(pages.lines, recognized or {})
    if not any(map(has_letters, pages.lines)) and not (recognized == {} and (pages.scans or pages.garbled)):
        if pages.garbled:
            raise IngestError("pdf_unmapped", url=shown(url))
        raise IngestError("pdf_no_text", url=shown(url), pages=len(pages.lines))
    made = laid_out(pages.lines, titles, scans.sure)
    return Extracted(
        _title(about["Title"], pages.lines[0], made.largest) or name_of(url),
        made.language,
        site_of(url),
        "",
        made.text,
        author=name_said(about["Author"]),
        published=day_of(about["CreationDate"]),
        modified=day_of(about["ModDate"]),
        signals=scans.signals,
        unread=tuple(sorted(number for number in (*pages.scans, *pages.garbled) if number not in scans.sure)),
    )


def _open(body: bytes, url: str) -> PdfDocument:
    from pypdfium2 import PdfDocument, PdfiumError
    from pypdfium2.raw import FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY

    logging.getLogger("pypdfium2").setLevel(logging.CRITICAL)  # it tells of forms that it does not read
    try:
        document = PdfDocument(body)
        document.init_forms()
        count = len(document)
    except PdfiumError as error:
        is_locked = error.err_code in (FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY)
        raise IngestError("pdf_encrypted" if is_locked else "pdf_broken", url=shown(url)) from error
    if count > MAX_PAGES:
        raise IngestError("pdf_too_many_pages", url=shown(url), pages=count, limit=MAX_PAGES)
    if not count:
        raise IngestError("pdf_broken", url=shown(url))
    return document


def _pages(document: PdfDocument, url: str) -> _Pages:
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
                lines = _lines(page, words)
                if not has_letters(lines):
                    scans += [number] if _is_picture(page) else []
                elif words.unmapped() > _UNMAPPED_SHARE or find_mojibake("\n".join(line.text for line in lines)):
                    garbled.append(number)
                    lines = []
        except PdfiumError:
            logger.debug("pdf: page %d", number, exc_info=True)
            broken += 1
        pages.append(lines)
        size += sum(len(line.text) for line in lines)
        if size > MAX_CHARACTERS:
            raise IngestError("document_too_long", url=shown(url), limit=MAX_CHARACTERS // 1_000_000)
    if broken:
        logger.warning("pdf: %d of %d pages cannot be read", broken, len(pages))
    if broken == len(pages):
        raise IngestError("pdf_broken", url=shown(url))
    return _Pages(pages, scans, garbled)


def _lines(page: PdfPage, text: PageText) -> list[Line]:
    """A page's lines; those in another direction than most of them, such as notes in the margin, come last."""
    lines = text.lines()
    turns: Counter[int] = Counter()
    for words in lines:
        turns[words[0].turn] += len(words)
    turn = turns.most_common(1)[0][0] if turns else 0
    aside = [line_of(words) for words in lines if words[0].turn != turn]
    main = with_fields(page, [words for words in lines if words[0].turn == turn], turn)
    return arranged(main, *find_grids(straight_pieces(page), turn), [text.is_code(words[0]) for words in main]) + aside


def _is_picture(page: PdfPage) -> bool:
    """Whether pictures cover most of a page."""
    import pypdfium2.raw as pdfium

    covered = 0.0
    for item in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        left, bottom, right, top = item.get_bounds()
        covered += (right - left) * (top - bottom)
    width, height = page.get_size()
    return bool(covered > _PICTURE_SHARE * width * height)


def _title(said: str, page: Sequence[Line], largest: str) -> str:
    """A document's title: its own, or else its largest lines; "" where these are those of any filing.

    A filing is named by who filed it, where that is said in the words that every cover has, and by its form.
    """
    for title in (title_said(said), largest):
        if title and not _FORMAL.fullmatch(title) and " pursuant to section " not in title.lower():
            return title
    texts = [line.text for line in page]
    below = next((n for n, text in enumerate(texts) if n and _NAME_BELOW.match(text)), 0)
    form = next((text for text in texts[:below] if re.fullmatch(_FORM, text, re.IGNORECASE)), "")
    return one_line(" · ".join(filter(None, [texts[below - 1], form]))) if below else ""
