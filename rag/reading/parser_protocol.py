"""What goes over the pipe to the process that parses: a JSON header and a body, their lengths before them.

And what comes back of a document.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import IO, Any

_LENGTHS = struct.Struct(">II")
_MAX_HEADER = 64 * 1024 * 1024
_MAX_BODY = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Extracted:
    """The readable part of a document of any kind.

    `language` is a primary BCP 47 tag or empty; `canonical` an address on the page's own host, or empty;
    `published` and `modified` are ISO 8601 or empty. `signals` are for `rag.reading.quality.judge`.
    """

    title: str
    language: str
    site: str
    canonical: str
    text: str
    author: str = ""
    published: str = ""
    modified: str = ""
    signals: tuple[str, ...] = ()


class BrokenPipeFrameError(Exception):
    """The other side ended within a frame, or sent something that is none."""


def write_frame(stream: IO[bytes], header: dict[str, Any], body: bytes = b"") -> None:
    """Send one frame. Raises OSError when the other side is gone."""
    data = json.dumps(header, ensure_ascii=False).encode("utf-8", "replace")
    stream.write(_LENGTHS.pack(len(data), len(body)) + data)
    stream.write(body)
    stream.flush()


def read_frame(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """The next frame, or None when the other side has ended between two. Raises BrokenPipeFrameError."""
    lengths = stream.read(_LENGTHS.size)
    if not lengths:
        return None
    if len(lengths) < _LENGTHS.size:
        raise BrokenPipeFrameError
    header_size, body_size = _LENGTHS.unpack(lengths)
    if header_size > _MAX_HEADER or body_size > _MAX_BODY:
        raise BrokenPipeFrameError
    data, body = stream.read(header_size), stream.read(body_size)
    if len(data) < header_size or len(body) < body_size:
        raise BrokenPipeFrameError
    header = json.loads(data)
    if not isinstance(header, dict):
        raise BrokenPipeFrameError
    return header, body
