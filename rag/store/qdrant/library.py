"""A library over Qdrant, whose promises are those of `rag.store.ports`."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient

from rag.dates import now
from rag.errors import ModelMismatchError
from rag.store.filters import Filters
from rag.store.fusion import Fusion, Query, reciprocal_rank_fusion
from rag.store.ports import Audit, Draft, Hit, NewChunks, Stand, content_hash
from rag.store.qdrant.audit import audit
from rag.store.qdrant.client import is_shared
from rag.store.qdrant.commit import Committer
from rag.store.qdrant.conditions import within
from rag.store.qdrant.locks import library_locks
from rag.store.qdrant.reader import LibraryReader
from rag.store.qdrant.records import LibraryInfo, check_library_name, ensure_library, recipe
from rag.store.qdrant.registry import carry_over, check_present, create_library
from rag.store.qdrant.search import Searcher
from rag.store.qdrant.sweep import sweep
from rag.types import Chunk, Page, SparseVector

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_qdrant import QdrantVectorStore, SparseEmbeddings

_AT_ONCE = 100  # pages
_COUNT_KEPT = 5.0  # seconds; another process over the same server may write


def open_library(
    client: QdrantClient, name: str, embedding_model: str, dimension: int, *, create: bool = True
) -> Library:
    """Open the library, or make it where `create` allows, and repair what a killed process left behind.

    Raises ModelMismatchError when it was made with another model, StoreError for a name that cannot be one, is
    that of a library that was removed or is written by a newer version of this program, or without `create` of none.
    """
    wanted = LibraryInfo(name, embedding_model, dimension, now())
    info = create_library(client, wanted) if create else check_present(client, check_library_name(name))
    if (info.embedding_model, info.dimension) != (embedding_model, dimension):
        raise ModelMismatchError(
            "model_mismatch",
            library=info.shown,
            made_with=info.embedding_model,
            made_dimension=info.dimension,
            asked=embedding_model,
            asked_dimension=dimension,
        )
    with library_locks(client, name).everything():
        ensure_library(client, name, embedding_model, dimension)
        carry_over(client, info)
    library = Library(client, info)
    library.sweep()
    if is_shared(client):
        library.audit()
    return library


class Library(LibraryReader):
    """`rag.store.ports.Library` over Qdrant, embedded or a server."""

    def __init__(self, client: QdrantClient, info: LibraryInfo) -> None:
        super().__init__(client, info)
        self._locks = library_locks(client, info.name)
        self._committer = Committer(client, self.pages_collection, self.chunks_collection, self._versions, self._locks)
        self._searcher = Searcher(client, self.pages_collection, self.chunks_collection, self._locks)
        self._counted: tuple[int | None, float, int] = (None, 0.0, 0)  # pages: as of which change, until when, how many

    def is_current(self, page: Page, text: str, chunker: str) -> bool:
        return page.generation.startswith(recipe(text, chunker, self.embedding_model))

    # Writing

    def draft(
        self,
        page: Page,
        chunks: Sequence[Chunk],
        dense: NDArray[np.float32],
        dense_ok: Sequence[bool],
        sparse: Sequence[SparseVector],
        chunker: str = "",
        content_hashes: Sequence[str] | None = None,
        claim: str = "",
    ) -> Draft:
        hashes = content_hashes or [content_hash(chunk.text) for chunk in chunks]
        new = NewChunks(chunks, dense, dense_ok, sparse, hashes)
        return Draft(page, new, recipe(page.text, chunker, self.embedding_model), claim)

    def commit_all(self, drafts: Sequence[Draft]) -> list[Stand]:
        return self._committer.commit(drafts)

    def update_record(self, page: Page, *, claim: str | None = None) -> None:
        self._committer.update_state(page, claim)

    def set_left_out(self, url_hashes: Sequence[str], left_out: bool) -> None:
        unique = list(dict.fromkeys(url_hashes))
        for at in range(0, len(unique), _AT_ONCE):
            self._committer.leave_out(unique[at : at + _AT_ONCE], left_out)

    def remove(self, url_hashes: Sequence[str]) -> int:
        unique = list(dict.fromkeys(url_hashes))
        return sum(self._committer.remove(unique[at : at + _AT_ONCE]) for at in range(0, len(unique), _AT_ONCE))

    def clear(self) -> int:
        with self._locks.everything():
            return self.remove([page.url_hash for page in self.pages()])

    def page_count(self) -> int:
        calm, moment = self._locks.switch.calm(), time.monotonic()
        at, until, count = self._counted
        if calm is None or at != calm or moment > until:
            count = super().page_count()
            until = moment + _COUNT_KEPT if is_shared(self.client) else math.inf
            self._counted = (calm, until, count)
        return count

    def held(self, url_hashes: Sequence[str]) -> AbstractContextManager[None]:
        return self._locks.pages(url_hashes)

    def sweep(self) -> None:
        with self._locks.everything():
            sweep(
                self.client,
                self.pages_collection,
                self.chunks_collection,
                self._committer,
                before=time.time() - 600.0 if is_shared(self.client) else None,
            )

    def audit(self, *, deep: bool = False) -> Audit:
        return audit(self.client, self.pages_collection, self.chunks_collection, self._committer, deep=deep)

    # Searching

    def search(
        self,
        *,
        dense: NDArray[np.float32] | None,
        sparse: SparseVector | None,
        limit: int,
        prefetch: int,
        with_vectors: bool = False,
        scope: Filters | None = None,
        fuse: Fusion = reciprocal_rank_fusion,
        more: Sequence[Query] = (),
    ) -> list[Hit]:
        return self._searcher.search(
            dense=dense,
            sparse=sparse,
            limit=limit,
            prefetch=prefetch,
            with_vectors=with_vectors,
            only=within(scope) if scope else None,
            fuse=fuse,
            more=more,
        )

    def idf(self, terms: Sequence[int]) -> dict[int, float]:
        return self._searcher.idf(terms)

    def vector_store(
        self, embeddings: Embeddings, sparse_embeddings: SparseEmbeddings | None = None
    ) -> QdrantVectorStore:
        """LangChain's view of the active chunks, for reading; hybrid when `sparse_embeddings` are given."""
        from rag.store.qdrant.vector_store import library_vector_store

        return library_vector_store(self.client, self.chunks_collection, embeddings, sparse_embeddings)
