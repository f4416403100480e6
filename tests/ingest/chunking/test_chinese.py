"""Chinese pages with every chunker. Sentence ends are judged by punctuation here, not by our splitter."""

from __future__ import annotations

import re

import pytest

from rag.ingest.chunking import CHUNKERS, get_chunker
from rag.models.transformer import hash_characters
from rag.text import weigh
from rag.types import Chunk
from tests.ingest.chunking.chinese_pages import PARAGRAPHS, page

PAGES = [page(seed) for seed in range(24)]
_ENDS = re.compile("[。！？…][”’」』）》]*$")


def ends_inside(text: str, chunk: Chunk) -> bool:
    """Return whether the text continues on the same line after the chunk, which has no closing punctuation."""
    following = text[chunk.end : chunk.end + 1]
    return following not in ("", "\n") and not _ENDS.search(chunk.text)


@pytest.mark.parametrize("name", sorted(CHUNKERS))
def test_at_most_two_in_a_hundred_chunks_end_inside_a_sentence(name: str) -> None:
    chunker = get_chunker(name)
    chunks = [(text, chunk) for text in PAGES for chunk in chunker.split(text, hash_characters)]
    assert len(chunks) >= 100
    assert sum(ends_inside(text, chunk) for text, chunk in chunks) <= 0.02 * len(chunks)
    assert all(chunk.text == text[chunk.start : chunk.end] for text, chunk in chunks)
    assert all(weigh(chunk.text) <= chunker.maximum for _, chunk in chunks)


@pytest.mark.parametrize("name", sorted(CHUNKERS))
def test_chunks_of_a_page_without_any_break_are_not_crumbs(name: str) -> None:
    text = "".join(PARAGRAPHS) * 3
    chunks = get_chunker(name).split(text, hash_characters)
    assert not any(ends_inside(text, chunk) for chunk in chunks)
    if name != "breakpoints":  # whose sizes are arbitrary
        sizes = [weigh(chunk.text) for chunk in chunks[:-1]]
        assert sum(sizes) / len(sizes) >= 250


def test_the_judge_can_find_fault() -> None:
    text = "黄山位于安徽省南部，主峰莲花峰海拔1864.8米。"
    assert ends_inside(text, Chunk(0, text[:8], 0, 8))
    assert not ends_inside(text, Chunk(0, text, 0, len(text)))
