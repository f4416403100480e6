"""Bounded decompression of bodies: 1.8 KB gzipped twice could otherwise become 1 GiB in one step."""

from __future__ import annotations

import re
import zlib

# IANA's registry of content codings. Like browsers, other names ("none", "utf-8") and "identity" are ignored.
_CODINGS = frozenset("aes128gcm br compress dcb dcz deflate exi gzip pack200-gzip x-compress x-gzip zstd".split())
_GZIP = frozenset(["gzip", "x-gzip"])
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
_DEFLATE_WINDOWS = (15, -15)  # servers send "deflate" with and without the zlib header
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # never in text, and early in compressed data
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
