"""Pictures of text: photographs, screenshots and scanned sheets, read by text recognition."""

from __future__ import annotations

from rag.errors import IngestError
from rag.reading.extraction.metadata import name_of, site_of
from rag.reading.layout.document import laid_out
from rag.reading.layout.scans import Recognized, with_scans
from rag.reading.layout.words import Line
from rag.reading.parser import Extracted
from rag.web.guard import shown


def read_picture(url: str, recognized: Recognized | None) -> Extracted:
    """Return the text of a picture, which is page 1; without `recognized` lines, that page is `unread`.

    Raises IngestError: "picture_unread" without text recognition, "picture_no_text".
    """
    if recognized is None:
        raise IngestError("picture_unread", url=shown(url))
    pages: list[list[Line]] = [[]]
    scans = with_scans(pages, recognized)
    if recognized and not scans.sure:
        raise IngestError("picture_no_text", url=shown(url))
    layout = laid_out(pages, sure=scans.sure)
    unread = () if scans.sure else (1,)
    title = layout.largest or name_of(url)
    return Extracted(title, layout.language, site_of(url), "", layout.text, signals=scans.signals, unread=unread)
