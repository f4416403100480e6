"""Word documents: headings, lists, tables and properties, without what a reader does not see."""

from __future__ import annotations

from datetime import datetime
from io import BytesIO

import docx
import pytest
from docx.document import Document
from docx.oxml import parse_xml

from rag.errors import IngestError
from rag.reading.documents.docx import read_docx
from tests.support.hostile import HOSTILE, word

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def saved(document: Document) -> bytes:
    stream = BytesIO()
    document.save(stream)
    return stream.getvalue()


def text_of(document: Document) -> str:
    return read_docx(saved(document), "x.docx").text


def test_headings_paragraphs_and_lists() -> None:
    document = docx.Document()
    document.add_heading("The handbook", 0)
    document.add_heading("Leave", 1)
    document.add_paragraph("Twenty days a year.")
    document.add_paragraph("in spring", style="List Bullet")
    document.add_paragraph("in autumn", style="List Bullet")
    document.add_heading("How to ask", 2)
    document.add_paragraph("write", style="List Number")
    document.add_paragraph("wait", style="List Number")
    assert text_of(document) == (
        "# The handbook\n\n## Leave\n\nTwenty days a year.\n\n- in spring\n- in autumn\n\n"
        "### How to ask\n\n1. write\n1. wait"
    )


def test_tables_with_merged_cells() -> None:
    document = docx.Document()
    table = document.add_table(3, 3)
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = f"{row}{column}"
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(1, 2).merge(table.cell(2, 2)).text = "tall | one"
    assert text_of(document) == (
        "| wide |  | 02 |\n| --- | --- | --- |\n| 10 | 11 | tall \\| one |\n| 20 | 21 | tall \\| one |"
    )


def test_what_a_reader_does_not_see_goes_and_what_was_inserted_stays() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Seen")
    paragraph.add_run(" hidden").font.hidden = True
    for change, text in (("del", "deleted"), ("ins", "inserted")):
        run = "delText" if change == "del" else "t"
        paragraph._p.append(
            parse_xml(
                f'<w:{change} xmlns:w="{W}"><w:r><w:{run} xml:space="preserve"> {text}</w:{run}></w:r></w:{change}>'
            )
        )
    body = document.element.body
    body.insert(
        0,
        parse_xml(
            f'<w:sdt xmlns:w="{W}"><w:sdtContent><w:p><w:r><w:t>Control</w:t></w:r></w:p></w:sdtContent></w:sdt>'
        ),
    )
    assert text_of(document) == "Control\n\nSeen inserted"


def test_properties() -> None:
    document = docx.Document()
    document.add_paragraph("Twenty days a year.")
    about = document.core_properties
    about.title, about.author = "Leave", "Anna Berg"
    about.created, about.modified = datetime(2024, 3, 5), datetime(2024, 4, 1)
    found = read_docx(saved(document), "leave.docx")
    assert (found.title, found.author, found.published, found.modified) == (
        "Leave",
        "Anna Berg",
        "2024-03-05",
        "2024-04-01",
    )
    about.title, about.author = "Document1", "python-docx"
    found = read_docx(saved(document), "https://example.com/leave.docx")
    assert "leave" in found.title and found.author == ""


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"PK\x03\x04 not a package", "docx_broken"),
        (word(b"<w:document"), "docx_broken"),
        (saved(docx.Document()), "document_no_text"),
        (HOSTILE["docx: a billion laughs"](1.0)[1], "docx_broken"),
        (HOSTILE["docx: an entity from outside"](1.0)[1], "document_no_text"),
        (HOSTILE["docx: 1 GB of spaces"](0.05)[1], "docx_too_large"),
    ],
)
def test_what_cannot_be_read(body: bytes, code: str) -> None:
    with pytest.raises(IngestError) as raised:
        read_docx(body, "x.docx")
    assert raised.value.code == code
