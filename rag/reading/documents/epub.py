"""E-books (.epub): chapters in reading order, each under a heading."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote
from zipfile import ZipFile

from rag.errors import IngestError
from rag.reading.charset import decode
from rag.reading.extract import html_to_markdown
from rag.reading.extraction.clean import clean_line
from rag.reading.office.package import DAMAGE, open_package, parse_xml, read_meta
from rag.reading.parser import Extracted
from rag.reading.properties import build_extracted
from rag.web.guard import printable

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_ENCRYPTED_PART = re.compile(rb"CipherReference\b[^>]*\.x?html?\b", re.IGNORECASE)
# XML allows self-closing elements; an HTML parser would put everything that follows into them.
_SELF_CLOSING = re.compile(r"<(?!(?:br|hr|img|image|col|wbr|input|link|meta|source|area|param)\b)([\w:]+)(\s[^<>]*)?/>")
_TITLE = re.compile(r"<title\b[^<>]*+>\s*+([^<>]++)</title>", re.IGNORECASE)


def read_epub(body: bytes, url: str) -> Extracted:
    """Return the chapters of a book.

    Raises IngestError: "office_broken", "office_too_large", "office_locked", "document_too_long", "document_no_text".
    """
    try:
        package = open_package(body, url)
        if _ENCRYPTION in package.namelist() and _ENCRYPTED_PART.search(package.read(_ENCRYPTION)):
            raise IngestError("office_locked", url=printable(url))
        place = next(parse_xml(package.read(_CONTAINER)).iter("{*}rootfile")).get("full-path")
        text = "\n\n".join(_read_chapters(package, parse_xml(package.read(place)), posixpath.dirname(place)))
        about = read_meta(package, place)
    except DAMAGE as error:
        raise IngestError("office_broken", url=printable(url)) from error
    return build_extracted(text, url, own_title=about["title"], author=about["author"], created=about["modified"])


def _read_chapters(package: ZipFile, book: Any, folder: str) -> Iterator[str]:
    items, names = {item.get("id"): item for item in book.iter("{*}item")}, package.namelist()
    for step in dict.fromkeys(step.get("idref") for step in book.iter("{*}itemref")):
        item = items.get(step, {})
        path = posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
        if path in names and "html" in item.get("media-type", "") and item.get("properties") != "nav":
            source = _SELF_CLOSING.sub(r"<\1\2></\1>", decode(package.read(path)))
            text, title = html_to_markdown(source), _TITLE.search(source)
            if text:
                yield text if text.startswith("#") or title is None else f"# {clean_line(title[1])}\n\n{text}"
