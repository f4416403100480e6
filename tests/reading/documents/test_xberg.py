"""Formats that an optional package reads: what comes of them, and what is said without it."""

from __future__ import annotations

import sys

import pytest

from rag.errors import IngestError
from rag.reading.documents.small_formats import read_office
from rag.web.media import MSG, ODP, ODS, RTF, XLS
from tests.support import office

_ODF = 'xmlns:{0}="urn:oasis:names:tc:opendocument:xmlns:{0}:1.0"'
_NAMES = " ".join(
    [*map(_ODF.format, ("office", "text", "table")), 'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"']
)


def opendocument(kind: str, inside: str) -> bytes:
    content = f"<office:document-content {_NAMES}><office:body>{inside}</office:body></office:document-content>"
    return office.zipped({"content.xml": content, "META-INF/manifest.xml": "<manifest/>"}, kind)


def text_of(body: bytes, kind: str) -> str:
    return read_office(body, "x", kind).text


def test_sheets() -> None:
    assert text_of(office.xls(["Pier", "2022", "2023"], ["North", "", 3.5]), XLS) == (
        "## Fees\n\n| Pier | 2022 | 2023 |\n|---|---|---|\n| North |  | 3.5 |"
    )
    said = "office:value-type='string'"
    cell, row = (
        f"<table:table-cell {said}><text:p>{{}}</text:p></table:table-cell>",
        "<table:table-row>{}{}</table:table-row>",
    )
    texts = (("Pier", "2022"), ("North", "7"))
    rows = "".join(row.format(*map(cell.format, two)) for two in texts)
    table = f"<office:spreadsheet><table:table table:name='Fees'>{rows}</table:table></office:spreadsheet>"
    assert text_of(opendocument(ODS, table), ODS) == "## Fees\n\n| Pier | 2022 |\n|---|---|\n| North | 7 |"


def test_slides() -> None:
    box = "<draw:frame><draw:text-box><text:p>The tower opens at six.</text:p></draw:text-box></draw:frame>"
    page = f"<office:presentation><draw:page draw:name='Hours'>{box}</draw:page></office:presentation>"
    assert text_of(opendocument(ODP, page), ODP) == "## Hours\n\nThe tower opens at six."


def test_rich_text() -> None:
    rtf = rb"{\rtf1\ansi {\b The lamp} gives 4.1\'d710{\super 5} candelas, the 3{\super rd}; {\strike nine} ten."
    assert text_of(rtf + rb"\par Caf\'e9.}", RTF) == "The lamp gives 4.1×10^5 candelas, the 3rd; ~~nine~~ ten.\n\nCafé."


def test_a_mail_has_its_subject_as_heading() -> None:
    found = read_office(office.msg("Berth fees", "Anna Berg", "The ferry leaves at seven."), "x.msg", MSG)
    assert (found.title, found.author) == ("Berth fees", "Anna Berg")
    assert found.text == "# Berth fees\n\nFrom: Anna Berg\n\nThe ferry leaves at seven."


@pytest.mark.parametrize(("body", "kind"), [(b"\xd0\xcf\x11\xe0" + bytes(600), XLS), (b"PK\x03\x04", ODS), (b"", MSG)])
def test_what_is_broken(body: bytes, kind: str) -> None:
    with pytest.raises(IngestError) as raised:
        read_office(body, "x", kind)
    assert raised.value.code == "office_broken"


def test_without_the_package_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xberg", None)
    with pytest.raises(IngestError, match="make install-office"):
        read_office(b"{\\rtf1 text}", "notes.rtf", RTF)
