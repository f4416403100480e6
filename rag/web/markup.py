"""A prescan of a page's markup for tags, charset and refreshes, before a child process parses it.

It follows the prescan of the HTML standard (section 13.2.3.2), in linear time: comments and declarations are skipped,
and scanning ends at a truncated tag.
"""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import webencodings

from rag.text import lazy_regex
from rag.web.urls import join_location, web_address

OPAQUE = frozenset(
    [b"script", b"style", b"title", b"textarea", b"template", b"iframe", b"noembed", b"noframes", b"xmp"]
)
"""Elements whose content is not parsed for tags."""

_SPACE = rb"[\t\n\f\r ]"
_TAG = lazy_regex(rb"<(?:(?P<comment>!--)|(?P<name>/?[a-z][^\t\n\f\r />]*+)|[!/?])", re.IGNORECASE)
_NAME = lazy_regex(
    rb"[\t\n\f\r /]*+(?P<end>>)?(?P<name>[^\t\n\f\r />][^\t\n\f\r />=]*+)?" + _SPACE + rb"*+(?P<equals>=)?"
)
_VALUE = lazy_regex(_SPACE + rb"*+(?:\"(?P<a>[^\"]*+)\"|'(?P<b>[^']*+)'|(?P<c>(?![\"'])[^\t\n\f\r >]*+))")
_ENDS = {name: lazy_regex(rb"</" + name + rb"(?=[\t\n\f\r />])", re.IGNORECASE) for name in OPAQUE}


class Tag(NamedTuple):
    """A tag at `markup[start:end]`.

    `name` is in lower case, with a leading slash for an end tag, and "!" for comments and declarations. `attributes`
    has names in lower case and raw values.
    """

    name: bytes
    attributes: dict[bytes, bytes]
    start: int
    end: int


def tags(markup: bytes, *, opaque: bool = False) -> Iterator[Tag]:
    """Yield the tags of `markup` in order; with `opaque`, skip the content of OPAQUE elements."""
    position = 0
    while match := _TAG.search(markup, position):
        name, attributes = (match["name"] or b"!").lower(), dict[bytes, bytes]()
        if match["comment"]:
            end_position = markup.find(b"-->", match.start() + 2) + 2
        elif match["name"]:
            attributes, end_position = _attributes(markup, match.end())
        else:
            end_position = markup.find(b">", match.end())
        if end_position < match.start() + 2:
            return
        position = end_position + 1
        yield Tag(name, attributes, match.start(), position)
        if opaque and name in OPAQUE:
            end = _ENDS[name].search(markup, position)
            position = end.start() if end else len(markup)


def _attributes(markup: bytes, position: int) -> tuple[dict[bytes, bytes], int]:
    """Return the attributes of a tag from `position` on, and the position of its last byte: -1 if truncated."""
    attributes: dict[bytes, bytes] = {}
    while (match := _NAME.match(markup, position)) and not match["end"] and match["name"]:
        position, text = match.end(), b""
        if match["equals"]:
            value = _VALUE.match(markup, position)
            if not value or value.end() == len(markup):
                return attributes, -1
            position, text = value.end(), value["a"] or value["b"] or value["c"] or b""
        attributes.setdefault(match["name"].lower(), text)
    return attributes, match.start("end") if match and match["end"] else -1


# Charsets

# Python's codecs for names in the Encoding standard, if they differ or Python's codec of that name decodes less.
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
_IN_CONTENT = lazy_regex(
    rb"charset\s*+=\s*+(?:\"(?P<a>[^\"]*+)\"|'(?P<b>[^']*+)'|(?P<c>[^\s;\"'][^\s;]*+))", re.IGNORECASE
)
_XML = lazy_regex(rb"\s*+<\?xml[^>]{0,200}?encoding\s*+=\s*+[\"']([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_SAMPLE_BYTES = 8192
_MAX_ERROR_SHARE = 0.002


def codec_of(label: str) -> str | None:
    """Return the Python codec for a charset's label as browsers interpret it; None if they reject it.

    "utf-16" stands for either byte order. Dangerous (UTF-7) and undetectable (ISO-2022-KR) charsets give None.
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
    """Return the first usable charset label declared in `head`, the beginning of a page; None if there is none.

    A UTF-8 byte order mark counts as a declaration.
    """
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8"
    for tag in tags(head):
        if tag.name == b"meta" and (label := _meta_charset(tag.attributes)):
            return label
    declaration = _XML.match(head)
    return _check_label(declaration[1]) if declaration else None


def _meta_charset(attributes: dict[bytes, bytes]) -> str | None:
    """Return the charset label that a meta element declares; None if there is no usable one."""
    if b"charset" in attributes:
        return _check_label(attributes[b"charset"])
    match = _IN_CONTENT.search(attributes.get(b"content", b""))
    if not match or attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    return _check_label(match["a"] or match["b"] or match["c"] or b"")


def _check_label(label: bytes) -> str | None:
    """Return the label if it is known; UTF-8 for UTF-16, in which the declaration could not have been read."""
    text = label.decode("ascii", "replace").strip()
    codec = codec_of(text)
    return "utf-8" if codec and codec.startswith("utf-16") else text if codec else None


# Refreshes: headers and meta elements that redirect after some seconds

MAX_DELAY = 15.0
"""Maximum delay in seconds; a page shown for longer is meant to be read."""

_MAX_TEXT = 500  # maximum bytes of text on a page that only redirects
_HEAD_BYTES = 8192
_HINT = lazy_regex(rb"http-equiv\s*+=\s*+[\"']?refresh", re.IGNORECASE)
_BLANKS = r"[\t\n\f\r ]*+"
_REFRESH = lazy_regex(
    _BLANKS
    + r"(?P<seconds>[0-9]++|(?=\.))[0-9.]*+(?:(?=[\t\n\f\r ;,])"
    + _BLANKS
    + r"[;,]?+"
    + _BLANKS
    + r"(?P<rest>.*+))?+",
    re.DOTALL,
)
_REFERENCE = lazy_regex(
    r"(?:url" + _BLANKS + "=" + _BLANKS + r")?+(?P<quote>[\"'])?+(?P<url>.*+)", re.IGNORECASE | re.DOTALL
)
_ENTITY = lazy_regex(r"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Refresh:
    """The target of a page's refresh (`reference`, "" for the page itself) and its delay in seconds."""

    seconds: float
    reference: str


def parse_refresh(value: str) -> Refresh | None:
    """Parse a refresh as in the HTML standard (shared declarative refresh steps); None if it is invalid."""
    match = _REFRESH.fullmatch(value)
    if not match:
        return None
    parts = _REFERENCE.fullmatch(match["rest"] or "")
    reference = "" if not parts else parts["url"].partition(parts["quote"])[0] if parts["quote"] else parts["url"]
    return Refresh(float(match["seconds"] or 0), reference.strip("\t\n\f\r "))


def target_of(refresh: Refresh | None, base: str) -> str:
    """Return the URL that a page at `base` redirects to within MAX_DELAY; "" if it does not."""
    if refresh is None or refresh.seconds > MAX_DELAY:
        return ""
    target = join_location(base, refresh.reference)
    return target if target.lower().startswith(("http:", "https:")) else ""


def meta_target(page: bytes, charset: str | None, url: str) -> str:
    """Return the URL that a meta element of an HTML page at `url` redirects to within MAX_DELAY; "" if none does.

    `charset` is from the header. An element inside noscript counts only if the page has hardly any other text, because
    its script then does the same.
    """
    if page.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        page, charset = page.decode("utf-16", "replace").encode(), "utf-8"
    if not _HINT.search(page):
        return ""
    codec = codec_of(charset or find_declaration(page[:_HEAD_BYTES]) or "") or "utf-8"
    fallback = ""
    for content, base, in_noscript in _refreshes(page, url):
        refresh = parse_refresh(_decode(content, codec))
        if refresh and not in_noscript:
            return target_of(refresh, base)
        fallback = fallback or target_of(refresh, base)
    return fallback if fallback and _text_length(page) < _MAX_TEXT else ""


def _refreshes(page: bytes, url: str) -> Iterator[tuple[bytes, str, bool]]:
    """Yield the content of each meta refresh, its base URL, and whether it is inside noscript."""
    base, in_noscript = url, False
    for tag in tags(page, opaque=True):
        if tag.name in (b"noscript", b"/noscript"):
            in_noscript = tag.name == b"noscript"
        elif tag.name == b"base" and b"href" in tag.attributes and base == url:
            base = web_address(url, _decode(tag.attributes[b"href"], "utf-8").strip()) or url
        elif tag.name == b"meta" and tag.attributes.get(b"http-equiv", b"").lower() == b"refresh":
            yield tag.attributes.get(b"content", b""), base, in_noscript


def _text_length(page: bytes) -> int:
    """Count the bytes of text between the tags of a page, without surrounding whitespace."""
    total, end, is_text = 0, 0, True
    for tag in tags(page, opaque=True):
        total += len(page[end : tag.start].strip()) if is_text else 0
        is_text = tag.name not in OPAQUE and tag.name != b"noscript"
        end = tag.end
    return total + (len(page[end:].strip()) if is_text else 0)


def _decode(value: bytes, codec: str) -> str:
    """Decode an attribute's value; entities without a semicolon stay, as they may be part of a URL."""
    try:
        text = value.decode(codec)
    except UnicodeDecodeError:
        text = value.decode("latin-1")
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text)
