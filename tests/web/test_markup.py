"""Tags found in bytes without a tree; charsets and refreshes as browsers read them."""

from __future__ import annotations

import codecs
import time

import pytest
from webencodings.labels import LABELS

from rag.web.markup import Refresh, codec_of, find_declaration, meta_target, parse_refresh, tags, target_of


def names(markup: bytes, *, opaque: bool = False) -> list[bytes]:
    return [tag.name for tag in tags(markup, opaque=opaque)]


def test_names_attributes_and_places() -> None:
    markup = b"a<META Http-Equiv=Refresh content='0; URL=/Ok'/>b</P>"
    meta, paragraph = tags(markup)
    assert (meta.name, meta.attributes) == (b"meta", {b"http-equiv": b"Refresh", b"content": b"0; URL=/Ok"})
    assert (markup[: meta.start], markup[meta.end : paragraph.start]) == (b"a", b"b")
    assert (paragraph.name, paragraph.end) == (b"/p", len(markup))


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        (b"<!-- <meta> --><br/>", [b"!", b"br"]),
        (b"<!--><br><!-- <p>", [b"!", b"br"]),
        (b"<!doctype html><?xml ?><html", [b"!", b"!"]),
        (b"<p title='<br>'>5 < 6<b", [b"p"]),
    ],
)
def test_comments_declarations_and_what_is_cut_off(markup: bytes, found: list[bytes]) -> None:
    assert names(markup) == found


def test_opaque_elements() -> None:
    markup = b"<script>if (a<b && \"c>d\") '<meta>'</SCRIPT ><title><b></title><p><style><br>"
    assert names(markup, opaque=True) == [b"script", b"/script", b"title", b"/title", b"p", b"style"]
    assert b"meta" in names(b"<script><meta></script>")


@pytest.mark.parametrize("piece", [b"<script>", b"<!--", b"<a ", b"<a b='", b"</script", b"<script></script>"])
def test_time_in_proportion_to_the_length(piece: bytes) -> None:
    began = time.process_time()
    names(piece * (1_000_000 // len(piece)), opaque=True)
    assert time.process_time() - began < 10


def test_all_labels_of_the_web_are_known() -> None:
    found = {label: codec_of(label) for label in LABELS}
    unread = {label for label, codec in found.items() if codec is None}
    assert unread == {label for label, name in LABELS.items() if name == "replacement"}
    assert all(codecs.lookup(codec) for codec in found.values() if codec)


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("GB2312", "gb18030"),
        (" latin1 ", "cp1252"),
        ("l2", "iso-8859-2"),
        ("sun_eu_greek", "iso-8859-7"),
        ("utf-16", "utf-16"),
        ("utf-16le", "utf-16le"),
        ("utf-7", None),
        ("iso-8859-12", None),
        ("unicode_escape", None),
        ("\u212aoi8-r", None),
    ],
)
def test_labels(label: str, codec: str | None) -> None:
    assert codec_of(label) == codec


@pytest.mark.parametrize(
    ("head", "label"),
    [
        (b'<meta charset="iso-8859-2">', "iso-8859-2"),
        (b"<META test='>' CHARSET = latin2 >", "latin2"),
        (b'<!-- <meta charset="utf-8"> --><meta charset="l2">', "l2"),
        (b'<!--><meta charset="l2">', "l2"),
        (b'<p title="<meta charset=utf-8>"><meta charset="l2">', "l2"),
        (b'<meta charset="nonsense"><meta charset="l2">', "l2"),
        (b'<meta charset="l2"><meta charset="utf-8">', "l2"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=l2">', "l2"),
        (b"<meta content=\"text/html; charset='l2'\" http-equiv=content-type>", "l2"),
        (b'<meta content="text/html; charset=l2">', None),
        (b'<meta name="x" content="text/html; charset=l2">', None),
        (b'<meta charset="utf-16">', "utf-8"),
        (b"<metacharset=l2>", None),
        (b'<meta charset="l2"', None),
        (b'<meta charset="l2', None),
        (b'<!-- <meta charset="l2">', None),
        (b'<?xml version="1.0" encoding="l2"?><html>', "l2"),
        (b'<?xml encoding="l2"?><meta charset="utf-8">', "utf-8"),
        (b'\xef\xbb\xbf<meta charset="l2">', "utf-8"),
        (b"", None),
    ],
)
def test_declarations(head: bytes, label: str | None) -> None:
    assert find_declaration(head) == label


URL = "https://example.com/a/b"
ARTICLE = "<p>" + "The ferry leaves the north quay at seven. " * 20 + "</p>"


@pytest.mark.parametrize(
    ("value", "refresh"),
    [
        ("0; url=/ok", Refresh(0, "/ok")),
        (" 0 ;\n URL = '/ok' ", Refresh(0, "/ok")),
        ('5,url="/a;b\'c"; x', Refresh(5, "/a;b'c")),
        ("1.9;/ok", Refresh(1, "/ok")),
        (".5 /ok ", Refresh(0, "/ok")),
        ("0;'/ok", Refresh(0, "/ok")),
        ("0; urls/ok", Refresh(0, "urls/ok")),
        ("0; url/ok", Refresh(0, "url/ok")),
        ("300", Refresh(300, "")),
        ("300;", Refresh(300, "")),
        ("9" * 5000 + "; url=/ok", Refresh(float("inf"), "/ok")),
        ("", None),
        ("; url=/ok", None),
        ("url=/ok", None),
        ("-1; url=/ok", None),
        ("5x; url=/ok", None),
        ("٣; url=/ok", None),
    ],
)
def test_values(value: str, refresh: Refresh | None) -> None:
    assert parse_refresh(value) == refresh


@pytest.mark.parametrize(
    ("refresh", "target"),
    [
        (Refresh(0, "c d"), "https://example.com/a/c%20d"),
        (Refresh(10, "//other.example/"), "https://other.example/"),
        (Refresh(60, "/slow"), ""),
        (Refresh(0, "javascript:alert(1)"), ""),
        (Refresh(0, "mailto:a@b.example"), ""),
        (Refresh(0, "file:///etc/passwd"), ""),
        (Refresh(0, ""), URL),
        (None, ""),
    ],
)
def test_targets(refresh: Refresh | None, target: str) -> None:
    assert target_of(refresh, URL) == target


@pytest.mark.parametrize(
    ("page", "target"),
    [
        ("<meta http-equiv=refresh content='0; url=/ok'>", "/ok"),
        ("<body><p>Moved</p><META CONTENT='3;URL=ok' HTTP-EQUIV = \"Refresh\" />", "/a/ok"),
        ("<base href=/x/><base href=/y/><meta http-equiv=refresh content='0; url=ok'>", "/x/ok"),
        ("<meta http-equiv=refresh content='0; url=/ok?a=1&amp;b=2&copy=3&#x2f;'>", "/ok?a=1&b=2&copy=3/"),
        ("<meta http-equiv=refresh content='0; url=/fähre'>", "/fähre"),
        ("<meta http-equiv=refresh content=''><meta http-equiv=refresh content='0; url=/ok'>", "/ok"),
        ("<meta http-equiv=refresh content='600; url=/a'><meta http-equiv=refresh content='0; url=/b'>", ""),
        ("<meta http-equiv=refresh content='900; url=/logout'>" + ARTICLE, ""),
        ("<!-- <meta http-equiv=refresh content='0; url=/ok'> -->", ""),
        ("<script>'<meta http-equiv=refresh content=\"0; url=/ok\">'</script>", ""),
        ("<template><meta http-equiv=refresh content='0; url=/ok'></template>", ""),
        ("<textarea><meta http-equiv=refresh content='0; url=/ok'></textarea>", ""),
        ("<pre>&lt;meta http-equiv=refresh content='0; url=/ok'&gt;</pre>", ""),
        ("<meta name=refresh content='0; url=/ok'>", ""),
        (
            "<noscript><meta http-equiv=refresh content='0; url=/ok'></noscript><script>" + "x" * 900 + "</script>",
            "/ok",
        ),
        (ARTICLE + "<noscript><meta http-equiv=refresh content='0; url=/no-script'></noscript>", ""),
        (ARTICLE, ""),
    ],
)
def test_pages(page: str, target: str) -> None:
    assert meta_target(page.encode(), None, URL) == (f"https://example.com{target}" if target else "")


def test_the_charset_of_a_target() -> None:
    page = "<meta charset=gbk><meta http-equiv=refresh content='0; url=/渡轮'>"
    assert meta_target(page.encode("gbk"), None, URL) == "https://example.com/渡轮"
    assert meta_target(page.encode(), "utf-8", URL) == "https://example.com/渡轮"
    assert meta_target(page.encode("utf-16"), None, URL) == "https://example.com/渡轮"
    assert (
        meta_target(b"<meta http-equiv=refresh content='0; url=/f\xe4hre'>", None, URL) == "https://example.com/fähre"
    )
