"""Packages of office files: limits, dialects, missing parts, and number formats of Word."""

from __future__ import annotations

from datetime import date
from io import BytesIO
from zipfile import ZipFile

import docx
import pytest

from rag.errors import IngestError
from rag.reading.documents import read_document
from rag.reading.documents.docx import format_number
from rag.reading.documents.office import normalize_package, open_package
from rag.web.media import DOCX, PPTX, XLSX
from tests.support import office


def test_a_package_is_bounded_by_what_it_says_that_it_unpacks_to() -> None:
    body = office.zipped({"a.xml": b" " * 2_000, "picture.png": b" " * 5_000})
    assert open_package(body, "x", limit=2_000).namelist() == ["a.xml", "picture.png"]
    with pytest.raises(IngestError, match="more than 0 MB"):
        open_package(body, "x", limit=1_999)
    with pytest.raises(IngestError):
        open_package(office.zipped({f"{n}.png": b"" for n in range(20_001)}), "x")


def test_what_is_right_stays_as_it_is() -> None:
    body = office.docx("<w:p/>")
    assert normalize_package(body, "x").getvalue() == body


@pytest.mark.parametrize(
    ("kind", "package"),
    [
        (DOCX, office.docx("<w:p><w:r><w:rPr><w:strike/></w:rPr><w:t>Lit.</w:t></w:r></w:p>")),
        (PPTX, office.pptx(office.shape("<a:p><a:r><a:t>Lit.</a:t></a:r></a:p>"))),
        (XLSX, office.xlsx([["Pier", "Since"], ["North", date(1931, 3, 5)]])),
    ],
    ids=["docx", "pptx", "xlsx"],
)
def test_the_strict_dialect_reads_the_same(kind: str, package: bytes) -> None:
    assert read_document(office.strict(package), kind, None, "x") == read_document(package, kind, None, "x")


def test_a_relation_to_nowhere_is_left_out() -> None:
    relation = (
        '<Relationship Id="r9" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/image" '
        'Target="../NULL"/></Relationships>'
    )
    body = office.docx("<w:p><w:r><w:t>Lit.</w:t></w:r></w:p>")
    name = "word/_rels/document.xml.rels"
    torn = office.with_part(body, name, office.part(body, name).replace(b"</Relationships>", relation.encode()))
    with pytest.raises(KeyError):
        docx.Document(BytesIO(torn))
    assert docx.Document(normalize_package(torn, "x")).paragraphs[0].text == "Lit."
    assert ZipFile(normalize_package(torn, "x")).testzip() is None


@pytest.mark.parametrize(
    ("form", "counts"),
    [
        ("decimal", "1 2 28"),
        ("decimalZero", "01 02 28"),
        ("upperLetter", "A B BB"),
        ("lowerRoman", "i ii xxviii"),
        ("chineseCountingThousand", "一 二 二十八"),
        ("ideographTraditional", "甲 乙 28"),
        ("decimalEnclosedCircle", "① ② 28"),
    ],
)
def test_number_formats(form: str, counts: str) -> None:
    assert " ".join(format_number(count, form) for count in (1, 2, 28)) == counts
