"""Compressed bodies, undone within a bound: 1.8 KB gzipped twice can otherwise become 1 GiB in one step."""

from __future__ import annotations

import zlib

_GZIP_MAGIC = b"\x1f\x8b"
_TELLING = 2  # bytes by which a gzip member, and zlib's header, are known; a read may end between them
_ENCODINGS = {"": None, "identity": None, "gzip": 31, "x-gzip": 31, "deflate": 15}


class TooLargeError(Exception):
    """The decoded body is larger than its limit."""


class UnknownEncodingError(Exception):
    """The body is in an encoding that was not asked for, or in several."""


class CorruptError(Exception):
    """The compressed data is damaged or ends early."""


class BodyDecoder:
    """Collects a body piece by piece, undoing at most one content encoding, up to `limit` bytes."""

    def __init__(self, encoding: str, limit: int) -> None:
        """Raises UnknownEncodingError for a Content-Encoding other than gzip, deflate and identity."""
        name = encoding.strip().lower()
        if name not in _ENCODINGS:
            raise UnknownEncodingError(name)
        self._window = _ENCODINGS[name]
        self._stream = zlib.decompressobj(self._window) if self._window else None
        self._limit = limit
        self._body = bytearray()
        self._begun = False
        self._held = b""

    def feed(self, data: bytes) -> None:
        """Take the next piece off the wire. Raises TooLargeError or CorruptError."""
        data, self._held = self._held + data, b""
        while data:
            if len(data) < _TELLING and self._begins():
                self._held = data
                return
            self._begun = True
            data = self._feed_member(data)

    def finish(self) -> bytes:
        """The whole body. Raises CorruptError when the compressed data has not ended."""
        if self._stream and not self._stream.eof and self._body:
            raise CorruptError
        return bytes(self._body)

    def _begins(self) -> bool:
        """Whether the next bytes tell what follows: another gzip member, or which kind of "deflate" it is."""
        return self._stream is not None and (self._stream.eof or (self._window == 15 and not self._begun))

    def _feed_member(self, data: bytes) -> bytes:
        """Decode up to the end of one gzip member; returns what follows it."""
        if self._stream is None:
            self._add(data)
            return b""
        if self._stream.eof:
            if not data.startswith(_GZIP_MAGIC):
                return b""  # padding after the end, which browsers ignore too
            self._stream = zlib.decompressobj(31)
        self._add(self._decompress(self._stream, data))
        return self._stream.unused_data

    def _decompress(self, stream: zlib._Decompress, data: bytes) -> bytes:
        room = self._limit - len(self._body) + 1
        try:
            return stream.decompress(data, room)
        except zlib.error as error:
            if self._window != 15 or self._body:
                raise CorruptError from error
        self._window = -15  # servers send "deflate" with and without the zlib header
        self._stream = zlib.decompressobj(-15)
        try:
            return self._stream.decompress(data, room)
        except zlib.error as error:
            raise CorruptError from error

    def _add(self, data: bytes) -> None:
        self._body += data
        if len(self._body) > self._limit:
            raise TooLargeError
