"""PDF files: the text of each page under a heading with the page's number, so that a citation can name it.

The number counts the file's pages from 1, as `#page=12` in an address does, not the numbers printed on them.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from rag.errors import IngestError
from rag.reading.documents.pdf_layout import Layout, body_size, plain, usual_width, vocabulary, without_running_heads
from rag.reading.documents.pdf_lines import Line, LineCollector, readable
from rag.reading.documents.properties import day_of, name_said, title_said
from rag.reading.extraction.clean import clean_line, clean_text
from rag.reading.extraction.metadata import name_of, site_of
from rag.reading.parser import Extracted
from rag.text import detect_language
from rag.web.guard import shown
from rag.web.media import MAX_CHARACTERS

if TYPE_CHECKING:
    from pypdf import PdfReader

logger = logging.getLogger(__name__)

MAX_PAGES = 3000
_FEW_LETTERS = 5
"""A document with fewer letters than this a page is a scan."""
_UNMAPPED_SHARE = 0.3
# What pypdf lets through when a file is broken in ways that it does not look for.
_BROKEN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, OSError, zlib.error)


def read_pdf(body: bytes, url: str) -> Extracted:
    """The text of a PDF file, page by page.

    Raises IngestError: "pdf_encrypted", "pdf_broken", "pdf_no_text" (a scan without a text layer),
    "pdf_unmapped" (its fonts do not say which letters they draw), "document_too_long".
    """
    reader = _open(body, url)
    pages, unmapped = _pages(reader, url)
    letters = sum(character.isalnum() for page in pages for line in page for character in line.text)
    if unmapped > _UNMAPPED_SHARE * (letters + unmapped):
        raise IngestError("pdf_unmapped", url=shown(url))
    if letters < _FEW_LETTERS * len(pages):
        raise IngestError("pdf_no_text", url=shown(url), pages=len(pages))
    layout, kept = _layout(reader, pages)
    language = detect_language(" ".join(line.text for page in kept[:50] for line in page))
    text = clean_text("\n\n".join(_sections(layout, kept, language)))
    about = _metadata(reader)
    title = title_said(about.get("title", "")) or _largest(pages[0], layout.size) or name_of(url)
    return Extracted(
        title,
        language,
        site_of(url),
        "",
        text,
        author=name_said(about.get("author", "")),
        published=day_of(about.get("created", "")),
        modified=day_of(about.get("modified", "")),
    )


def _open(body: bytes, url: str) -> PdfReader:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells every oddity of every file
    try:
        reader = PdfReader(BytesIO(body), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise IngestError("pdf_encrypted", url=shown(url))
        count = len(reader.pages)
    except (DependencyError, NotImplementedError) as error:  # a way of encrypting that cannot be undone here
        raise IngestError("pdf_encrypted", url=shown(url)) from error
    except (MemoryError, RecursionError):
        raise
    except (PyPdfError, *_BROKEN) as error:
        raise IngestError("pdf_broken", url=shown(url)) from error
    if count > MAX_PAGES:
        raise IngestError("pdf_too_many_pages", url=shown(url), pages=count, limit=MAX_PAGES)
    if not count:
        raise IngestError("pdf_broken", url=shown(url))
    return reader


def _pages(reader: PdfReader, url: str) -> tuple[list[list[Line]], int]:
    """Each page's lines, and how many characters of all pages no font said the meaning of."""
    pages: list[list[Line]] = []
    unmapped = size = broken = 0
    for number in range(len(reader.pages)):
        collector = LineCollector()
        if not _collect(reader, number, collector):
            broken += 1
        pages.append(collector.finish())
        unmapped += collector.unmapped
        size += sum(len(line.text) for line in pages[-1])
        if size > MAX_CHARACTERS:
            raise IngestError("document_too_long", url=shown(url), limit=MAX_CHARACTERS // 1_000_000)
    if broken:
        logger.warning("pdf: %d of %d pages cannot be read", broken, len(pages))
    if broken == len(pages):
        raise IngestError("pdf_broken", url=shown(url))
    return pages, unmapped


def _collect(reader: PdfReader, number: int, collector: LineCollector) -> bool:
    """Read one page's lines; False when it is broken. The page is let go of afterwards."""
    from pypdf.errors import PyPdfError

    try:
        reader.pages[number].extract_text(visitor_text=collector.take)
    except (MemoryError, RecursionError):
        raise
    except (PyPdfError, NotImplementedError, *_BROKEN):
        logger.debug("pdf: page %d", number + 1, exc_info=True)
        return False
    return True


def _layout(reader: PdfReader, pages: Sequence[Sequence[Line]]) -> tuple[Layout, list[list[Line]]]:
    kept = without_running_heads(pages)
    return Layout(body_size(kept), usual_width(kept), vocabulary(kept), frozenset(_outline(reader))), kept


def _outline(reader: PdfReader) -> Iterator[str]:
    """The titles in the file's table of contents."""
    from pypdf.errors import PyPdfError

    try:
        waiting: list[Any] = list(reader.outline)
    except (PyPdfError, *_BROKEN):
        return
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, list):
            waiting.extend(entry)
        elif title := plain(readable(str(entry.title or ""))):
            yield title


def _sections(layout: Layout, pages: Sequence[Sequence[Line]], language: str) -> Iterator[str]:
    """Each page that has text as a section; one that begins within a part says which part goes on."""
    part = ""
    for number, lines in enumerate(pages, 1):
        blocks = layout.blocks(lines)
        if not blocks:
            continue
        name = f"第 {number} 页" if language == "zh" else f"Page {number}"
        goes_on = part and blocks[0][0] != "heading"
        yield f"## {name} · {part}" if goes_on else f"## {name}"
        yield from _rendered(blocks)
        part = next((_one_line(text) for kind, text in reversed(blocks) if kind == "heading"), part)


def _rendered(blocks: Sequence[tuple[str, str]]) -> Iterator[str]:
    items: list[str] = []
    for kind, text in [*blocks, ("", "")]:
        if kind == "list":
            items.append("- " + text.replace("\n", "\n  "))
            continue
        if items:
            yield "\n".join(items)
            items = []
        if kind == "heading":
            yield f"### {_one_line(text)}"
        elif kind == "code":
            yield f"```\n{text}\n```"
        elif text:
            yield _plain_lines(text)


def _plain_lines(text: str) -> str:
    """Text whose lines begin with a mark of Markdown's by chance keep it, as text."""
    return "\n".join("\\" + line if line.startswith(("#", "|", "```")) else line for line in text.split("\n"))


def _one_line(text: str) -> str:
    return clean_line(text.replace("\n", " "), 120)


def _largest(page: Sequence[Line], size: float) -> str:
    """The largest line of the first page with those that follow it in the same size, as a title."""
    candidates = [line for line in page if any(character.isalpha() for character in line.text)]
    top = max((line.size for line in candidates), default=0.0)
    if top <= size * 1.05:
        return ""
    first = next(i for i, line in enumerate(page) if line.size == top and line in candidates)
    parts = []
    for line in page[first : first + 4]:
        if line.size != top:
            break
        parts.append(line.text)
    return _one_line(" ".join(parts))


def _metadata(reader: PdfReader) -> dict[str, str]:
    from pypdf.errors import PyPdfError

    try:
        found = reader.metadata
        if not found:
            return {}
        dates = {"created": found.creation_date_raw, "modified": found.modification_date_raw}
        said = {"title": found.title, "author": found.author, **dates}
        return {name: str(value) for name, value in said.items() if value}
    except (PyPdfError, *_BROKEN):
        return {}
