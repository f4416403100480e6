from __future__ import annotations

from rag.ingest.chunking.markdown import MarkdownChunker
from rag.models.tokens import hash_characters
from rag.types import Chunk

LONG = "The installer asks for a folder and copies its files there. " * 30
SHORT = "One short line."


def split(text: str, **sizes: float) -> list[Chunk]:
    return MarkdownChunker(**sizes).split(text, hash_characters)


def test_a_chunk_is_a_section() -> None:
    middle = "This section is of a middling length. " * 10
    text = f"# Guide\n\n{middle}\n\n## Install\n\n{middle}\n\n## Use\n\n{middle}"
    chunks = split(text)
    assert [chunk.section for chunk in chunks] == [("Guide",), ("Guide", "Install"), ("Guide", "Use")]
    assert [chunk.text.splitlines()[0] for chunk in chunks] == ["# Guide", "## Install", "## Use"]


def test_parts_of_a_large_section_keep_its_path() -> None:
    chunks = split(f"# Guide\n\n## Install\n\n{LONG}\n\n## Use\n\n{LONG}")
    assert len(chunks) >= 4
    assert {chunk.section for chunk in chunks} == {("Guide", "Install"), ("Guide", "Use")}
    assert not any("## Use" in chunk.text and "## Install" in chunk.text for chunk in chunks)


def test_tiny_neighbours_under_one_heading_stand_together() -> None:
    text = "# Terms\n\n" + "\n\n".join(f"## Term {n}\n\n{SHORT}" for n in range(4))
    chunks = split(text)
    assert len(chunks) == 1
    assert split(text, tiny=0)[-1].text == f"## Term 3\n\n{SHORT}"


def test_tiny_neighbours_under_different_headings_do_not() -> None:
    text = f"# A\n\n## A1\n\n{SHORT}\n\n# B\n\n## B1\n\n{SHORT}"
    assert [chunk.section for chunk in split(text)] == [("A", "A1"), ("B", "B1")]
    nested = f"# A\n\n## A1\n\n{SHORT}\n\n## A2\n\n### A21\n\n{SHORT}"
    assert [chunk.section for chunk in split(nested)] == [("A", "A1"), ("A", "A2", "A21")]
    deeper = f"# A\n\n{SHORT}\n\n## A1\n\n{SHORT}"
    assert [chunk.section for chunk in split(deeper)] == [("A",), ("A", "A1")]


def test_a_tiny_section_does_not_join_a_large_one() -> None:
    middle = "This section is of a middling length. " * 10
    chunks = split(f"# A\n\n## A1\n\n{middle}\n\n## A2\n\n{SHORT}")
    assert [chunk.section for chunk in chunks] == [("A", "A1"), ("A", "A2")]


def test_joined_sections_stay_within_the_maximum() -> None:
    text = "\n\n".join(f"## Term {n}\n\n{SHORT * 10}" for n in range(40))
    chunks = split(text)
    assert 5 <= len(chunks) <= 20
    assert all(len(chunk.text) <= 900 for chunk in chunks)


def test_a_heading_without_text_goes_with_what_follows_it() -> None:
    text = f"# Guide\n\n## Setup\n\n### Linux\n\n{SHORT}"
    (chunk,) = split(text)
    assert chunk.text == text
    assert chunk.section == ("Guide", "Setup", "Linux")


def test_a_page_without_headings_is_one_section() -> None:
    text = "\n\n".join(f"Paragraph {n}. {SHORT * 20}" for n in range(9))
    chunks = split(text)
    assert [chunk.section for chunk in chunks] == [()] * len(chunks)
    assert sum(len(chunk.text) for chunk in chunks) / len(chunks) > 450
