"""Pictures of text: photographs, screenshots and scanned sheets, read by text recognition."""

from __future__ import annotations

from rag.errors import IngestError
from rag.reading.extraction.metadata import name_of, site_of
from rag.reading.layout.document import build_document
from rag.reading.layout.scans import RecognizedPages, add_scans
from rag.reading.layout.words import Line
from rag.reading.parser import Extracted
from rag.web.guard import printable


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
