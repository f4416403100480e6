"""Chunks and vectors of pages, prepared before the pages are stored.

Many threads prepare pages at once. The model gets the chunks of all pages that are ready without waiting for more:
while it works on one batch, the next one gathers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.models.embedding import EmbeddingModel
from rag.models.engines import CallBatcher
from rag.models.sparse import SparseEncoder, index_sentences, join_vectors, lexical_of, pack_sentences
from rag.store.values import NewChunks
from rag.types import Chunk, SparseVector

Vectors = NDArray[np.float32]
Reusable = Mapping[str, tuple[Vectors | None, SparseVector]]

_PAGES = 32  # per batch: texts of similar lengths go together, so the more there are, the less is padding
_LARGE = 128  # chunks; a page with this many fills batches alone
_SPARSE_BYTES = 8_000  # per chunk, for its terms, roughly


@dataclass(frozen=True, slots=True)
class Prepared:
    """A page's chunks, and what determines them: title, hash of the text, recipe."""

    made_of: tuple[str, str, str]
    new: NewChunks

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        return self.new.dense.nbytes + len(self.new.chunks) * _SPARSE_BYTES


class ChunkEncoder:
    """Turns texts into dense and sparse vectors. Safe to share between threads; raises ModelError."""

    def __init__(self, model: EmbeddingModel, sparse: SparseEncoder) -> None:
        self._model = model
        self._sparse = sparse
        # One batch at a time: a second would use the cores sooner, but for few texts, which cost more each.
        self._pool = ThreadPoolExecutor(1, "lots")
        self._together: CallBatcher[Sequence[str], Vectors] = CallBatcher(
            self._encode_pages, self._pool.submit, most=_PAGES
        )

    def encode(
        self, chunks: Sequence[Chunk], texts: Sequence[str], hashes: Sequence[str], reusable: Reusable
    ) -> NewChunks:
        """Return the chunks with their vectors; those in `reusable` are not encoded again."""
        dense = np.zeros((len(chunks), self._model.dimension), dtype=np.float32)
        readable = [True] * len(chunks)
        sparse: list[SparseVector] = []
        todo: list[int] = []
        for i, (chunk, text, digest) in enumerate(zip(chunks, texts, hashes, strict=True)):
            if existing := reusable.get(digest):
                vector, weights = existing
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
            dense[todo] = self._encode_dense([texts[i] for i in todo])
            if head := lexical_of(self._model):
                for i, lexical in zip(todo, head.encode([texts[i] for i in todo]), strict=True):
                    sparse[i] = join_vectors(sparse[i], lexical)
        sentences = [pack_sentences(index_sentences(chunk.text, self._sparse), len(chunk.text)) for chunk in chunks]
        return NewChunks(chunks, dense, readable, sparse, hashes, sentences)

    def _encode_dense(self, texts: Sequence[str]) -> Vectors:
        return self._model.encode_passages(texts) if len(texts) >= _LARGE else self._together.ask(texts)

    def _encode_pages(self, pages: Sequence[Sequence[str]]) -> list[Vectors]:
        """Return the vectors of several pages' texts, page by page."""
        vectors = self._model.encode_passages([text for texts in pages for text in texts])
        return np.split(vectors, np.cumsum([len(texts) for texts in pages])[:-1])
