"""Headers of strangers: what may be sent back, and when to ask again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rag.web.http_headers import MAX_RETRY_AFTER, conditions, entity_tag, header, http_date, retry_after

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


def test_conditions() -> None:
    date = "Tue, 05 Mar 2024 12:00:00 GMT"
    assert conditions('"a"', date) == [(b"If-None-Match", b'"a"'), (b"If-Modified-Since", date.encode())]
    assert conditions("", "") == []
    assert conditions('"a"\r\nCookie: 1', "x\ny") == []


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
