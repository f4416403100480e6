"""What kind of text a body is: its declared type, from a closed list, or else what its first bytes say."""

from __future__ import annotations

import re
from typing import Any, Literal

from rag.errors import FetchError
from rag.ingest.guard import shown
from rag.messages.ingest import because

MediaType = Literal["text/html", "text/plain", "text/markdown"]

KINDS: dict[str, MediaType] = {
    "text/html": "text/html",
    "application/xhtml+xml": "text/html",
    "text/plain": "text/plain",
    "text/markdown": "text/markdown",
    "text/x-markdown": "text/markdown",
}
_MISSING = frozenset(["", "unknown/unknown", "application/unknown", "*/*"])
_TYPE = re.compile(r"\s*([!#$&^_.+\w-]+/[!#$&^_.+\w-]+)\s*(?:;|$)", re.ASCII)
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:-]+)", re.ASCII | re.IGNORECASE)
_MARKUP = re.compile(
    rb"(?:\s|<!--.*?-->|<\?xml[^>]*>)*<(?:!doctype\s+html|html|head|body|title|meta|script|style|link|h[1-6]"
    rb"|div|p|a|b|br|table|ul|ol|article|section|main|header)\b",
    re.IGNORECASE | re.DOTALL,
)
_BINARY_SIGNATURES = (
    b"\x89PNG",
    b"GIF87a",
    b"GIF89a",
    b"\xff\xd8\xff",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"7z\xbc\xaf",
    b"\x7fELF",
    b"\xd0\xcf\x11\xe0",
)
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_MARKDOWN_NAMES = (".md", ".markdown", ".mdown")
_HTML_NAMES = (".html", ".htm", ".xhtml")
_SNIFFED = 4096


def parse_content_type(value: str) -> tuple[str, str | None]:
    """The essence of a Content-Type header in lower case ("" when there is none), and its charset."""
    match = _TYPE.match(value)
    essence = match[1].lower() if match else ""
    charset = _CHARSET.search(value)
    return ("" if essence in _MISSING else essence), (charset[1] if charset else None)


def check_declared(essence: str, url: str) -> None:
    """Refuse a declared type that is not on the list. Raises FetchError("content_type")."""
    if essence and essence not in KINDS:
        _refuse(url, "pdf" if essence == "application/pdf" else "other_type", type=essence)


def media_type(body: bytes, essence: str, url: str) -> MediaType:
    """The kind of text in `body`, whose declared type may be "" (then it is sniffed).

    `url` may also be a file's name. Raises FetchError("content_type") for anything that is not text,
    whatever it was declared to be.
    """
    check_declared(essence, url)
    check_is_text(body, url)
    path = url.partition("?")[0].partition("#")[0].lower()
    if essence and not (essence == "text/plain" and path.endswith(_MARKDOWN_NAMES)):
        return KINDS[essence]
    if path.endswith(_MARKDOWN_NAMES):
        return "text/markdown"
    head = body[:_SNIFFED].replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")
    return "text/html" if path.endswith(_HTML_NAMES) or _MARKUP.match(head) else "text/plain"


def check_is_text(body: bytes, name: str) -> None:
    """Raises FetchError("content_type") for PDF, known binary formats, and NUL bytes outside UTF-16."""
    if body.lstrip()[:5] == b"%PDF-":
        _refuse(name, "pdf")
    if body.startswith(_BINARY_SIGNATURES):
        _refuse(name, "binary")
    if b"\x00" in body and not body.startswith(_UTF16_MARKS):
        _refuse(name, "binary")


def _refuse(url: str, cause: str, **params: Any) -> None:
    raise FetchError("content_type", url=shown(url), **because(cause, **params))
