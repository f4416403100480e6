"""What kind of document a body is, by its declared type, its bytes and its name."""

from __future__ import annotations

import pytest

from rag.errors import FetchError
from rag.ingest.media import CSV, DOCX, GZIP, PDF, TSV, XML, byte_limit, check_declared, media_type
from tests.support.hostile import packed, word

MEGABYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("body", "essence", "name", "kind"),
    [
        (b"%PDF-1.7", "application/pdf", "x", PDF),
        (b"%PDF-1.7", "text/html", "https://example.com/x", PDF),
        (b"\xef\xbb\xbf\n%PDF-1.7", "application/octet-stream", "x", PDF),
        (word(b"<w/>"), DOCX, "x", DOCX),
        (word(b"<w/>"), "", "a.docx", DOCX),
        (b"a,b", "text/csv", "x", CSV),
        (b"a,b", "text/plain", "https://example.com/a.csv?raw=1", CSV),
        (b"a\tb", "", "a.tsv", TSV),
        (b"<?xml version='1.0'?><!-- c --><rss version='2.0'>", "", "x", XML),
        (b"<?xml version='1.0'?><urlset>", "text/xml", "x", XML),
        (b"<?xml version='1.0'?><!DOCTYPE html><html>", "application/xml", "x", "text/html"),
        (b"\x1f\x8brest", "application/gzip", "x", GZIP),
        (b"\x1f\x8brest", "", "https://example.com/sitemap.xml.gz", GZIP),
        (b"<p>words", "application/octet-stream", "x", "text/html"),
    ],
)
def test_kinds(body: bytes, essence: str, name: str, kind: str) -> None:
    assert media_type(body, essence, name) == kind


@pytest.mark.parametrize(
    ("body", "essence", "cause"),
    [
        (packed({"a.txt": b"x"}), "", "binary"),
        (b"\x1f\x8brest", "text/html", "binary"),
        (b"\xd0\xcf\x11\xe0rest", "application/octet-stream", "old_office"),
        (b"<html>an error page</html>", "application/pdf", "not_as_declared"),
        (b"\x89PNG", "application/octet-stream", "binary"),
    ],
)
def test_refusals(body: bytes, essence: str, cause: str) -> None:
    with pytest.raises(FetchError) as raised:
        media_type(body, essence, "https://example.com/x")
    assert raised.value.notice.params["cause"] == cause


def test_limits() -> None:
    assert byte_limit("text/html") == byte_limit("application/xhtml+xml") == 2 * MEGABYTE
    assert byte_limit("") == byte_limit("text/plain") == byte_limit("application/xml") == 5 * MEGABYTE
    assert byte_limit(PDF) == byte_limit(DOCX) == byte_limit("application/octet-stream") == 25 * MEGABYTE


def test_types_that_are_not_on_the_list() -> None:
    check_declared("application/rss+xml", "x")
    with pytest.raises(FetchError, match="video/mp4"):
        check_declared("video/mp4", "x")
