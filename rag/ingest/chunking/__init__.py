"""Chunkers, with one row here for each; `tests/contracts/test_chunking.py` checks them against the contract.

Exports `CHUNKERS`, `get_chunker` and `embedding_text`. Splitter packages are imported late because they are heavy.
"""

from __future__ import annotations

from collections.abc import Callable

from rag.ingest.chunking.base import MAXIMUM, Chunker, SentenceVectors, embedding_text
from rag.ingest.chunking.breakpoints import BreakpointChunker
from rag.ingest.chunking.markdown import MarkdownChunker, ParentChunker
from rag.ingest.chunking.recursive import FixedChunker, RecursiveChunker
from rag.ingest.chunking.semantic import SemanticSplitter

CHUNKERS: dict[str, Callable[[float], Chunker]] = {
    "semantic": SemanticSplitter,
    "recursive": RecursiveChunker,
    "fixed": FixedChunker,
    "markdown": MarkdownChunker,
    "parent": ParentChunker,
    "breakpoints": BreakpointChunker,
}

__all__ = ["CHUNKERS", "Chunker", "SentenceVectors", "embedding_text", "get_chunker"]


def get_chunker(name: str = "semantic", maximum: float = MAXIMUM) -> Chunker:
    """Return a chunker for chunks of up to `maximum`. Raises KeyError for a name that is not in CHUNKERS."""
    return CHUNKERS[name](maximum)
