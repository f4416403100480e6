"""What kind of document a body is: its declared type, from a closed list, or else what its first bytes say."""

from __future__ import annotations

import re
from typing import Any, Literal, NoReturn

from rag.errors import FetchError
from rag.messages.ingest import because
from rag.web.declared_charset import unmarked_utf16
from rag.web.guard import shown

MediaType = Literal[
    "text/html",
    "text/plain",
    "text/markdown",
    "text/csv",
    "text/tab-separated-values",
    "application/pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/xml",
    "application/gzip",
]

MEGABYTE = 1024 * 1024
MAX_CHARACTERS = 5_000_000
"""The longest text that a document may make."""
PDF: MediaType = "application/pdf"
DOCX: MediaType = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
CSV: MediaType = "text/csv"
TSV: MediaType = "text/tab-separated-values"
XML: MediaType = "application/xml"
GZIP: MediaType = "application/gzip"

TEXTS: dict[str, MediaType] = {
    "text/html": "text/html",
    "application/xhtml+xml": "text/html",
    "text/plain": "text/plain",
    "text/markdown": "text/markdown",
    "text/x-markdown": "text/markdown",
}
"""What `rag.reading.extract` reads."""
TABLES: dict[str, MediaType] = {
    "text/csv": CSV,
    "application/csv": CSV,
    "text/comma-separated-values": CSV,
    "text/tab-separated-values": TSV,
}
DOCUMENTS: dict[str, MediaType] = {"application/pdf": PDF, "application/x-pdf": PDF, DOCX: DOCX}
"""What is not text in its bytes; `rag.reading.documents` reads these and `TABLES`."""
LISTS: dict[str, MediaType] = {
    "application/xml": XML,
    "text/xml": XML,
    "application/rss+xml": XML,
    "application/atom+xml": XML,
    "application/rdf+xml": XML,
    "application/feed+xml": XML,
    "application/gzip": GZIP,
    "application/x-gzip": GZIP,
}
"""Feeds and sitemaps, which lead to pages and are none."""
KINDS: dict[str, MediaType] = {**TEXTS, **TABLES, **DOCUMENTS, **LISTS}

_MISSING = frozenset(["", "unknown/unknown", "application/unknown", "*/*"])
# Servers send files that they do not know, PDF among them, as one of these; the first bytes tell.
_UNSAID = frozenset(
    ["application/octet-stream", "binary/octet-stream", "application/x-download", "application/force-download"]
)
_TYPE = re.compile(r"\s*([!#$&^_.+\w-]+/[!#$&^_.+\w-]+)\s*(?:;|$)", re.ASCII)
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:-]+)", re.ASCII | re.IGNORECASE)
# What stands before the first element, one at a time: repeated within one expression, there would be so many ways
# to divide a row of comments that a few dozen take forever.
_ASIDE = re.compile(rb"\s+|<!--.*?(?:-->|\Z)|<\?xml[^>]*(?:>|\Z)", re.IGNORECASE | re.DOTALL)
_LIST_ASIDE = re.compile(rb"\s+|<!--.*?(?:-->|\Z)|<\?[^>]*(?:>|\Z)", re.DOTALL)
_MARKUP = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|style|link|h[1-6]"
    rb"|div|p|a|b|br|table|ul|ol|article|section|main|header)\b",
    re.IGNORECASE,
)
_LIST_MARKUP = re.compile(rb"<(?:\w+:)?(?:rss|feed|rdf|urlset|sitemapindex)\b", re.IGNORECASE)
_ZIP = b"PK\x03\x04"
_DOCX_PART = b"word/document.xml"
_GZIP = b"\x1f\x8b"
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_BINARY_SIGNATURES = (b"\x89PNG", b"GIF87a", b"GIF89a", b"\xff\xd8\xff", b"7z\xbc\xaf", b"\x7fELF", b"Rar!\x1a")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BY_NAME: dict[str, MediaType] = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".mdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".csv": CSV,
    ".tsv": TSV,
}
_NAMED_PLAIN = frozenset([".md", ".markdown", ".mdown", ".csv", ".tsv"])  # often served as text/plain
_SNIFFED = 4096


def parse_content_type(value: str) -> tuple[str, str | None]:
    """The essence of a Content-Type header in lower case ("" when there is none), and its charset."""
    match = _TYPE.match(value)
    essence = match[1].lower() if match else ""
    charset = _CHARSET.search(value)
    return ("" if essence in _MISSING else essence), (charset[1] if charset else None)


def byte_limit(essence: str) -> int:
    """The largest body in bytes of a declared type, "" or one of `media_type`'s.

    A type that says nothing has a document's limit; the limit of what it turns out to be comes after.
    """
    kind = KINDS.get(essence)
    if kind in (PDF, DOCX) or essence in _UNSAID:
        return 25 * MEGABYTE
    return 2 * MEGABYTE if kind == "text/html" else 5 * MEGABYTE


def check_declared(essence: str, url: str) -> None:
    """Refuse a declared type that is not on the list. Raises FetchError("content_type")."""
    if essence and essence not in KINDS and essence not in _UNSAID:
        _refuse(url, "other_type", type=essence)


def media_type(body: bytes, essence: str, url: str, charset: str | None = None) -> MediaType:
    """The kind of document in `body`, whose declared type may be "" (then it is sniffed), and charset None.

    `url` may also be a file's name. Bytes that can only be PDF, a Word document or gzip are that,
    whatever they were declared to be; gzip only where it is expected. Raises FetchError("content_type") for
    all that is not read.
    """
    check_declared(essence, url)
    certain = _by_signature(body, essence, url)
    if certain:
        return certain
    check_is_text(body, url, charset)
    kind = KINDS.get(essence)
    if kind in (PDF, DOCX, GZIP):
        _refuse(url, "not_as_declared", type=essence)
    name = _extension(url)
    if kind == XML:
        return "text/html" if _by_markup(body) == "text/html" else XML
    if kind and not (kind == "text/plain" and name in _NAMED_PLAIN):
        return kind
    return _BY_NAME.get(name) or _by_markup(body)


def check_is_text(body: bytes, name: str, charset: str | None = None) -> None:
    """Raises FetchError("content_type") for known binary formats, and NUL bytes outside UTF-16.

    That shows by its byte order mark, or is declared as `charset`.
    """
    if body.startswith(_OLD_OFFICE):
        _refuse(name, "old_office")
    if body.startswith((_ZIP, _GZIP, b"%PDF-", *_BINARY_SIGNATURES)):
        _refuse(name, "binary")
    if b"\x00" in body and not body.startswith(_UTF16_MARKS) and not unmarked_utf16(body, charset):
        _refuse(name, "binary")


def _by_signature(body: bytes, essence: str, url: str) -> MediaType | None:
    if body[:1024].lstrip(b"\xef\xbb\xbf\x00 \t\r\n").startswith(b"%PDF-"):
        return PDF
    if body.startswith(_ZIP):
        if _DOCX_PART in body:
            return DOCX
        _refuse(url, "binary")
    may_be_packed = KINDS.get(essence) == GZIP or ((not essence or essence in _UNSAID) and _extension(url) == ".gz")
    return GZIP if may_be_packed and body.startswith(_GZIP) else None


def _by_markup(body: bytes) -> MediaType:
    head = body[:_SNIFFED].replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")
    if _LIST_MARKUP.match(head, _first_element(head, _LIST_ASIDE)):
        return XML
    return "text/html" if _MARKUP.match(head, _first_element(head, _ASIDE)) else "text/plain"


def _first_element(head: bytes, aside: re.Pattern[bytes]) -> int:
    """Where `head` goes on after the comments and declarations that it begins with."""
    at = 0
    while match := aside.match(head, at):
        at = match.end()
    return at


def _extension(url: str) -> str:
    path = url.partition("?")[0].partition("#")[0].lower()
    dot = path.rfind(".")
    return path[dot:] if dot > path.rfind("/") else ""


def _refuse(url: str, cause: str, **params: Any) -> NoReturn:
    raise FetchError("content_type", url=shown(url), **because(cause, **params))
