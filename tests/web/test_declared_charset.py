"""Declarations of a charset, and labels, as browsers read them."""

from __future__ import annotations

import codecs

import pytest
from webencodings.labels import LABELS

from rag.web.declared_charset import codec_of, find_declaration


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
