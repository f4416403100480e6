"""Formats of office programs that have no reader of their own here (.xls, .ods, .odp, .rtf, .msg), by xberg.

xberg is an optional requirement and known to this file alone. It gets bytes, never an address, in the process that
parses, which has no keys. It makes HTML of them, so that they read like the other formats.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from rag.errors import IngestError
from rag.reading.extract import html_markdown
from rag.reading.parser import Extracted
from rag.reading.properties import described
from rag.web.guard import shown
from rag.web.media import RTF

_SUBJECT = re.compile(r"\A<p><strong>Subject</strong>: (.*?)</p>")
# What is raised in RTF comes out of xberg as if it were not: 106 of 10 and 6.
_RAISED = re.compile(rb"(?<=\d)((?:[{}\s]|\\[a-z]+-?\d*){0,12}?\\super(?:[{}\s]|\\[a-z]+-?\d*){0,12}+)(?=-?\d)")


def read_office(body: bytes, url: str, kind: str) -> Extracted:
    """The text of a document of type `kind`.

    Raises IngestError: "office_reader_missing", "office_broken", "document_too_long", "document_no_text".
    """
    try:
        import xberg
    except ImportError as error:
        raise IngestError("office_reader_missing", url=shown(url)) from error
    options = xberg.ExtractionConfig(
        output_format="html", use_cache=False, disable_ocr=True, concurrency=xberg.ConcurrencyConfig(max_threads=1)
    )
    source = xberg.ExtractInput(kind="bytes", bytes=_RAISED.sub(rb"\1^", body) if kind == RTF else body, mime_type=kind)

    async def extract() -> Any:
        return (await xberg.extract(source, options)).results[0]

    try:
        found = asyncio.run(extract())
    except (IndexError, RuntimeError, xberg.XbergError) as error:
        raise IngestError("office_broken", url=shown(url)) from error
    about = found.metadata
    return described(
        html_markdown(_SUBJECT.sub(r"<h1>\1</h1>", found.content)),
        url,
        title=about.title or "",
        author="; ".join(about.authors or ()),
        created=about.created_at or "",
        modified=about.modified_at or "",
    )
