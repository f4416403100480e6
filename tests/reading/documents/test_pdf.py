"""PDF files: page numbers, joined paragraphs, running heads removed, and reasons for unreadable files."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from rag.errors import IngestError
from rag.ingest.chunking import get_chunker
from rag.reading.documents.pdf import MAX_LINES, read_pdf
from rag.reading.layout.tables import normalize_glyphs
from tests.support import locked_pdf
from tests.support.pdf_files import HELVETICA, PICTURE, lines, make_pdf, text, unicode_map

Placed = tuple[float, float, float, str]


LOUD = "THE KEEPER OF THE NORTHERN LIGHT WRITES UP THE LOG OF EVERY NIGHT"


def document(pages: Sequence[Sequence[Placed]], info: str = "") -> bytes:
    """Return a PDF whose pages have lines (x, y, size, text) in Helvetica."""
    return make_pdf(*("".join(text(x, y, words, size) for x, y, size, words in page) for page in pages), info=info)


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
        (80, 680, 10, "• Ships enter from the west and keep to the right of the red buoys at all times, also"),
        (90, 668, 10, "when the wind is from the north"),
        (80, 656, 10, "• Nobody swims"),
    ]
    text = read_pdf(document([lines]), "x.pdf").text
    assert "- Ships enter from the west and keep to the right of the red buoys at all times, also when the wind" in text
    assert text.endswith("\n- Nobody swims")


def test_what_the_file_says_of_itself() -> None:
    info = "/Title(Tides)/Author(Anna Berg)/CreationDate(D:20240305101500Z)/ModDate(D:20240401)"
    found = read_pdf(document([paragraph(*BODY)], info), "x.pdf")
    stated = found.title, found.author, found.published, found.modified
    assert stated == ("Tides", "Anna Berg", "2024-03-05", "2024-04-01")
    info = "/Title(Microsoft Word - final_v2.docx)/Author(Administrator)"
    found = read_pdf(document([paragraph(*BODY)], info), "tides.pdf")
    assert "final" not in found.title and found.author == ""


def test_characters_that_share_a_glyph() -> None:
    text = "长江大桥的历史，一九五七年十月，人民 find flow"
    assert normalize_glyphs("⻓江⼤桥的历史，⼀九五七年⼗⽉，⼈⺠ ﬁnd ﬂow") == text


def failure(body: bytes) -> str:
    with pytest.raises(IngestError) as raised:
        read_pdf(body, "x.pdf")
    return raised.value.code


def test_what_cannot_be_read() -> None:
    assert failure(document([[], []])) == "pdf_no_text"
    assert failure(b"%PDF-1.7\nnothing") == "pdf_broken"
    assert failure(document([paragraph(*BODY)])[:150]) == "pdf_broken"


@pytest.mark.parametrize(
    ("packed", "code"),
    [(locked_pdf.WITH_PASSWORD, "pdf_encrypted"), (locked_pdf.AGAINST_PRINTING, ""), (locked_pdf.WITH_RC4, "")],
)
def test_a_locked_file_and_one_that_only_forbids_printing(packed: str, code: str) -> None:
    body = locked_pdf.decode(packed)
    if code:
        assert failure(body) == code
    else:
        assert "Eleven families" in read_pdf(body, "x.pdf").text


def test_pages_without_text_are_told() -> None:
    """A scanned page, and one whose font maps to wrong letters, are between readable pages."""
    wrong = {
        letter: chr(0x0F40 + 5 * n) if n % 2 else chr(0x0251 + n) for n, letter in enumerate("abcdefghilmnoprstuwy")
    }
    objects = [unicode_map({**wrong, **{c: c for c in LOUD}}), PICTURE]
    scan, loud, low = "q 612 0 0 792 0 0 cm /P1 Do Q", lines(60, 700, LOUD), lines(60, 700, LOUD.lower())
    font, resources = f"{HELVETICA}/ToUnicode 4 0 R", "/XObject<</P1 5 0 R>>"
    body = make_pdf(loud, scan, low, loud, font=font, objects=objects, resources=resources)
    found = read_pdf(body, "x.pdf")
    assert found.unreadable_pages == (2, 3)
    assert found.text.split("\n\n") == ["## Page 1", LOUD, "## Page 4", LOUD]


def test_a_page_of_very_many_lines_ends_soon() -> None:
    drawing = "BT /F1 9 Tf 60 700 Td " + "(lamp and oil) Tj 0 -9 Td " * (MAX_LINES + 5000) + "ET"
    started = time.process_time()
    text = read_pdf(make_pdf(drawing), "x.pdf").text
    assert text.count("lamp") == MAX_LINES
    assert time.process_time() - started < 20


def test_tables_and_text_that_only_looks_like_one() -> None:
    contents = "".join(
        text(60, 700 - 14 * n, name + " " + "." * 60) + text(400, 700 - 14 * n, str(n))
        for n, name in enumerate(("Oil", "Wicks"))
    )
    numbered = "".join(
        text(60, 640 - 14 * n, f"{n}.") + text(90, 640 - 14 * n, f"The keeper cleans the lens {n} times")
        for n in (1, 2, 3)
    )
    read = read_pdf(make_pdf(contents + numbered), "x.pdf").text
    assert "|" not in read
    assert "1. The keeper cleans the lens 1 times" in read


def test_labels_of_two_lines_in_a_table_without_rules() -> None:
    rows = [
        ("The northern light", "of the old harbour", "120", "130"),
        ("The lamp of the", "keeper's house", "90", "95"),
    ]
    body = text(60, 700, "Name") + text(260, 700, "2021") + text(340, 700, "2022")
    for y, (first, second, *numbers) in zip((680, 650), rows, strict=True):  # a program draws cell by cell
        body += text(60, y, first) + text(60, y - 12, second)
        body += "".join(text(x, y, number) for x, number in zip((260, 340), numbers, strict=True))
    found = read_pdf(make_pdf(body), "lamps.pdf").text
    assert "| Name | 2021 | 2022 |" in found
    assert (
        "| The northern light of the old harbour | 120 | 130 |\n| The lamp of the keeper's house | 90 | 95 |" in found
    )
