"""Refreshes: headers and meta elements that redirect readers of a page after some seconds."""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rag.web.declared_charset import codec_of, find_declaration
from rag.web.markup import OPAQUE, tags
from rag.web.url_key import join_location, web_address

MAX_DELAY = 15.0
"""Maximum delay in seconds; a page shown for longer is meant to be read."""

_MAX_TEXT = 500  # maximum bytes of text on a page that only redirects
_HEAD_BYTES = 8192
_HINT = re.compile(rb"http-equiv\s*+=\s*+[\"']?refresh", re.IGNORECASE)
_SPACE = r"[\t\n\f\r ]*+"
_REFRESH = re.compile(
    _SPACE
    + r"(?P<seconds>[0-9]++|(?=\.))[0-9.]*+(?:(?=[\t\n\f\r ;,])"
    + _SPACE
    + r"[;,]?+"
    + _SPACE
    + r"(?P<rest>.*+))?+",
    re.DOTALL,
)
_REFERENCE = re.compile(
    r"(?:url" + _SPACE + "=" + _SPACE + r")?+(?P<quote>[\"'])?+(?P<url>.*+)", re.IGNORECASE | re.DOTALL
)
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});", re.IGNORECASE)


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
    """Return the web address that a page at `base` soon redirects to; "" if it does not."""
    if refresh is None or refresh.seconds > MAX_DELAY:
        return ""
    target = join_location(base, refresh.reference)
    return target if target.lower().startswith(("http:", "https:")) else ""


def meta_target(page: bytes, charset: str | None, url: str) -> str:
    """Return the address that the meta elements of an HTML page at `url` soon redirect to; "" if they do not.

    `charset` is from its header. An element inside noscript counts if the page has hardly any other text: then its
    script would do the same.
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
    """Yield the content of each meta refresh, the base of its address, and whether it is inside a noscript."""
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
    """Decode the value of an attribute; an entity without a semicolon is left alone, as part of an address."""
    try:
        text = value.decode(codec)
    except UnicodeDecodeError:
        text = value.decode("latin-1")
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text)
