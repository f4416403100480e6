"""Chunks by heading, and small chunks within their sections."""

from __future__ import annotations

from itertools import groupby, pairwise

from rag.ingest.chunking import MarkdownChunker, ParentChunker
from rag.models.transformer import hash_characters
from rag.text import weigh
from rag.types import Chunk

LONG = "The installer asks for a folder and copies its files there. " * 30
SHORT = "One short line."


def split(text: str, **sizes: float) -> list[Chunk]:
    return MarkdownChunker(**sizes).split(text, hash_characters)


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


WORDS = "The keeper trims the wick, polishes the lens and writes the hour into the log. "
PAGE = "# Lamp\n\n" + "\n\n".join(f"## Watch {n}\n\n{(WORDS * (4 * n + 2)).strip()}" for n in range(7))


def test_children_lie_within_their_parents_and_cover_them() -> None:
    chunks = ParentChunker().split(PAGE, hash_characters)
    families = {span: list(group) for span, group in groupby(chunks, lambda chunk: chunk.parent)}
    for span, children in families.items():
        if span is None:
            continue
        start, end = span
        assert (children[0].start, children[-1].end) == (start, end)
        assert len(children) > 1
        assert all(start <= child.start < child.end <= end for child in children)
    spans = [span for span in families if span]
    assert len(spans) > 3
    assert all(one[1] <= two[0] for one, two in pairwise(spans))


def test_sizes() -> None:
    chunks = ParentChunker(size=300, parent=1200).split(PAGE, hash_characters)
    assert all(weigh(chunk.text) <= 300 for chunk in chunks)
    assert all(weigh(PAGE[slice(*chunk.parent)]) <= 1200 for chunk in chunks if chunk.parent)


def test_a_parent_is_a_section() -> None:
    chunks = ParentChunker(parent=5000).split(PAGE, hash_characters)
    parents = {PAGE[slice(*chunk.parent)] for chunk in chunks if chunk.parent}
    assert all(parent.startswith("#") and parent.count("## Watch") == 1 for parent in parents)


def test_a_long_sentence_and_a_code_block_stay_whole() -> None:
    sentence = "It lists " + ", ".join(f"thing number {n}" for n in range(40)) + "."
    code = "```\n" + "\n".join(f"line_{n} = compute({n})" for n in range(30)) + "\n```"
    text = f"{WORDS * 5}{sentence} {WORDS * 5}\n\n{code}\n\n{WORDS * 5}"
    assert 400 < len(sentence) < 900 > len(code) > 400
    chunks = ParentChunker().split(text, hash_characters)
    assert sentence in {chunk.text for chunk in chunks}
    assert code in {chunk.text for chunk in chunks}
