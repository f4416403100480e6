"""Office formats without another reader (.xls, .ods, .odp, .rtf, .msg), read by xberg.

xberg is an optional requirement that only this module uses. It gets bytes, never a URL, in the process that parses,
which has no keys. Its output is HTML, converted like that of the other formats.
"""

from __future__ import annotations

import asyncio
from typing import Any

from rag.errors import IngestError
from rag.patterns import lazy_regex
from rag.reading.documents.properties import build_extracted
from rag.reading.extract import html_to_markdown
from rag.reading.parser import Extracted
from rag.web.guard import printable
from rag.web.media import RTF

_SUBJECT = lazy_regex(r"\A<p><strong>Subject</strong>: (.*?)</p>")
# xberg ignores superscripts in RTF: 10 to the power of 6 would become 106.
_SUPER = lazy_regex(rb"(?<=\d)((?:[{}\s]|\\[a-z]+-?\d*){0,12}?\\super(?:[{}\s]|\\[a-z]+-?\d*){0,12}+)(?=-?\d)")


def read_office(body: bytes, url: str, kind: str) -> Extracted:
    """Return the text of a document of type `kind`.

    Raises IngestError: "office_reader_missing", "office_broken", "document_too_long", "document_no_text".
    """
    try:
        import xberg
    except ImportError as error:
        raise IngestError("office_reader_missing", url=printable(url)) from error
    options = xberg.ExtractionConfig(
        output_format="html", use_cache=False, disable_ocr=True, concurrency=xberg.ConcurrencyConfig(max_threads=1)
    )
    source = xberg.ExtractInput(kind="bytes", bytes=_SUPER.sub(rb"\1^", body) if kind == RTF else body, mime_type=kind)

    async def extract() -> Any:
        return (await xberg.extract(source, options)).results[0]

    try:
        result = asyncio.run(extract())
    except (IndexError, RuntimeError, xberg.XbergError) as error:
        raise IngestError("office_broken", url=printable(url)) from error
    about = result.metadata
    return build_extracted(
        html_to_markdown(_SUBJECT.sub(r"<h1>\1</h1>", result.content)),
        url,
        title=about.title or "",
        author="; ".join(about.authors or ()),
        created=about.created_at or "",
        modified=about.modified_at or "",
    )
