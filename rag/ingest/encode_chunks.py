"""Chunks and vectors of pages, made ahead of their turn to be stored.

Many threads prepare pages at once. The model is handed the chunks of all pages that are ready and waits
for no more of them: while it works on one lot, the next one gathers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.models.embedding import EmbeddingModel
from rag.models.engines import Together
from rag.models.lexical import joined, lexical_of
from rag.models.sparse import SparseEncoder
from rag.store.values import NewChunks
from rag.types import Chunk, SparseVector

Vectors = NDArray[np.float32]
Reusable = Mapping[str, tuple[Vectors | None, SparseVector]]

_PAGES = 32  # in one lot: texts of like lengths go together, and the more there are the less is padding
_LARGE = 128  # chunks; a page of so many fills batches by itself
_SPARSE_BYTES = 8_000  # of one chunk's terms, roughly


@dataclass(frozen=True, slots=True)
class Prepared:
    """A page's chunks, and what decides all of them: title, hash of the text, recipe."""

    made_of: tuple[str, str, str]
    new: NewChunks

    @property
    def size(self) -> int:
        """Roughly how many bytes it holds."""
        return self.new.dense.nbytes + len(self.new.chunks) * _SPARSE_BYTES


class ChunkEncoder:
    """Texts to dense and sparse vectors. Safe to share between threads; raises ModelError."""

    def __init__(self, model: EmbeddingModel, sparse: SparseEncoder) -> None:
        self._model = model
        self._sparse = sparse
        # One lot at a time: a second would fill the cores when the first ends, but of few texts, which cost more.
        self._lots = ThreadPoolExecutor(1, "lots")
        self._together: Together[Sequence[str], Vectors] = Together(self._encode_lot, self._lots.submit, most=_PAGES)

    def encode(
        self, chunks: Sequence[Chunk], texts: Sequence[str], hashes: Sequence[str], reusable: Reusable
    ) -> NewChunks:
        """The chunks with their vectors; none encoded twice."""
        dense = np.zeros((len(chunks), self._model.dimension), dtype=np.float32)
        readable = [True] * len(chunks)
        sparse: list[SparseVector] = []
        todo: list[int] = []
        for i, (chunk, text, digest) in enumerate(zip(chunks, texts, hashes, strict=True)):
            if known := reusable.get(digest):
                vector, weights = known
                readable[i] = vector is not None
                if vector is not None:
                    dense[i] = vector
                sparse.append(weights)
                continue
            sparse.append(self._sparse.encode_passage(text))
            readable[i] = self._model.can_read(chunk.text)
            if readable[i]:
                todo.append(i)
        if todo:
            dense[todo] = self._encoded([texts[i] for i in todo])
            if head := lexical_of(self._model):
                for i, learned in zip(todo, head.encode([texts[i] for i in todo]), strict=True):
                    sparse[i] = joined(sparse[i], learned)
        return NewChunks(chunks, dense, readable, sparse, hashes)

    def _encoded(self, texts: Sequence[str]) -> Vectors:
        return self._model.encode_passages(texts) if len(texts) >= _LARGE else self._together.ask(texts)

    def _encode_lot(self, pages: Sequence[Sequence[str]]) -> list[Vectors]:
        """The vectors of several pages' texts, page by page."""
        vectors = self._model.encode_passages([text for texts in pages for text in texts])
        return np.split(vectors, np.cumsum([len(texts) for texts in pages])[:-1])
