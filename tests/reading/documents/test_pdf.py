"""PDF files: pages under their numbers, paragraphs whole again, running heads gone, what cannot be read said why."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import pytest

from rag.errors import IngestError
from rag.ingest.chunking import get_chunker
from rag.reading.documents.pdf import read_pdf
from rag.reading.documents.pdf_lines import readable
from tests.support.hostile import pdf, stream

Placed = tuple[float, float, float, str]


def document(pages: Sequence[Sequence[Placed]], info: bytes = b"") -> bytes:
    """A PDF whose pages hold lines (x, y, size, text) in Helvetica."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids["
        + b" ".join(b"%d 0 R" % (5 + 2 * n) for n in range(len(pages)))
        + b"]/Count %d>>" % len(pages),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        b"<<" + info + b">>",
    ]
    for n, lines in enumerate(pages):
        resources = b"<</Font<</F1 3 0 R>>>>"
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %d 0 R/Resources" % (6 + 2 * n)
            + resources
            + b">>"
        )
        drawn = "".join(f"BT /F1 {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n" for x, y, size, text in lines)
        objects.append(stream(zlib.compress(drawn.encode("latin-1")), b"/Filter/FlateDecode"))
    return pdf(objects, b"/Root 1 0 R/Info 4 0 R")


def paragraph(*lines: str, top: float = 700, x: float = 72, size: float = 10) -> list[Placed]:
    return [(x, top - 12 * i, size, line) for i, line in enumerate(lines)]


BODY = (
    "The lighthouse was built on a cliff of black basalt above the village, where ships",
    "could see it from a distance of thirty kilometres. Its lamp was lit by eleven fami-",
    "lies in turn, until it was made automatic; the last keeper wrote a well-known diary",
    "of the storms, which the museum shows.",
)


def test_pages_paragraphs_and_headings() -> None:
    first = [(72, 760, 18, "The lighthouse of Vik"), *paragraph(*BODY, top=720)]
    second = paragraph("The second page goes on with the keepers and the families that they had there.")
    found = read_pdf(document([first, second]), "vik.pdf")
    assert found.title == "The lighthouse of Vik"
    assert found.text == (
        "## Page 1\n\n### The lighthouse of Vik\n\n"
        "The lighthouse was built on a cliff of black basalt above the village, where ships could see it from a "
        "distance of thirty kilometres. Its lamp was lit by eleven families in turn, until it was made automatic; the "
        "last keeper wrote a well-known diary of the storms, which the museum shows.\n\n"
        "## Page 2 · The lighthouse of Vik\n\n"
        "The second page goes on with the keepers and the families that they had there."
    )
    chunks = get_chunker("recursive").split(found.text, lambda texts: pytest.fail("not needed"))
    assert all(chunk.section[0].startswith("Page ") for chunk in chunks)


def test_running_heads_and_page_numbers_go() -> None:
    ships = ("brigs from Bergen", "two steamers of the mail", "whalers", "no ship at all", "a yacht of the king's")
    pages = [
        [
            (72, 780, 8, "Annual report of the harbour"),
            *paragraph(f"In the year {1900 + n} there came {ships[n - 1]}, and storms at some length.", top=700),
            (300, 20, 8, f"- {n} -"),
        ]
        for n in range(1, 6)
    ]
    text = read_pdf(document(pages), "report.pdf").text
    assert "Annual report" not in text and "- 3 -" not in text
    assert "the year 1903" in text and text.count("## Page") == 5


def test_a_title_that_runs_as_head_stays_where_it_is_the_title() -> None:
    pages = [[(72, 600, 18, "Harbour rules"), *paragraph(*BODY, top=560)]]
    pages += [[(72, 780, 8, "Harbour rules"), *paragraph(*BODY[n:], *BODY[:n], top=700)] for n in range(4)]
    text = read_pdf(document(pages), "rules.pdf").text
    assert text.count("### Harbour rules") == 1
    assert "\nHarbour rules\n" not in text


def test_divided_words() -> None:
    lines = (
        "A self-made man came, and that self-made man stayed on for years and years and years self-",
        "made as he was, with an exam-",
        "ple of every shell there is.",
    )
    text = read_pdf(document([paragraph(*lines)]), "x.pdf").text
    assert "years self-made as he was" in text
    assert "an example of every shell" in text


def test_lists_and_short_lines() -> None:
    lines = paragraph(
        "These are the rules that hold in the harbour of Vik from the first of May until the end of September:"
    )
    lines += [
        (80, 680, 10, "\x95 Ships enter from the west and keep to the right of the red buoys at all times, also"),
        (90, 668, 10, "when the wind is from the north"),
        (80, 656, 10, "\x95 Nobody swims"),
    ]
    text = read_pdf(document([lines]), "x.pdf").text
    assert "- Ships enter from the west and keep to the right of the red buoys at all times, also when the wind" in text
    assert text.endswith("\n- Nobody swims")


def test_what_the_file_says_of_itself() -> None:
    info = b"/Title(Tides)/Author(Anna Berg)/CreationDate(D:20240305101500Z)/ModDate(D:20240401)"
    found = read_pdf(document([paragraph(*BODY)], info), "x.pdf")
    assert (found.title, found.author, found.published, found.modified) == (
        "Tides",
        "Anna Berg",
        "2024-03-05",
        "2024-04-01",
    )
    found = read_pdf(
        document([paragraph(*BODY)], b"/Title(Microsoft Word - final_v2.docx)/Author(Administrator)"), "tides.pdf"
    )
    assert "final" not in found.title and found.author == ""


def test_characters_that_share_a_glyph() -> None:
    assert readable("⻓江⼤桥的历史，⼀九五七年⼗⽉，⼈⺠ ﬁnd ﬂow") == "长江大桥的历史，一九五七年十月，人民 find flow"


def failure(body: bytes) -> str:
    with pytest.raises(IngestError) as raised:
        read_pdf(body, "x.pdf")
    return raised.value.code


def test_what_cannot_be_read() -> None:
    assert failure(document([[], []])) == "pdf_no_text"
    assert failure(b"%PDF-1.7\nnothing") == "pdf_broken"
    assert failure(document([paragraph(*BODY)])[:150]) == "pdf_broken"


def test_a_locked_file_and_one_that_only_forbids_printing() -> None:
    from io import BytesIO

    from pypdf import PdfReader, PdfWriter

    for password, code in (("secret", "pdf_encrypted"), ("", "")):
        writer = PdfWriter(clone_from=PdfReader(BytesIO(document([paragraph(*BODY)]))))
        writer.encrypt(password, owner_password="owner", algorithm="RC4-128")
        stream = BytesIO()
        writer.write(stream)
        if code:
            assert failure(stream.getvalue()) == code
        else:
            assert "eleven families" in read_pdf(stream.getvalue(), "x.pdf").text
