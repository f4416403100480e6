from __future__ import annotations

import numpy as np

from rag.ingest.chunking import BreakpointChunker
from rag.models.transformer import hash_characters
from rag.text import split_sentences, weigh

TEA = "Green tea is brewed with cooler water than black tea. "
BRIDGE = "Steel cables carry the weight of a suspension bridge. "


def test_it_cuts_where_the_subject_changes() -> None:
    text = (TEA * 8 + BRIDGE * 8).strip()
    first, second = BreakpointChunker().split(text, hash_characters)
    change = text.index(BRIDGE)
    # Each sentence is compared together with its neighbours, so the largest distance may be one sentence off.
    assert abs(second.start - change) <= len(BRIDGE)
    assert first.text.count("tea. ") >= 7


def test_breakpoints_equal_those_of_semantic_chunker_within_the_maximum() -> None:
    """The library's split_text gets the same sentences and vectors, and no chunk of the page exceeds the maximum."""
    from langchain_experimental.text_splitter import SemanticChunker

    rng = np.random.default_rng(3)
    words = "lamp oil wick lens fog bell storm boat rope tide keeper tower log watch".split()
    sentences = [" ".join(rng.choice(words, 9)).capitalize() + "." for _ in range(60)]
    text = " ".join(sentences)

    class Static:
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [list(map(float, row)) for row in hash_characters(texts)]

    theirs = SemanticChunker(Static()).split_text(text)  # type: ignore[arg-type]
    ours = [chunk.text for chunk in BreakpointChunker(10_000).split(text, hash_characters)]
    assert len(theirs) > 2
    assert ours == theirs


def test_what_the_breakpoints_leave_too_large_is_split() -> None:
    text = TEA * 200
    chunks = BreakpointChunker(500).split(text, hash_characters)
    assert all(weigh(chunk.text) <= 500 for chunk in chunks)
    ends = {end for _, end in split_sentences(text)}
    assert all(chunk.end in ends for chunk in chunks)
