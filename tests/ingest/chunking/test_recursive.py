from __future__ import annotations

import itertools

import pytest

from rag.ingest.chunking import FixedChunker, RecursiveChunker, bind_headings, split_units
from rag.models.transformer import hash_characters
from rag.text import weigh

SENTENCES = "Every keeper writes down the hour of lighting. " * 14
PAGE = "\n\n".join(f"## Part {n}\n\n{SENTENCES}" for n in range(12))


def test_paragraphs_stay_whole_where_they_fit() -> None:
    paragraphs = [f"Paragraph {n}. " + "It has a few words more. " * (n % 5 + 3) for n in range(30)]
    text = "\n\n".join(paragraphs)
    chunks = RecursiveChunker(500).split(text, hash_characters)
    assert len(chunks) > 5
    assert all(text[chunk.end : chunk.end + 2] in ("", "\n\n") or text[chunk.end] == " " for chunk in chunks)
    assert all(sum(one.strip() in chunk.text for chunk in chunks) == 1 for one in paragraphs)


@pytest.mark.parametrize("maximum", [120, 400, 700, 900])
@pytest.mark.parametrize("chunker", [RecursiveChunker, FixedChunker])
def test_no_heading_or_question_is_left_behind(chunker: type[RecursiveChunker | FixedChunker], maximum: float) -> None:
    for chunk in chunker(maximum).split(PAGE, hash_characters):
        assert not chunk.text.splitlines()[-1].startswith("#")
    text = "\n\n".join(f"How deep is dock {n}?\nDock {n} is {n + 2} metres deep at low water." for n in range(70))
    chunks = chunker(maximum).split(text, hash_characters)
    assert len(chunks) > 3
    assert not any(chunk.text.rstrip().endswith("?") for chunk in chunks)


def test_headings_that_do_not_fit_do_not_exceed_the_maximum() -> None:
    text = "\n\n".join(f"## A heading that is rather long, number {n}" for n in range(60)) + "\n\nText."
    pieces = list(bind_headings(split_units(text, 200), 200))
    assert all(weigh(text[piece[0].start : piece[-1].end]) <= 200 for piece in pieces)
    assert [unit for piece in pieces for unit in piece] == split_units(text, 200)


def test_a_table_header_stays_with_its_first_row() -> None:
    rows = "\n".join(f"| Plan {n} with a long name | {n} euros a month and person |" for n in range(30))
    text = "Some words that come before the table. " * 9 + f"\n\n| Plan | Price |\n| --- | --- |\n{rows}"
    for chunk in RecursiveChunker(400).split(text, hash_characters):
        assert not chunk.text.endswith("| --- | --- |")


def test_fixed_chunks_are_full_but_for_the_next_sentence() -> None:
    chunks = FixedChunker(600).split(PAGE, hash_characters)
    assert all(600 - 2 * 47 - 20 <= len(chunk.text) <= 600 for chunk in chunks[:-1])
    assert all(one.end <= two.start for one, two in itertools.pairwise(chunks))
