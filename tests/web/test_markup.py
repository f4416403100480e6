"""Tags found in bytes without a tree; charset declarations and labels as browsers read them."""

from __future__ import annotations

import codecs
import time

import pytest
from webencodings.labels import LABELS

from rag.web.markup import codec_of, find_declaration, tags


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
