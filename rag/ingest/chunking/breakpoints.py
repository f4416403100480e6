"""SemanticChunker's own breakpoints: a cut wherever the distance is above a percentile of the page's distances.

The default, `semantic`, differs: here chunk sizes vary at random between one sentence and the maximum, which makes
retrieval worse (docs/decisions/0003-chunking.md).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from rag.ingest.chunking.base import MAXIMUM, SentenceVectors, Unit, make_chunks, split_units
from rag.ingest.chunking.recursive import RecursiveChunker, bind_headings
from rag.ingest.chunking.semantic import MAX_UNITS
from rag.types import Chunk

if TYPE_CHECKING:
    from langchain_experimental.text_splitter import SemanticChunker


class BreakpointChunker:
    """SemanticChunker's cuts over cheap static vectors; what is still above the maximum is split further."""

    name = "breakpoints"

    def __init__(self, maximum: float = MAXIMUM) -> None:
        self.maximum = maximum

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        units = split_units(text, self.maximum)
        # A heading is not a sentence: alone it is as far from its text as from any other.
        pieces = list(bind_headings(units, self.maximum))
        fill = RecursiveChunker(self.maximum).fill
        if len(units) > MAX_UNITS or len(pieces) < 3:
            return make_chunks(text, fill(units))
        splitter = _semantic_chunker(vectors)
        distances, _ = splitter._calculate_sentence_distances([text[p[0].start : p[-1].end] for p in pieces])
        threshold, _ = splitter._calculate_breakpoint_threshold(distances)
        runs = _cut(pieces, np.asarray(distances) > threshold)
        return make_chunks(text, [group for run in runs for group in fill(run)])


def _semantic_chunker(vectors: SentenceVectors) -> SemanticChunker:
    """Return langchain-experimental's SemanticChunker over static vectors, with its defaults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from langchain_experimental.text_splitter import SemanticChunker
    return SemanticChunker(cast(Any, _Static(vectors)), buffer_size=1)


def _cut(pieces: Sequence[list[Unit]], after: NDArray[np.bool_]) -> list[list[Unit]]:
    """Return runs of units that end after each piece whose flag is set; shape of `after` is (pieces - 1,)."""
    runs: list[list[Unit]] = [list(pieces[0])]
    for piece, is_end in zip(pieces[1:], after, strict=True):
        if is_end:
            runs.append([])
        runs[-1].extend(piece)
    return runs


class _Static:
    """Adapter of static sentence vectors for SemanticChunker, which calls nothing else of an Embeddings."""

    def __init__(self, vectors: SentenceVectors) -> None:
        self._vectors = vectors

    def embed_documents(self, texts: list[str]) -> NDArray[np.float32]:
        return self._vectors(texts)
