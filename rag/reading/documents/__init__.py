"""Readers for documents other than web pages: PDF, office files, books, mail and tables.

Each turns bytes into an `ExtractedDocument` whose text is Markdown. They run in the parser's child process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rag.reading.documents.docx import read_docx
from rag.reading.documents.odt import read_odt
from rag.reading.documents.other_formats import read_captions, read_epub, read_mail, read_notebook, read_office
from rag.reading.documents.pdf import read_pdf, read_picture
from rag.reading.documents.pptx import read_pptx
from rag.reading.documents.table import read_table, read_xlsx
from rag.reading.extract import extract
from rag.reading.layout.document import RecognizedPages
from rag.reading.parser import ExtractedDocument
from rag.web import media

_READERS: dict[str, Callable[[bytes, str], ExtractedDocument]] = {
    media.DOCX: read_docx,
    media.PPTX: read_pptx,
    media.XLSX: read_xlsx,
    media.ODT: read_odt,
    media.EPUB: read_epub,
    media.IPYNB: read_notebook,
    **{kind: partial(read_office, kind=kind) for kind in (media.XLS, media.ODS, media.ODP, media.RTF, media.MSG)},
}
_TEXTS: dict[str, Callable[[bytes, str | None, str], ExtractedDocument]] = {
    media.CSV: read_table,
    media.TSV: read_table,
    media.VTT: read_captions,
    media.SRT: read_captions,
}


def read_document(
    body: bytes, content_type: str, charset: str | None, url: str, recognized: RecognizedPages | None = None
) -> ExtractedDocument:
    """Return the text of a document of any type in `rag.web.media`; `url` may be a file name.

    `recognized` has the pages that text recognition has read so far, or is None without it. Raises IngestError for an
    unreadable document.
    """
    if content_type == media.PDF:
        return read_pdf(body, url, recognized)
    if content_type == media.PICTURE:
        return read_picture(url, recognized)
    if content_type in _READERS:
        return _READERS[content_type](body, url)
    if content_type == media.EML:
        return read_mail(body, url, read_document)
    if content_type in _TEXTS:
        return _TEXTS[content_type](body, charset, url)
    return extract(body, content_type, charset, url)
