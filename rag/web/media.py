"""Detection of document types, by signature, declared type, file extension and markup."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from rag.errors import FetchError
from rag.text import lazy_regex
from rag.types import because
from rag.web.guard import printable
from rag.web.markup import detect_utf16

MEGABYTE = 1_000_000
MAX_CHARACTERS = 5_000_000
"""Maximum length of a document's text."""
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODT = "application/vnd.oasis.opendocument.text"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODP = "application/vnd.oasis.opendocument.presentation"
XLS = "application/vnd.ms-excel"
MSG = "application/vnd.ms-outlook"
EPUB = "application/epub+zip"
RTF = "application/rtf"
IPYNB = "application/x-ipynb+json"
SRT = "application/x-subrip"
VTT = "text/vtt"
EML = "message/rfc822"
PICTURE = "image/*"
"""Any image format that `rag.reading.ocr` reads. Only for files: an image on the web is not a page."""
CSV = "text/csv"
TSV = "text/tab-separated-values"
XML = "application/xml"
GZIP = "application/gzip"

TEXT_TYPES: dict[str, str] = {
    "text/html": "text/html",
    "application/xhtml+xml": "text/html",
    "text/plain": "text/plain",
    "text/markdown": "text/markdown",
    "text/x-markdown": "text/markdown",
}
"""Types that `rag.reading.extract` reads."""
TABLE_TYPES: dict[str, str] = {
    "text/csv": CSV,
    "application/csv": CSV,
    "text/comma-separated-values": CSV,
    "text/tab-separated-values": TSV,
}
PACKAGE_TYPES: dict[str, str] = {
    **{kind: kind for kind in (PDF, DOCX, PPTX, XLSX, ODT, ODS, ODP, MSG, EPUB)},
    "application/x-pdf": PDF,
}
"""Binary types."""
DOCUMENT_TYPES: dict[str, str] = {
    **PACKAGE_TYPES,
    **{kind: kind for kind in (RTF, IPYNB, SRT, VTT, EML)},
    "text/rtf": RTF,
    "text/srt": SRT,
}
"""Types that `rag.reading.documents` reads besides `TABLE_TYPES`."""
FEED_TYPES: dict[str, str] = {
    "application/xml": XML,
    "text/xml": XML,
    "application/rss+xml": XML,
    "application/atom+xml": XML,
    "application/rdf+xml": XML,
    "application/feed+xml": XML,
    "application/gzip": GZIP,
    "application/x-gzip": GZIP,
}
"""Feeds and sitemaps, which link to pages but are not pages."""
MEDIA_TYPES: dict[str, str] = {**TEXT_TYPES, **TABLE_TYPES, **DOCUMENT_TYPES, **FEED_TYPES}

SLOW_TYPES = frozenset([*DOCUMENT_TYPES.values(), XLS, PICTURE])
"""Types that are read in a separate process with more time."""
EXTENSION_TYPES: dict[str, str] = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), TEXT_TYPES["text/html"]),
    **dict.fromkeys((".md", ".markdown", ".mdown"), TEXT_TYPES["text/markdown"]),
    ".txt": "text/plain",
    ".csv": CSV,
    ".tsv": TSV,
    ".pdf": PDF,
    ".docx": DOCX,
    ".pptx": PPTX,
    ".xlsx": XLSX,
    ".odt": ODT,
    ".epub": EPUB,
    ".eml": EML,
    ".ipynb": IPYNB,
    ".vtt": VTT,
    ".srt": SRT,
    ".xls": XLS,
    ".ods": ODS,
    ".odp": ODP,
    ".rtf": RTF,
    ".msg": MSG,
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp"), PICTURE),
}
"""Types of documents by file extension."""

_NO_TYPE = frozenset(["", "unknown/unknown", "application/unknown", "*/*"])
# Types that servers use for unknown files, PDF included; the first bytes or the name decide.
_UNSPECIFIC = frozenset(
    "application/octet-stream binary/octet-stream application/x-download application/force-download application/zip "
    "application/vnd.ms-excel".split()
)
_TYPE = lazy_regex(r"\s*([!#$&^_.+\w-]+/[!#$&^_.+\w-]+)\s*(?:;|$)", re.ASCII)
_CHARSET = lazy_regex(r";\s*charset\s*=\s*[\"']?([\w.:-]+)", re.ASCII | re.IGNORECASE)
# One item before the first element. Repeating it inside the expression would backtrack exponentially:
# a few dozen comments would take forever.
_SKIPPED = lazy_regex(rb"\s+|<!--.*?(?:-->|\Z)|<\?xml[^>]*(?:>|\Z)", re.IGNORECASE | re.DOTALL)
_FEED_SKIPPED = lazy_regex(rb"\s+|<!--.*?(?:-->|\Z)|<\?[^>]*(?:>|\Z)", re.DOTALL)
_MARKUP = lazy_regex(
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|style|link|h[1-6]"
    rb"|div|p|a|b|br|table|ul|ol|article|section|main|header)\b",
    re.IGNORECASE,
)
_FEED_MARKUP = lazy_regex(rb"<(?:\w+:)?(?:rss|feed|rdf|urlset|sitemapindex)\b", re.IGNORECASE)
_ZIP = b"PK\x03\x04"
_MIMETYPE = b"mimetype"  # first entry, uncompressed, of a package that declares its type
_PARTS: dict[bytes, str] = {
    b"word/document": DOCX,
    b"ppt/presentation": PPTX,
    b"xl/workbook": XLSX,
    b"META-INF/container.xml": EPUB,
}
_GZIP = b"\x1f\x8b"
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_BINARY_SIGNATURES = (b"\x89PNG", b"GIF87a", b"GIF89a", b"\xff\xd8\xff", b"7z\xbc\xaf", b"\x7fELF", b"Rar!\x1a")
_PICTURES = lazy_regex(rb"\x89PNG|\xff\xd8\xff|RIFF.{4}WEBP|II\*\x00|MM\x00\*|BM.{4}\x00{4}", re.DOTALL)
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Types recognised only by file extension; all but HTML are often served as text/plain.
_DETECTED_BY_BYTES = (*PACKAGE_TYPES.values(), XLS, RTF, PICTURE, "text/plain")
_BY_NAME = {end: kind for end, kind in EXTENSION_TYPES.items() if kind not in _DETECTED_BY_BYTES}
_NAMED_PLAIN = frozenset(end for end, kind in _BY_NAME.items() if kind != "text/html")
_SAMPLE_BYTES = 4096


def parse_content_type(value: str) -> tuple[str, str | None]:
    """Return the essence of a Content-Type header in lower case ("" if there is none), and its charset."""
    match = _TYPE.match(value)
    essence = match[1].lower() if match else ""
    charset = _CHARSET.search(value)
    return ("" if essence in _NO_TYPE else essence), (charset[1] if charset else None)


def byte_limit(essence: str) -> int:
    """Return the maximum size of a body in bytes, for a declared type, "", or a result of `media_type`.

    An unspecific type has a document's limit; the limit of the detected type is checked later.
    """
    kind = MEDIA_TYPES.get(essence)
    if essence in DOCUMENT_TYPES or essence in _UNSPECIFIC:
        return 25 * MEGABYTE
    return 2 * MEGABYTE if kind == "text/html" else 5 * MEGABYTE


def check_declared(essence: str, url: str) -> None:
    """Raise FetchError("content_type") for a declared type that is not supported."""
    if essence and essence not in MEDIA_TYPES and essence not in _UNSPECIFIC:
        _refuse(url, "other_type", type=essence)


def media_type(body: bytes, essence: str, url: str, charset: str | None = None) -> str:
    """Return the type of the document in `body`; without a declared type, `essence` is "".

    `url` may also be a file name. Binary formats and RTF are recognised by their signature, whatever the declared type;
    gzip and images only where expected. Raises FetchError("content_type") for unsupported types.
    """
    check_declared(essence, url)
    detected = _by_signature(body, essence, url)
    if detected:
        return detected
    check_is_text(body, url, charset)
    kind = MEDIA_TYPES.get(essence)
    if essence in PACKAGE_TYPES or kind == GZIP:
        _refuse(url, "not_as_declared", type=essence)
    extension = _extension(url)
    if kind == XML:
        return "text/html" if _by_markup(body) == "text/html" else XML
    if kind and not (kind == "text/plain" and extension in _NAMED_PLAIN):
        return kind
    return _BY_NAME.get(extension) or _by_markup(body)


def check_is_text(body: bytes, name: str, charset: str | None = None) -> None:
    """Raise FetchError("content_type") for known binary formats, and NUL bytes outside UTF-16.

    UTF-16 needs a byte order mark, or is declared as `charset`.
    """
    if body.startswith(_OLD_OFFICE):
        _refuse(name, "old_office")
    if body.startswith((_ZIP, _GZIP, b"%PDF-", *_BINARY_SIGNATURES)):
        _refuse(name, "binary")
    if b"\x00" in body and not body.startswith(_UTF16_MARKS) and not detect_utf16(body, charset):
        _refuse(name, "binary")


def _by_signature(body: bytes, essence: str, url: str) -> str | None:
    if body[:1024].lstrip(b"\xef\xbb\xbf\x00 \t\r\n").startswith(b"%PDF-"):
        return PDF
    if body.startswith(_ZIP):
        by_name = EXTENSION_TYPES.get(_extension(url))
        if package_type := _package_type(body):
            return package_type
        if by_name in PACKAGE_TYPES.values():
            return by_name  # it is damaged, which its reader reports
    if body.startswith(_OLD_OFFICE) and (compound_type := _compound_type(body, url)):
        return compound_type
    if body.startswith(b"{\\rtf"):
        return RTF
    if _PICTURES.match(body) and not essence and not url.startswith(("http://", "https://")):
        return PICTURE
    may_be_packed = MEDIA_TYPES.get(essence) == GZIP or (
        (not essence or essence in _UNSPECIFIC) and _extension(url) == ".gz"
    )
    return GZIP if may_be_packed and body.startswith(_GZIP) else None


def _package_type(body: bytes) -> str | None:
    """Return the type of a zip package: the one that it declares, else that of the last known part in it."""
    if body[30:38] == _MIMETYPE:
        declared = body[38:].split(b"PK", 1)[0].decode("latin-1")
        return next((kind for kind in (EPUB, ODT, ODS, ODP) if declared.startswith(kind)), None)
    position, kind = max((body.rfind(part), kind) for part, kind in _PARTS.items())
    return kind if position >= 0 else None


def _compound_type(body: bytes, url: str) -> str | None:
    """Return the type of a file in the old Office format, by the names of its streams; None if unsupported."""
    if _utf16("EncryptedPackage") in body:
        _refuse(url, "locked")
    if _utf16("__properties_version1.0") in body:
        return MSG
    is_other_document = _utf16("WordDocument") in body or _utf16("PowerPoint Document") in body
    return XLS if (_utf16("Workbook") in body or _utf16("Book") in body) and not is_other_document else None


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-le")


def _by_markup(body: bytes) -> str:
    head = body[:_SAMPLE_BYTES].replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")
    if _FEED_MARKUP.match(head, _first_element(head, _FEED_SKIPPED)):
        return XML
    return "text/html" if _MARKUP.match(head, _first_element(head, _SKIPPED)) else "text/plain"


def _first_element(head: bytes, skipped: re.Pattern[bytes]) -> int:
    """Return the position in `head` after its leading comments and declarations."""
    position = 0
    while match := skipped.match(head, position):
        position = match.end()
    return position


def _extension(url: str) -> str:
    path = url.partition("?")[0].partition("#")[0].lower()
    dot = path.rfind(".")
    return path[dot:] if dot > path.rfind("/") else ""


def _refuse(url: str, cause: str, **params: Any) -> NoReturn:
    raise FetchError("content_type", url=printable(url), **because(cause, **params))
