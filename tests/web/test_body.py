"""Compressed bodies, however the network cuts them into pieces."""

from __future__ import annotations

import zlib

import pytest

from rag.web.body import BodyDecoder, CorruptError

TEXT = b"hello world, hello world, hello"


def packed(text: bytes, window: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, window)
    return packer.compress(text) + packer.flush()


def decoded(encoding: str, *pieces: bytes) -> bytes:
    decoder = BodyDecoder(encoding, 1000)
    for piece in pieces:
        decoder.feed(piece)
    return decoder.finish()


@pytest.mark.parametrize(
    ("encoding", "data", "text"),
    [
        ("gzip", packed(TEXT, 31) + packed(b"B" * 20, 31), TEXT + b"B" * 20),
        ("gzip", packed(b"", 31) + packed(TEXT, 31), TEXT),
        ("gzip", packed(TEXT, 31) + b"\x00\x00\x00", TEXT),
        ("gzip", packed(TEXT, 31) + b"\x1f", TEXT),
        ("gzip", packed(TEXT, 31) + b"\x00", TEXT),
        ("deflate", packed(TEXT, -15), TEXT),
        ("deflate", packed(TEXT, 15), TEXT),
        ("deflate", packed(TEXT, 15) + b"\r\n", TEXT),
        ("identity", TEXT, TEXT),
    ],
)
def test_pieces_of_all_sizes(encoding: str, data: bytes, text: bytes) -> None:
    assert decoded(encoding, *(data[at : at + 1] for at in range(len(data)))) == text
    for cut in range(len(data) + 1):
        assert decoded(encoding, data[:cut], b"", data[cut:]) == text


@pytest.mark.parametrize(("encoding", "window"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
def test_what_ends_early(encoding: str, window: int) -> None:
    with pytest.raises(CorruptError):
        decoded(encoding, packed(bytes(range(200)), window)[:-3])


def test_a_second_member_that_ends_early() -> None:
    with pytest.raises(CorruptError):
        decoded("gzip", packed(TEXT, 31) + b"\x1f", packed(b"B" * 20, 31)[1:-3])


@pytest.mark.parametrize("first", [b"p", b"pl"])
def test_what_is_no_such_encoding(first: bytes) -> None:
    for encoding in ("gzip", "deflate"):
        with pytest.raises(CorruptError):
            decoded(encoding, first, b"plain words, longer than a header")
