"""Word documents (.docx): headings, paragraphs, lists and tables in their order, as Markdown.

python-docx opens the package and reads its styles and properties; the body is walked as XML, because its
own lists of paragraphs leave out inserted text and content controls. Nothing outside the file is opened.
"""

from __future__ import annotations

import logging
import zipfile
import zlib
from io import BytesIO
from typing import TYPE_CHECKING, Any

from rag.errors import IngestError
from rag.reading.documents.docx_body import BodyReader
from rag.reading.documents.properties import name_said, title_said
from rag.reading.extraction.clean import clean_line, clean_text
from rag.reading.extraction.metadata import name_of, site_of
from rag.reading.parser import Extracted
from rag.text import detect_language
from rag.web.guard import shown
from rag.web.media import MAX_CHARACTERS

if TYPE_CHECKING:
    from docx.document import Document

logger = logging.getLogger(__name__)

MAX_UNPACKED = 40_000_000
"""Bytes of a package's XML parts; its pictures are not counted, as they stay packed in the check."""
_MAX_PARTS = 20_000
_BROKEN = (KeyError, ValueError, TypeError, AttributeError, OSError, zipfile.BadZipFile, zlib.error, EOFError)


def read_docx(body: bytes, url: str) -> Extracted:
    """The text of a Word document.

    Raises IngestError: "docx_broken", "docx_too_large", "document_too_long", "document_no_text".
    """
    document = _open(body, url)
    reader = BodyReader(document, MAX_CHARACTERS)
    text = clean_text("\n\n".join(reader.blocks()))
    if reader.is_full:
        raise IngestError("document_too_long", url=shown(url), limit=MAX_CHARACTERS // 1_000_000)
    if not any(character.isalnum() for character in text):
        raise IngestError("document_no_text", url=shown(url))
    about = _properties(document)
    title = reader.title or title_said(about.get("title", "")) or reader.first_heading or name_of(url)
    return Extracted(
        clean_line(title),
        detect_language(text),
        site_of(url),
        "",
        text,
        author=name_said(about.get("author", "")),
        published=about.get("created", "")[:10],
        modified=about.get("modified", "")[:10],
    )


def _open(body: bytes, url: str) -> Document:
    import docx
    from docx.exceptions import PythonDocxError
    from lxml.etree import LxmlError

    try:
        _check_size(body, url)
        return docx.Document(BytesIO(body))
    except (PythonDocxError, LxmlError, *_BROKEN) as error:
        raise IngestError("docx_broken", url=shown(url)) from error


def _check_size(body: bytes, url: str) -> None:
    """Refuse a package by what it says that it unpacks to; zipfile reads no more than it says."""
    with zipfile.ZipFile(BytesIO(body)) as package:
        parts = package.infolist()
    unpacked = sum(part.file_size for part in parts if part.filename.endswith((".xml", ".rels")))
    if unpacked > MAX_UNPACKED or sum(part.file_size for part in parts) > 10 * MAX_UNPACKED or len(parts) > _MAX_PARTS:
        raise IngestError("docx_too_large", url=shown(url), limit=MAX_UNPACKED // 1_000_000)


def _properties(document: Document) -> dict[str, str]:
    """What the file says of itself: title, author, created, modified (ISO 8601)."""
    said: dict[str, Any] = {}
    for name in ("title", "author", "created", "modified"):
        try:
            said[name] = getattr(document.core_properties, name)
        except _BROKEN:
            logger.debug("docx: property %s", name, exc_info=True)
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else str(value) for name, value in said.items() if value
    }
