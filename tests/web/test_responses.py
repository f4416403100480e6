"""Compressed bodies, Content-Encoding as in browsers, and untrusted headers."""

from __future__ import annotations

import time
import zlib
from datetime import UTC, datetime

import pytest

from rag.web.connections import CorruptError, TooLargeError, UnknownEncodingError, decode_body
from rag.web.fetch import MAX_RETRY_AFTER, entity_tag, header, http_date, retry_after

TEXT = b"hello world, hello world, hello"


def packed(text: bytes, window: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, window)
    return packer.compress(text) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "data", "text"),
    [
        ("gzip", packed(TEXT, 31) + packed(b"B" * 20, 31), TEXT + b"B" * 20),
        ("gzip", packed(b"", 31) + packed(TEXT, 31), TEXT),
        ("gzip", packed(TEXT, 31) + b"\x00\x00\x00", TEXT),
        ("gzip", packed(TEXT, 31) + b"\x1f", TEXT),
        ("gzip", packed(bytes(range(256)) * 200, 31), bytes(range(256)) * 200),
        ("deflate", packed(TEXT, -15), TEXT),
        ("deflate", packed(TEXT, 15), TEXT),
        ("deflate", packed(TEXT, 15) + b"\r\n", TEXT),
        ("", TEXT, TEXT),
        ("gzip", b"", b""),
        ("gzip", b"%PDF-1.7\n\x00\x01\x02", b"%PDF-1.7\n\x00\x01\x02"),  # not compressed, whatever is declared
    ],
)
def test_what_is_compressed(encoding: str, data: bytes, text: bytes) -> None:
    assert decode_body(data, encoding, 100_000) == text


@pytest.mark.parametrize(
    "encoding", ["identity", "none", "None", "utf-8", "UTF-8", "binary", "8bit", "text/html", ",", "*"]
)
@pytest.mark.parametrize("text", [TEXT, "Fähre".encode("latin-1"), "渡轮".encode("gbk"), b"%PDF-1.7\x00\x01"])
def test_a_name_that_is_no_coding_is_ignored(encoding: str, text: bytes) -> None:
    assert decode_body(text, encoding, 1000) == text


@pytest.mark.parametrize("encoding", ["gzip, identity", "identity, gzip", "gzip,none", "utf-8, X-GZIP", " gzip ,"])
def test_one_coding_beside_names_that_are_none(encoding: str) -> None:
    assert decode_body(packed(TEXT, 31), encoding, 1000) == TEXT


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "gzip, gzip", "br, gzip"])
@pytest.mark.parametrize(
    "text", [TEXT, b"Some words", "S\u00f8rlandet f\u00e6rge".encode("latin-1"), "渡轮时刻".encode()]
)
def test_a_coding_that_was_not_applied(encoding: str, text: bytes) -> None:
    assert decode_body(text, encoding, 1000) == text


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "gzip, deflate", "gzip, br"])
def test_what_is_not_undone(encoding: str) -> None:
    with pytest.raises(UnknownEncodingError):
        decode_body(packed(packed(TEXT, 31), 31), encoding, 1000)


@pytest.mark.parametrize(
    ("encoding", "window", "before"),
    [("gzip", 31, b""), ("gzip", 31, packed(TEXT, 31)), ("deflate", 15, b""), ("deflate", -15, b"")],
)
def test_what_ends_early(encoding: str, window: int, before: bytes) -> None:
    with pytest.raises(CorruptError):
        decode_body(before + packed(bytes(range(200)), window)[:-3], encoding, 1000)


@pytest.mark.parametrize(
    "data", [TEXT, packed(b"A" * 1001, 31), packed(b"A" * 600, 31) * 2, packed(b"A" * 50_000_000, 31)]
)
def test_the_limit_holds_before_and_after(data: bytes) -> None:
    assert len(decode_body(packed(b"A" * 1000, 31), "gzip", 1000)) == 1000
    with pytest.raises(TooLargeError):
        decode_body(data, "gzip", min(len(TEXT) - 1, 1000) if data == TEXT else 1000)


def test_many_members_take_time_in_proportion() -> None:
    began = time.process_time()
    assert decode_body(packed(b"", 31) * 100_000, "gzip", 1000) == b""
    assert time.process_time() - began < 10


NOW = datetime(2024, 3, 5, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("tag", ['"abc"', 'W/"a-b:c"', '""', "unquoted-5f3", '"abc-gzip"'])
def test_entity_tags(tag: str) -> None:
    assert entity_tag(tag) == tag


@pytest.mark.parametrize("tag", ["", '"a\r\nX: y"', '"a b"', '"é"', '"a"b"', '"' + "x" * 300 + '"', "a\tb"])
def test_what_is_no_entity_tag(tag: str) -> None:
    assert entity_tag(tag) == ""


def test_dates() -> None:
    date = "Tue, 05 Mar 2024 12:00:00 GMT"
    assert http_date(date) == date
    assert [http_date(text) for text in ("", "x\r\nY: z", "5 三月 2024 12:00")] == ["", "", ""]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"120", 120),
        (b"0", 0),
        (b"99999999", MAX_RETRY_AFTER),
        (b"Tue, 05 Mar 2024 12:00:30 GMT", 30),
        (b"Tue, 05 Mar 2024 11:00:00 GMT", 0),
        (b"Tue, 05 Mar 2124 11:00:00 GMT", MAX_RETRY_AFTER),
        (b"", None),
        (b"soon", None),
        (b"-5", None),
        (b"1e9", None),
        (b"Tue, 99 Mar 2024 12:00:30 GMT", None),
        (b"Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        (b"Mon, 01 Jan 2024 00:00:00 +99999999999999999999", None),
        (b"Mon, 01 Jan " + b"9" * 5000 + b" 00:00:00 GMT", None),
        (b"Sat, 01 Jan 0001 00:00:00 +2300", 0),
        (b"Fri, 31 Dec 9999 23:59:59 -2300", MAX_RETRY_AFTER),
    ],
)
def test_retry_after(value: bytes, seconds: int | None) -> None:
    assert retry_after([(b"Retry-After", value)], NOW) == seconds


def test_header() -> None:
    headers = [(b"ETag", b' "a" '), (b"etag", b'"b"'), (b"Content-Encoding", b"gzip"), (b"content-encoding", b"br")]
    assert header(headers, b"etag") == b'"a"'
    assert header(headers, b"content-encoding") == b"gzip, br"
    assert header(headers, b"location") == b""
