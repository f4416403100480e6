"""A library: a named set of pages with their chunks, made with one embedding model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from rag.errors import ModelMismatchError
from rag.store.client import is_shared
from rag.store.collections import (
    LIBRARIES,
    SPARSE,
    check_library_name,
    chunks_collection,
    ensure_libraries,
    ensure_library,
    pages_collection,
)
from rag.store.commit import Committer, NewChunks, generation_of, recipe
from rag.store.locks import library_locks
from rag.store.records import (
    WITHOUT_TEXT,
    LibraryInfo,
    content_hash,
    library_from,
    library_id,
    library_payload,
    match,
    match_any,
    now,
    page_from,
    page_id,
    passage_from,
)
from rag.store.search import Fusion, Hit, Query, Searcher, dense_of, reciprocal_rank_fusion
from rag.store.sweep import sweep
from rag.store.walking import walk
from rag.types import Chunk, Page, Passage, SparseVector

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_qdrant import QdrantVectorStore, SparseEmbeddings

_REMOVALS = 100


def list_libraries(client: QdrantClient) -> list[str]:
    """The names of the libraries in the database, sorted."""
    return sorted(info.name for info in _infos(client))


def library_info(client: QdrantClient, name: str) -> LibraryInfo | None:
    """What the library remembers of itself, without opening it; None when there is none of this name."""
    return next((info for info in _infos(client) if info.name == name), None)


def open_library(client: QdrantClient, name: str, embedding_model: str, dimension: int) -> Library:
    """Open the library, or create it, and repair what a killed process left behind.

    Raises ModelMismatchError when it was made with another model, StoreError for a name that cannot be one.
    """
    check_library_name(name)
    ensure_libraries(client)
    info = library_info(client, name)
    if info is None:
        info = LibraryInfo(name, embedding_model, dimension, now())
        ensure_library(client, name, embedding_model, dimension)
        client.upsert(LIBRARIES, [models.PointStruct(id=library_id(name), vector={}, payload=library_payload(info))])
    elif (info.embedding_model, info.dimension) != (embedding_model, dimension):
        raise ModelMismatchError(
            "model_mismatch",
            library=name,
            made_with=info.embedding_model,
            made_dimension=info.dimension,
            asked=embedding_model,
            asked_dimension=dimension,
        )
    else:
        ensure_library(client, name, embedding_model, dimension)
    library = Library(client, info)
    library.sweep()
    return library


def _infos(client: QdrantClient) -> list[LibraryInfo]:
    if not client.collection_exists(LIBRARIES):
        return []
    return [library_from(record.payload or {}) for record in walk(client, LIBRARIES)]


class Library:
    """Safe to share between threads. Every method raises StoreError when the database fails."""

    def __init__(self, client: QdrantClient, info: LibraryInfo) -> None:
        self.name = info.name
        self.embedding_model = info.embedding_model
        self.dimension = info.dimension
        self.client = client
        self.pages_collection = pages_collection(info.name)
        self.chunks_collection = chunks_collection(info.name, info.embedding_model)
        self._locks = library_locks(client, info.name)
        names = (self.pages_collection, self.chunks_collection)
        self._committer = Committer(client, *names, self._locks)
        self._searcher = Searcher(client, *names, self._locks)

    # Pages

    def known(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        """The stored pages among these, by hash, without their text; one query for all of them."""
        ids = [page_id(one) for one in dict.fromkeys(url_hashes)]
        if not ids:
            return {}
        records = self.client.retrieve(self.pages_collection, ids, with_payload=WITHOUT_TEXT)
        return {page.url_hash: page for page in (page_from(record.payload or {}) for record in records)}

    def page(self, url_hash: str) -> Page | None:
        """The page with its text."""
        records = self.client.retrieve(self.pages_collection, [page_id(url_hash)], with_payload=True)
        return page_from(records[0].payload or {}) if records else None

    def texts(self, url_hashes: Sequence[str]) -> dict[str, str]:
        """The texts of the stored pages among these, by hash; one query for all of them."""
        ids = [page_id(one) for one in dict.fromkeys(url_hashes)]
        records = self.client.retrieve(self.pages_collection, ids, with_payload=["url_hash", "text"]) if ids else []
        return {record.payload["url_hash"]: record.payload["text"] for record in records if record.payload}

    def pages(self, *, limit: int | None = None, offset: int = 0) -> list[Page]:
        """Pages without their text, newest first; those of one moment in order of their hash."""
        if limit is None:
            records = list(walk(self.client, self.pages_collection, payload=WITHOUT_TEXT))
        else:
            newest = models.OrderBy(key="added_at", direction=models.Direction.DESC)
            records, _ = self.client.scroll(
                self.pages_collection, limit=offset + limit, order_by=newest, with_payload=WITHOUT_TEXT
            )
        found = sorted((page_from(record.payload or {}) for record in records), key=lambda page: page.url_hash)
        found.sort(key=lambda page: page.added_at, reverse=True)
        return found[offset : None if limit is None else offset + limit]

    def page_count(self) -> int:
        return self.client.count(self.pages_collection, exact=True).count

    def chunk_count(self) -> int:
        """Active chunks only."""
        only = models.Filter(must=[match("metadata.active", True)])
        return self.client.count(self.chunks_collection, count_filter=only, exact=True).count

    def is_current(self, page: Page, text: str, chunker: str) -> bool:
        """Whether the stored `page` was made from `text` by this chunker, so that nothing need be done."""
        return page.generation.startswith(recipe(text, chunker, self.embedding_model))

    # Writing

    def commit(
        self,
        page: Page,
        chunks: Sequence[Chunk],
        dense: NDArray[np.float32],
        dense_ok: Sequence[bool],
        sparse: Sequence[SparseVector],
        *,
        chunker: str = "",
        content_hashes: Sequence[str] | None = None,
    ) -> Page:
        """Store the page, or replace it, all at once; returns it with generation, counts and times.

        dense: (n, d) float32, L2-normalised; row i is ignored where `dense_ok[i]` is False, and chunk i
        then takes no part in dense ranking. `content_hashes` are those of the texts that were embedded
        (`records.content_hash`), by default of the chunks' own. StoreError leaves what was stored before.
        """
        hashes = content_hashes or [content_hash(chunk.text) for chunk in chunks]
        new = NewChunks(chunks, dense, dense_ok, sparse, hashes)
        generation = generation_of(page, new, chunker, self.embedding_model)
        return self._committer.commit(replace(page, generation=generation), new)

    def reusable(self, url_hash: str) -> dict[str, tuple[NDArray[np.float32] | None, SparseVector]]:
        """The vectors of the page's chunks by content hash; None where the model cannot read the text."""
        found = {}
        only = self._current_chunks(url_hash)
        if only is None:
            return {}
        for point in walk(self.client, self.chunks_collection, only, payload=["metadata.content_hash"], vectors=True):
            vector: Any = point.vector if isinstance(point.vector, dict) else {}
            weights = vector.get(SPARSE)
            sparse = SparseVector(list(weights.indices), list(weights.values)) if weights else SparseVector([], [])
            found[(point.payload or {})["metadata"]["content_hash"]] = (dense_of(point), sparse)
        return found

    def remove(self, url_hashes: Sequence[str]) -> int:
        """Remove pages with all their chunks; returns how many there were."""
        unique = list(dict.fromkeys(url_hashes))
        return sum(self._remove(unique[at : at + _REMOVALS]) for at in range(0, len(unique), _REMOVALS))

    def _remove(self, url_hashes: list[str]) -> int:
        chunks = models.Filter(must=[match_any("metadata.url_hash", url_hashes)])
        with self._locks.pages(url_hashes), self._locks.switch:
            present = self.known(url_hashes)
            self._committer.hide(chunks)
            if present:
                self.client.delete(self.pages_collection, [page_id(one) for one in present])
            self.client.delete(self.chunks_collection, models.FilterSelector(filter=chunks))
        return len(present)

    def clear(self) -> int:
        """Remove every page; returns how many there were."""
        with self._locks.everything():
            count = self.page_count()
            everything = models.FilterSelector(filter=models.Filter(must=[]))
            self._committer.hide(models.Filter(must=[]))
            self.client.delete(self.pages_collection, everything)
            self.client.delete(self.chunks_collection, everything)
        return count

    def sweep(self) -> None:
        """Finish or undo what a killed process left half done; cheap when nothing is."""
        with self._locks.everything():
            sweep(
                self.client,
                self.pages_collection,
                self.chunks_collection,
                self._committer,
                before=time.time() - 600.0 if is_shared(self.client) else None,
            )

    # Reading

    def chunks(self, url_hash: str) -> list[Passage]:
        """The page's chunks in order."""
        only = self._current_chunks(url_hash)
        if only is None:
            return []
        points = walk(self.client, self.chunks_collection, only)
        ordered = sorted(points, key=lambda point: int((point.payload or {})["metadata"]["index"]))
        return [passage_from(point) for point in ordered]

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Chunks by id, in the order asked; those that are gone are left out."""
        if not ids:
            return []
        points = self.client.retrieve(self.chunks_collection, list(dict.fromkeys(ids)), with_payload=True)
        by_id = {str(point.id): point for point in points}
        return [passage_from(by_id[one]) for one in ids if one in by_id]

    def search(
        self,
        *,
        dense: NDArray[np.float32] | None,
        sparse: SparseVector | None,
        limit: int,
        prefetch: int,
        with_vectors: bool = False,
        only: models.Filter | None = None,
        fuse: Fusion = reciprocal_rank_fusion,
        more: Sequence[Query] = (),
    ) -> list[Hit]:
        """The best `limit` active chunks, best first, fused from the best `prefetch` of each leg.

        dense: (d,); a leg that is None, or a sparse vector without terms, takes no part. `fuse` gets
        the legs that took part, `{leg: {point id: score}}`, and returns the fused scores. Equal scores
        are ordered by id. The legs of `more` are called `dense.2`, `sparse.2` and so on. See `rag.store.search`.
        """
        return self._searcher.search(
            dense=dense,
            sparse=sparse,
            limit=limit,
            prefetch=prefetch,
            with_vectors=with_vectors,
            only=only,
            fuse=fuse,
            more=more,
        )

    def idf(self, terms: Sequence[int]) -> dict[int, float]:
        """The inverse document frequency of terms of the sparse vectors, as the engine computes it.

        A term that no chunk holds gets the highest there can be.
        """
        return self._searcher.idf(terms)

    def vector_store(
        self, embeddings: Embeddings, sparse_embeddings: SparseEmbeddings | None = None
    ) -> QdrantVectorStore:
        """LangChain's view of the active chunks, for reading; hybrid when `sparse_embeddings` are given."""
        from rag.store.vector_store import library_vector_store

        return library_vector_store(self.client, self.chunks_collection, embeddings, sparse_embeddings)

    def _current_chunks(self, url_hash: str) -> models.Filter | None:
        page = self._committer.current(url_hash)
        if page is None:
            return None
        return models.Filter(must=[match("metadata.url_hash", url_hash), match("metadata.generation", page.generation)])
