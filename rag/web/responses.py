"""Headers and bodies of responses, which are untrusted.

Bodies are decompressed within a limit: 1.8 KB gzipped twice could otherwise become 1 GiB in one step.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar
from types import SimpleNamespace
from typing import Any, cast
from urllib.request import Request

from rag.patterns import lazy_regex
from rag.web.guard import CheckedUrl

Headers = Sequence[tuple[bytes, bytes]]

MAX_RETRY_AFTER = 24 * 3600
_ETAG = lazy_regex(r'(?:W/)?"[\x21\x23-\x7e]{0,200}"|[\x21\x23-\x7e]{1,200}')
_HTTP_DATE = lazy_regex(r"[A-Za-z0-9 ,:+-]{10,50}")


def header(headers: Headers, name: bytes) -> bytes:
    """Return the first value of a header; all of them, joined as HTTP does, for Content-Encoding."""
    values = [value.strip() for key, value in headers if key.lower() == name]
    if name == b"content-encoding":
        return b", ".join(values)
    return values[0] if values else b""


def header_text(headers: Headers, name: bytes) -> str:
    """Return the text of a header that may have any characters: UTF-8, else Latin-1."""
    value = header(headers, name)
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def entity_tag(value: str) -> str:
    """Return `value` if it can be sent back as an entity tag (RFC 9110, section 8.8.3), quoted or not; else ""."""
    return value if _ETAG.fullmatch(value) else ""


def http_date(value: str) -> str:
    """Return `value` if it can be sent back as an HTTP date; else ""."""
    return value if _HTTP_DATE.fullmatch(value) else ""


def conditions(etag: str, last_modified: str) -> list[tuple[bytes, bytes]]:
    """Return the headers that request a page only if it no longer matches these validators."""
    candidates = ((b"If-None-Match", entity_tag(etag)), (b"If-Modified-Since", http_date(last_modified)))
    return [(name, value.encode("ascii")) for name, value in candidates if value]


def retry_after(headers: Headers, now: datetime | None = None) -> int | None:
    """Return the seconds after which the server wants to be asked again, at most a day; None if not given."""
    value = header(headers, b"retry-after").decode("latin-1")
    if re.fullmatch(r"[0-9]{1,9}", value, re.ASCII):
        return min(int(value), MAX_RETRY_AFTER)
    try:
        date = parsedate_to_datetime(value)
        aware = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (aware - (now or datetime.now(UTC))).total_seconds()
    except (ValueError, OverflowError):  # the latter for years of many digits
        return None
    return max(0, min(round(seconds), MAX_RETRY_AFTER))


class FetchCookies:
    """Cookies of one fetch. Each is only sent back to the scheme, host and port that set it."""

    def __init__(self) -> None:
        self._jars: defaultdict[tuple[str, str], CookieJar] = defaultdict(CookieJar)

    def keep(self, url: CheckedUrl, headers: Headers) -> None:
        """Store the cookies set by the response of `url`."""
        message = Message()
        for name, value in headers:
            if name.lower() == b"set-cookie":
                message["Set-Cookie"] = value.decode("latin-1")
        if message:
            response = cast(Any, SimpleNamespace(info=lambda: message))  # the only method that the jar calls
            self._jars[url.scheme, url.authority].extract_cookies(response, _request(url))

    def header(self, url: CheckedUrl) -> list[tuple[bytes, bytes]]:
        """Return the Cookie header of a request for `url` in a list, which is empty if there are no cookies."""
        request = _request(url)
        self._jars[url.scheme, url.authority].add_cookie_header(request)
        value = request.get_header("Cookie")
        return [(b"Cookie", value.encode("latin-1"))] if value else []


def _request(url: CheckedUrl) -> Request:
    return Request(f"{url.scheme}://{url.authority}{url.target}")


# IANA's registry of content codings. Like browsers, other names ("none", "utf-8") and "identity" are ignored.
_CODINGS = frozenset("aes128gcm br compress dcb dcz deflate exi gzip pack200-gzip x-compress x-gzip zstd".split())
_GZIP = frozenset(["gzip", "x-gzip"])
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
_DEFLATE_WINDOWS = (15, -15)  # servers send "deflate" with and without the zlib header
_BINARY = lazy_regex(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # never in text, and early in compressed data
_SNIFFED = 1024
_CHUNK_SIZE = 4096  # small, because zlib copies the rest after each gzip member


class TooLargeError(Exception):
    """The decoded body is larger than its limit."""


class UnknownEncodingError(Exception):
    """The body has an encoding that was not requested, or several."""


class CorruptError(Exception):
    """The compressed data is damaged or ends early."""


def decode_body(body: bytes, encoding: str, limit: int) -> bytes:
    """Decode a `body` received with the Content-Encoding `encoding` to at most `limit` bytes.

    Undoes at most one compression, and none that is declared but was not applied. Raises TooLargeError,
    UnknownEncodingError or CorruptError.
    """
    declared = [name for name in map(str.strip, encoding.lower().split(",")) if name in _CODINGS]
    if not declared or _is_uncompressed(body, declared[-1]):
        if len(body) > limit:
            raise TooLargeError
        return body
    if len(declared) > 1:
        raise UnknownEncodingError(encoding)
    if declared[0] in _GZIP:
        windows: tuple[int, ...] = (_GZIP_WINDOW,)
    elif declared[0] == "deflate":
        windows = _DEFLATE_WINDOWS
    else:
        raise UnknownEncodingError(encoding)
    failure = zlib.error()
    for window in windows:
        try:
            return _inflate(body, window, limit)
        except zlib.error as error:
            failure = error
    raise CorruptError from failure


def _is_uncompressed(body: bytes, coding: str) -> bool:
    """Return whether the bytes show that the declared coding was not applied."""
    is_other_format = coding in _GZIP and not body.startswith(_GZIP_MAGIC)
    return is_other_format or not _BINARY.search(body, 0, _SNIFFED)


def _inflate(data: bytes, window: int, limit: int) -> bytes:
    """Decompress all members of `data`. Raises zlib.error if it is damaged or ends early."""
    body = bytearray()
    stream = zlib.decompressobj(window)
    position = 0
    while position < len(data):
        chunk = data[position : position + _CHUNK_SIZE]
        body += stream.decompress(chunk, limit - len(body) + 1)
        if len(body) > limit:
            raise TooLargeError
        position += len(chunk) - len(stream.unused_data)
        if stream.eof:
            if not data.startswith(_GZIP_MAGIC, position):
                return bytes(body)  # like browsers, ignore trailing data
            stream = zlib.decompressobj(_GZIP_WINDOW)
    raise zlib.error("it ends early")
