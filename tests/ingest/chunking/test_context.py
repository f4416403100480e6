"""The context that is indexed with a chunk stays in proportion to it, on any page."""

from __future__ import annotations

import pytest

from rag.ingest.chunking import CHUNKERS, embedding_text, get_chunker, split_units
from rag.models.transformer import hash_characters

ROWS = "| row | x |\n" * 3000
HOSTILE = {
    "a table header as long as the table": "| " + "a header cell | " * 2000 + "\n| --- |\n" + ROWS,
    "a table header of one cell": "| " + "x" * 30_000 + " |\n| --- |\n" + ROWS,
    "a heading as long as the page": "# " + "word " * 6000 + "\n\n" + "A short sentence. " * 2000,
}


@pytest.mark.parametrize("kind", sorted(HOSTILE))
@pytest.mark.parametrize("name", sorted(CHUNKERS))
def test_no_chunk_carries_far_more_than_its_text(name: str, kind: str) -> None:
    text = HOSTILE[kind]
    chunks = get_chunker(name).split(text, hash_characters)
    assert len(chunks) > 30
    assert sum(len(embedding_text("Title", chunk)) for chunk in chunks) < 5 * len(text)
    assert all(len(" ".join(chunk.section)) <= 1300 for chunk in chunks)


def test_a_wide_table_keeps_the_cells_that_fit() -> None:
    header = "| " + " | ".join(f"Column {n}" for n in range(90)) + " |"
    text = f"{header}\n|{' --- |' * 90}\n" + "\n".join("| " + " | ".join("7" * 90) + " |" for _ in range(20))
    chunks = get_chunker().split(text, hash_characters)
    later = [chunk for chunk in chunks if chunk.context]
    assert later
    assert all(header.startswith(chunk.context) and chunk.context.endswith(" |") for chunk in later)


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("# Bridges", "Bridges"),
        ("## 桥梁 ##", "桥梁"),
        ("# Bridges #  ", "Bridges"),
        ("#\tBridges\tof steel  \t", "Bridges\tof steel"),
        ("# A # B ###", "A # B"),
        ("# a" + " " * 300 + "x", "a" + " " * 196),
        ("# **Bold** title", "Bold** title"),
        ("###### `code`", "code"),
    ],
)
def test_titles(heading: str, title: str) -> None:
    units = split_units(f"Before.\n\n{heading}\n\nBelow it.", 900)
    assert [(unit.kind, unit.section) for unit in units][:2] == [("text", ()), ("heading", (title.rstrip(),))]
    assert units[-1].section == (title.rstrip(),)


@pytest.mark.parametrize("line", ["#Bridges", "####### Seven", "text # not", "    \\# not"])
def test_what_is_no_heading(line: str) -> None:
    assert {unit.kind for unit in split_units(f"{line}\n\nBelow it.", 900)} == {"text"}


@pytest.mark.parametrize("marks", ["# ", "## #", "#  ##  "])
def test_marks_alone_name_nothing(marks: str) -> None:
    units = split_units(f"{marks}\n\nBelow it.", 900)
    assert [(unit.kind, unit.section) for unit in units] == [("heading", ()), ("text", ())]


def test_an_entry_is_one_unit_unless_it_is_too_long() -> None:
    text = "Arms.\n\nM10 Monitor Arm\n\nWeight: 9 lbs\n\nStarting at $459\n\nMore text follows."
    entry = "M10 Monitor Arm\n\nWeight: 9 lbs\n\nStarting at $459"
    assert entry in [text[unit.start : unit.end] for unit in split_units(text, 900)]
    assert max(unit.size for unit in split_units(text, 30)) <= 30
