"""Files that cannot be read, each with the code of its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openpyxl
import pytest

from rag.errors import IngestError
from rag.reading.documents import read_document
from rag.web.media import CSV, DOCX, EML, EPUB, IPYNB, MSG, ODS, ODT, PICTURE, PPTX, VTT, XLS, XLSX
from tests.support import office
from tests.support.hostile import HOSTILE, word

BROKEN = b"PK\x03\x04 not a package"
ENCRYPTION = {"META-INF/encryption.xml": "<enc:CipherReference xmlns:enc='e' URI='OEBPS/a.xhtml'/>"}


def book(*rows: list[Any]) -> bytes:
    return office.xlsx(rows)


def laughing() -> bytes:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    row = '<row r="1"><c r="A1" t="inlineStr"><is><t>&l9;</t></is></c></row>'
    sheet = (
        f'<!DOCTYPE d [<!ENTITY l0 "ha">{entities}]><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/'
        f'2006/main"><sheetData>{row}</sheetData></worksheet>'
    )
    return office.with_part(book(["x"]), "xl/worksheets/sheet1.xml", sheet.encode())


@pytest.mark.parametrize(
    ("kind", "body", "code"),
    [
        (DOCX, BROKEN, "docx_broken"),
        (DOCX, word(b"<w:document"), "docx_broken"),
        (DOCX, office.docx("<w:p/>"), "document_no_text"),
        (DOCX, HOSTILE["docx: a billion laughs"](1.0)[1], "docx_broken"),
        (DOCX, HOSTILE["docx: an entity from outside"](1.0)[1], "document_no_text"),
        (DOCX, HOSTILE["docx: 1 GB of spaces"](0.05)[1], "office_too_large"),
        (PPTX, BROKEN, "office_broken"),
        (PPTX, office.zipped({"ppt/presentation.xml": "<a"}), "office_broken"),
        (PPTX, office.zipped({"ppt/presentation.xml": " " * 41_000_000}), "office_too_large"),
        (PPTX, office.docx(""), "office_broken"),
        (XLSX, BROKEN, "office_broken"),
        (XLSX, office.saved(openpyxl.Workbook()), "document_no_text"),
        (XLSX, laughing, "office_broken"),
        (XLSX, book([f"column {n}" for n in range(600)]), "table_too_wide"),
        (XLSX, lambda: office.with_part(book(["x"]), "xl/styles.xml", b" " * 151_000_000), "office_too_large"),
        (XLSX, lambda: book(*(["x" * 30_000] for _ in range(170))), "document_too_long"),
        (ODT, BROKEN, "office_broken"),
        (ODT, office.zipped({"content.xml": "<a"}), "office_broken"),
        (ODT, office.odt("<text:p/>"), "document_no_text"),
        (ODT, office.odt("", **{"META-INF/manifest.xml": "<m:encryption-data/>"}), "office_locked"),
        (ODT, office.odt("<text:p>x</text:p>" + "<text:section>" * 500 + "</text:section>" * 500), "office_broken"),
        (ODT, office.odt("<text:p>" + " " * 41_000_000 + "</text:p>"), "office_too_large"),
        (EPUB, BROKEN, "office_broken"),
        (EPUB, office.zipped({"META-INF/container.xml": "<container/>"}, "application/epub+zip"), "office_broken"),
        (EPUB, office.epub({"a.xhtml": "<html><body><img/></body></html>"}), "document_no_text"),
        (EPUB, office.epub({"a.xhtml": "<p>x</p>" + " " * 41_000_000}), "office_too_large"),
        (EPUB, office.epub({"a.xhtml": "\x01\x02"}, **ENCRYPTION), "office_locked"),
        (IPYNB, b"", "office_broken"),
        (IPYNB, b"[]", "office_broken"),
        (IPYNB, b'{"cells": [1]}', "office_broken"),
        (IPYNB, b'{"cells": []}', "document_no_text"),
        (VTT, b"", "document_no_text"),
        (VTT, b"WEBVTT\n\n", "document_no_text"),
        (VTT, b"WEBVTT\n\n00:01.000 --> 00:02.000\n<i></i>\n", "document_no_text"),
        (XLS, b"\xd0\xcf\x11\xe0" + bytes(600), "office_broken"),
        (ODS, b"PK\x03\x04", "office_broken"),
        (MSG, b"", "office_broken"),
        (EML, b"", "document_no_text"),
        (EML, b"\n\n", "document_no_text"),
        (EML, b"Content-Type: multipart/mixed; boundary=x\n\n--x\n\n--x--", "document_no_text"),
        (CSV, b"", "document_no_text"),
        (CSV, b",,,\n,,", "document_no_text"),
        (CSV, b"a" + b",b" * 600, "table_too_wide"),
        (CSV, b'a,b\n"' + b"never ends\n" * 30_000, "table_broken"),
        (PICTURE, b"\x89PNG", "picture_unread"),  # without text recognition
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_read(kind: str, body: bytes | Callable[[], bytes], code: str) -> None:
    with pytest.raises(IngestError) as raised:
        read_document(body if isinstance(body, bytes) else body(), kind, None, "x")
    assert raised.value.code == code
