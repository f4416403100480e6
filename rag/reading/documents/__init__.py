"""Documents that are not pages of text: PDF, Word and tables, one reader a file.

Each reader turns bytes into an `Extracted` whose text is Markdown. They run in the process that parses.
"""

from __future__ import annotations

from collections.abc import Callable

from rag.reading.documents.docx import read_docx
from rag.reading.documents.pdf import read_pdf
from rag.reading.documents.table import read_table
from rag.reading.parser import Extracted
from rag.web.media import CSV, DOCX, PDF, TSV

Reader = Callable[[bytes, "str | None", str], Extracted]


def find_reader(content_type: str) -> Reader | None:
    """The reader `(body, charset, url) -> Extracted` for a type of `rag.web.media`, or None for text.

    A reader raises IngestError for a document that it cannot read; `url` may be a file's name.
    """
    if content_type == PDF:
        return lambda body, charset, url: read_pdf(body, url)
    if content_type == DOCX:
        return lambda body, charset, url: read_docx(body, url)
    if content_type in (CSV, TSV):
        return read_table
    return None
