from __future__ import annotations

from itertools import groupby, pairwise

from rag.ingest.chunking.parent import ParentChunker
from rag.models.tokens import hash_characters
from rag.text import weigh

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


def test_a_section_of_one_chunk_needs_no_parent() -> None:
    (chunk,) = ParentChunker().split("# Lamp\n\nOne line of text.", hash_characters)
    assert chunk.parent is None


def test_a_long_sentence_and_a_code_block_stay_whole() -> None:
    sentence = "It lists " + ", ".join(f"thing number {n}" for n in range(40)) + "."
    code = "```\n" + "\n".join(f"line_{n} = compute({n})" for n in range(30)) + "\n```"
    text = f"{WORDS * 5}{sentence} {WORDS * 5}\n\n{code}\n\n{WORDS * 5}"
    assert 400 < len(sentence) < 900 > len(code) > 400
    chunks = ParentChunker().split(text, hash_characters)
    assert sentence in {chunk.text for chunk in chunks}
    assert code in {chunk.text for chunk in chunks}
