"""The kind of a document, by its declared type, its bytes and its name."""

from __future__ import annotations

import pytest

from rag.errors import FetchError
from rag.reading.charset import decode
from rag.web.fetch import Fetcher
from rag.web.media import (
    CSV,
    DOCX,
    EML,
    EPUB,
    GZIP,
    IPYNB,
    MSG,
    ODP,
    ODS,
    ODT,
    PDF,
    PICTURE,
    PPTX,
    RTF,
    SRT,
    TSV,
    VTT,
    XLS,
    XLSX,
    XML,
    byte_limit,
    check_declared,
    media_type,
    parse_content_type,
)
from tests.support import office
from tests.support.hostile import make_zip, word
from tests.support.page_server import PageServer

MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    ("body", "essence", "name", "kind"),
    [
        (b"%PDF-1.7", "application/pdf", "x", PDF),
        (b"\x89PNG\r\n", "", "scan.png", PICTURE),
        (b"\xff\xd8\xff\xe0", "", "x", PICTURE),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "", "x", PICTURE),
        (b"II*\x00\x08", "", "x", PICTURE),
        (b"%PDF-1.7", "text/html", "https://example.com/x", PDF),
        (b"\xef\xbb\xbf\n%PDF-1.7", "application/octet-stream", "x", PDF),
        (word(b"<w/>"), DOCX, "x", DOCX),
        (word(b"<w/>"), "", "a.docx", DOCX),
        (word(b"<w/>"), "application/zip", "x", DOCX),
        (
            make_zip({"word/document.xml": b"", "word/embeddings/1.xlsx": make_zip({"xl/workbook.xml": b""})}),
            "",
            "x",
            DOCX,
        ),
        (make_zip({"ppt/presentation.xml": b"", "xl/media": b""}), PPTX, "x", PPTX),
        (make_zip({"xl/workbook.xml": b""}), "application/octet-stream", "x", XLSX),
        (office.odt(""), "", "x", ODT),
        (office.zipped({}, ODS), "", "x", ODS),
        (office.zipped({}, ODP), "", "x", ODP),
        (office.epub({}), "", "x", EPUB),
        (make_zip({"META-INF/container.xml": b""}), "", "x", EPUB),
        (b"PK\x03\x04 cut off", "", "a.xlsx", XLSX),
        (office.xls(["a"]), "application/vnd.ms-excel", "x", XLS),
        (b"a,b", "application/vnd.ms-excel", "https://example.com/a.csv", CSV),
        (office.msg("a", "b", "c"), "", "x", MSG),
        (b"{\\rtf1 a}", "text/rtf", "x", RTF),
        (b"Subject: a\n\nb", "message/rfc822", "x", EML),
        (b"Subject: a\n\nb", "", "a.EML", EML),
        (b"{}", "text/plain", "https://example.com/a.ipynb", IPYNB),
        (b"WEBVTT\n", "text/vtt", "x", VTT),
        (b"1\n00:00:01,000 --> 00:00:02,000\na", "", "a.srt", SRT),
        (b"a,b", "text/csv", "x", CSV),
        (b"a,b", "text/plain", "https://example.com/a.csv?raw=1", CSV),
        (b"a\tb", "", "a.tsv", TSV),
        (b"<?xml version='1.0'?><!-- c --><rss version='2.0'>", "", "x", XML),
        (b"<?xml version='1.0'?><urlset>", "text/xml", "x", XML),
        (b"<?xml version='1.0'?><!DOCTYPE html><html>", "application/xml", "x", "text/html"),
        (b"\x1f\x8brest", "application/gzip", "x", GZIP),
        (b"\x1f\x8brest", "", "https://example.com/sitemap.xml.gz", GZIP),
        (b"<p>words", "application/octet-stream", "x", "text/html"),
        (b"# Title", "", "notes.md", "text/markdown"),
        (b"# Title", "text/plain", "https://example.com/readme.md?raw=1", "text/markdown"),
        (b"\xef\xbb\xbf <!-- x -->\n<!DOCTYPE html>", "", "x", "text/html"),
        ("\ufeff<html>".encode("utf-16-le"), "", "x", "text/html"),
        (b"5 < 6 and 7 > 3", "", "x", "text/plain"),
        (b"words", "", "page.html", "text/html"),
        (b"<p>source", "text/plain", "x", "text/plain"),
        # before the first element
        (b"<!-- a --><!-- b -->\n<p>words", "", "x", "text/html"),
        (b"<?xml version='1.0'?>\n<!-- > -->\n<!DOCTYPE html>", "", "x", "text/html"),
        (b"<!-- a --><?xml-stylesheet href='a'?><feed>", "", "x", XML),
        (b"<!-- <html> --> words", "", "x", "text/plain"),
        (b"<!-- never closed <p>words", "", "x", "text/plain"),
        (b"<?php echo 1 ?><p>words", "", "x", "text/plain"),
        (b"<!---->" * 500 + b"<p>words", "", "x", "text/html"),
        (b"<!---->" * 500 + b"words", "", "x", "text/plain"),
    ],
)
def test_kinds(body: bytes, essence: str, name: str, kind: str) -> None:
    assert media_type(body, essence, name) == kind


@pytest.mark.parametrize(
    ("body", "essence", "cause"),
    [
        (make_zip({"a.txt": b"x"}), "", "binary"),
        (b"\x1f\x8brest", "text/html", "binary"),
        (b"\xd0\xcf\x11\xe0rest", "application/octet-stream", "old_office"),
        (office.compound({"WordDocument": b"", "Workbook": b""}), "", "old_office"),
        (office.compound({"PowerPoint Document": b""}), "", "old_office"),
        (office.compound({"EncryptedPackage": b""}), XLSX, "locked"),
        (b"<html>an error page</html>", "application/pdf", "not_as_declared"),
        (b"<html>an error page</html>", PPTX, "not_as_declared"),
        (b"\x89PNG", "application/octet-stream", "binary"),
        (b"a\x00b", "text/html", "binary"),
        (b"PK\x03\x04rest", "text/html", "binary"),
    ],
)
def test_refusals(body: bytes, essence: str, cause: str) -> None:
    with pytest.raises(FetchError) as raised:
        media_type(body, essence, "https://example.com/x")
    assert raised.value.notice.cause == cause


@pytest.mark.parametrize(
    ("header", "parsed"),
    [
        ("text/html", ("text/html", None)),
        ('Text/HTML; Charset="GBK"', ("text/html", "GBK")),
        ("text/html;charset=utf-8;x=y", ("text/html", "utf-8")),
        ("", ("", None)),
        ("rubbish", ("", None)),
        ("unknown/unknown", ("", None)),
    ],
)
def test_the_header(header: str, parsed: tuple[str, str | None]) -> None:
    assert parse_content_type(header) == parsed


def test_limits() -> None:
    assert byte_limit("text/html") == byte_limit("application/xhtml+xml") == 2 * MEGABYTE
    assert byte_limit("") == byte_limit("text/plain") == byte_limit("application/xml") == 5 * MEGABYTE
    assert byte_limit(XLSX) == byte_limit("message/rfc822") == byte_limit("application/vnd.ms-excel") == 25 * MEGABYTE
    assert byte_limit(PDF) == byte_limit(DOCX) == byte_limit("application/octet-stream") == 25 * MEGABYTE


def test_types_that_are_not_on_the_list() -> None:
    check_declared("application/rss+xml", "x")
    with pytest.raises(FetchError, match="video/mp4"):
        check_declared("video/mp4", "x")


PAGE = "<html><head><title>桥</title></head><body><p>A bridge of 1957.</p></body></html>"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("declared", ["utf-16", "UTF-16", ""])
@pytest.mark.parametrize("essence", ["text/html", ""])
def test_utf16_without_a_byte_order_mark(codec: str, declared: str, essence: str) -> None:
    charset = declared or codec.replace("-le", "LE").replace("-be", "BE")
    assert media_type(PAGE.encode(codec), essence, "x", charset) == "text/html"
    assert decode(PAGE.encode(codec), charset) == PAGE


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        (PAGE.encode("utf-16-le"), None),
        (PAGE.encode("utf-16-le"), "utf-8"),
        (bytes(range(256)) * 40, "utf-16"),
        (b"a\x00\x00\x00" * 50, "utf-16"),
        (b"\x89PNG\r\n\x00\x00", "utf-16"),
    ],
)
def test_nul_bytes_that_are_no_utf16(body: bytes, charset: str | None) -> None:
    with pytest.raises(FetchError):
        media_type(body, "text/html", "x", charset)


def test_the_header_of_a_page_tells_that_it_is_utf16(page_server: PageServer) -> None:
    declared = "text/html; charset=utf-16le"
    url = page_server.add("/wide", PAGE.encode("utf-16-le"), content_type=declared)
    with Fetcher([page_server.pair]) as fetcher:
        fetched = fetcher.fetch(url)
    assert (fetched.content_type, decode(fetched.body, fetched.charset)) == ("text/html", PAGE)
