"""Detection of the charset that a page declares, and of its codec, as browsers do it.

Follows the WHATWG's prescan (HTML, section 13.2.3.2): the first meta element with an encoding counts, and truncated
tags are ignored.
"""

from __future__ import annotations

import codecs
import re

import webencodings

from rag.web.markup import tags

# Python's codecs for names of the Encoding standard, if they differ or Python's own decode less.
_PYTHON = {
    "windows-1252": "cp1252",
    "x-user-defined": "cp1252",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "windows-874": "cp874",
    "macintosh": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic",
    "iso-8859-8-i": "iso-8859-8",
}
_IN_CONTENT = re.compile(
    rb"charset\s*+=\s*+(?:\"(?P<a>[^\"]*+)\"|'(?P<b>[^']*+)'|(?P<c>[^\s;\"'][^\s;]*+))", re.IGNORECASE
)
_XML = re.compile(rb"\s*+<\?xml[^>]{0,200}?encoding\s*+=\s*+[\"']([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_SAMPLE_BYTES = 8192
_MAX_ERROR_SHARE = 0.002


def codec_of(label: str) -> str | None:
    """Return the Python codec for a charset's label as browsers interpret it; None if they reject it.

    "utf-16" may have either byte order. Dangerous (utf-7) and undetectable (ISO-2022-KR) charsets are None.
    """
    encoding = webencodings.lookup(label) if label.isascii() else None
    name: str = encoding.name if encoding else "replacement"
    if name == "replacement":
        return None
    if name == "utf-16le" and not label.strip().lower().endswith("le"):
        return "utf-16"
    return _PYTHON.get(name, name)


def detect_utf16(body: bytes, declared: str | None) -> str | None:
    """Return the codec of a body declared as UTF-16 without a byte order mark; None if its bytes disagree."""
    codec = codec_of(declared or "") or ""
    sample = body[: min(len(body) // 2 * 2, _SAMPLE_BYTES)]
    if not codec.startswith("utf-16") or b"\x00" not in sample:
        return None
    if codec == "utf-16":
        codec = "utf-16-be" if sample[0::2].count(0) > sample[1::2].count(0) else "utf-16-le"
    text = sample.decode(codec, "replace")
    return codec if text.count("\ufffd") + text.count("\x00") <= _MAX_ERROR_SHARE * len(text) else None


def find_declaration(head: bytes) -> str | None:
    """Return the label of the first usable declaration in a page that begins with `head`; None if there is none.

    A byte order mark counts as one.
    """
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8"
    for tag in tags(head):
        if tag.name == b"meta" and (label := _meta_charset(tag.attributes)):
            return label
    declaration = _XML.match(head)
    return _check_label(declaration[1]) if declaration else None


def _meta_charset(attributes: dict[bytes, bytes]) -> str | None:
    """Return the encoding of a meta element."""
    if b"charset" in attributes:
        return _check_label(attributes[b"charset"])
    match = _IN_CONTENT.search(attributes.get(b"content", b""))
    if not match or attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    return _check_label(match["a"] or match["b"] or match["c"] or b"")


def _check_label(label: bytes) -> str | None:
    """Return the label if it is known; UTF-8 for UTF-16, which could not have been parsed so far."""
    text = label.decode("ascii", "replace").strip()
    codec = codec_of(text)
    return "utf-8" if codec and codec.startswith("utf-16") else text if codec else None
