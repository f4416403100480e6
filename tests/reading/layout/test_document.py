"""Headings; recognised lines without the models: order, notices, and what is dropped."""

from __future__ import annotations

from rag.checking.citations import check
from rag.reading.layout.document import Layout, add_scans, build_document
from rag.reading.layout.tables import Line
from tests.support.answering import passage

Recognized = list[list[object]]


def recognized(*found: tuple[str, float, float, float]) -> Recognized:
    """Return lines of text at (x, y) with their confidences, in ten-point letters."""
    lines: Recognized = []
    for text, x, y, score in found:
        words, at = [], x
        for word in text.split():
            words.append([word, at, at + 5 * len(word)])
            at += 5 * len(word) + 3
        lines.append([score, y, 10.0, words])
    return lines


def read(found: Recognized) -> tuple[str, tuple[str, ...]]:
    pages: list[list[Line]] = [[]]
    scans = add_scans(pages, {"1": found})
    return build_document(pages, confidence=scans.confidence).text, scans.signals


def test_lines_that_are_guessed_go_and_unsure_ones_are_marked() -> None:
    text, signals = read(
        recognized(
            ("The lamp was lit at seven in the evening of the first", 50, 700, 0.99),
            ("day of May, and burned until the oil gave out at 4 am", 50, 686, 0.72),
            ("on the second, when the keeper filled it up once more", 50, 672, 0.97),
            ("xqz vvk ll", 50, 640, 0.41),
        )
    )
    assert "gave out at 4 am [?]\n" in text and "xqz" not in text
    assert "read by OCR (90% sure)" in text
    assert signals == ("ocr", "ocr_low")


def test_columns_with_uneven_lines_are_read_one_after_the_other() -> None:
    left = [(f"left line {n} of the log of the light", 50, 700 - 14 * n, 0.99) for n in range(6)]
    right = [(f"right line {n} of the list of boats", 330, 693 - 14 * n, 0.99) for n in range(6)]
    both = [line for pair in zip(left, right, strict=True) for line in pair]
    text, _ = read(
        recognized(("A heading that stands over both of the columns of this whole page", 50, 720, 0.99), *both)
    )
    assert text.index("A heading") < text.index("left line 0") < text.index("left line 5") < text.index("right line 0")


def test_a_sentence_continues_at_the_top_of_the_next_column() -> None:
    layout = Layout(size=10.0, width=30.0, words=frozenset())
    left = [
        Line(text, 0, 700 - 12 * n, 10)
        for n, text in enumerate(("One lamp is lit at seven.", "Two of the lamps that", "stood on the pier, each"))
    ]
    right = [
        Line(text, 300, 724 - 12 * n, 10)
        for n, text in enumerate(("with a lens, went out.", "They were lit again.", "Nobody knew by whom."))
    ]
    assert [text for _, text in layout.blocks([*left, *right])] == [" ".join(line.text for line in (*left, *right))]
    assert len(layout.blocks([*left[:2], Line("They burned out.", 0, 676, 10), *right])) == 2


def test_an_unsure_line_bears_nothing_out() -> None:
    text, _ = read(
        recognized(
            ("The lamp of Skerry burns 40 litres of oil a week.", 50, 700, 0.99),
            ("The lamp of Holm burns 25 litres of oil a week.", 50, 660, 0.71),
        )
    )
    sure, unsure = (
        "The lamp of Skerry burns 40 litres of oil a week [1].",
        "The lamp of Holm burns 25 litres of oil a week [1].",
    )
    assert [s.verdict for s in check(sure, [passage(1, text)]).statements] == ["supported"]
    assert [s.verdict for s in check(unsure, [passage(1, text)]).statements] != ["supported"]


def test_large_lines_are_one_heading_where_they_stand_together() -> None:
    layout = Layout(size=10.0, width=60.0, words=frozenset())
    lines = [Line("The bridge", 0, 700, 16), Line("over the river", 0, 680, 16), Line("How it was paid", 0, 400, 16)]
    assert layout.blocks(lines) == [("heading", "The bridge over the river"), ("heading", "How it was paid")]
