from __future__ import annotations

import numpy as np

from rag.ingest.chunking import BreakpointChunker
from rag.models.transformer import hash_characters


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
