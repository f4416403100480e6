"""A library: a named set of pages with their chunks, made with one embedding model."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient

from rag.errors import ModelMismatchError
from rag.store.audit import Audit, audit
from rag.store.client import is_shared
from rag.store.commit import Committer, Draft, NewChunks, Stand
from rag.store.filters import Filters
from rag.store.locks import library_locks
from rag.store.reader import LibraryReader
from rag.store.records import LibraryInfo, check_library_name, content_hash, ensure_library, now, recipe
from rag.store.registry import carry_over, check_present, create_library
from rag.store.search import Fusion, Hit, Query, Searcher, reciprocal_rank_fusion
from rag.store.sweep import sweep
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
    """Safe to share between threads. Every method raises StoreError when the database fails."""

    def __init__(self, client: QdrantClient, info: LibraryInfo) -> None:
        super().__init__(client, info)
        self._locks = library_locks(client, info.name)
        self._committer = Committer(client, self.pages_collection, self.chunks_collection, self._versions, self._locks)
        self._searcher = Searcher(client, self.pages_collection, self.chunks_collection, self._locks)
        self._counted: tuple[int | None, float, int] = (None, 0.0, 0)  # pages: as of which change, until when, how many

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
        claim: str = "",
    ) -> Page:
        """Store the page, or replace it, all at once; returns it with generation, counts and times.

        dense: (n, d) float32, L2-normalised; row i is ignored where `dense_ok[i]` is False, and chunk i
        then takes no part in dense ranking. `content_hashes` are those of the texts that were embedded
        (`records.content_hash`), by default of the chunks' own. `claim` is the address that the page says
        is its own, which nobody has looked at (`claimants`). StoreError leaves what was stored before.
        """
        given = self.draft(page, chunks, dense, dense_ok, sparse, chunker, content_hashes, claim)
        return self.commit_all([given])[0].page

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
        """What `commit` takes, for `commit_all`."""
        hashes = content_hashes or [content_hash(chunk.text) for chunk in chunks]
        new = NewChunks(chunks, dense, dense_ok, sparse, hashes)
        return Draft(page, new, recipe(page.text, chunker, self.embedding_model), claim)

    def commit_all(self, drafts: Sequence[Draft]) -> list[Stand]:
        """Store or replace these pages, each all at once, in fewer calls than one by one; how each stands then.

        A page may be there once. Where another process stored the same text of a page meanwhile, or one that was
        fetched later, that stays. StoreError leaves of each page what was stored before or what was given.
        """
        return self._committer.commit(drafts)

    def update_record(self, page: Page, *, claim: str | None = None) -> None:
        """Write what the page's site last said of it: etag, last_modified, checked_at, failures, status, aliases.

        One write, which touches no chunk; a page that is not stored stays so. Aliases are spelled as
        their keys (`rag.web.url_key`). A page that was left out because it was gone, and is back,
        takes part in answers again. `claim` is as in `commit`; None leaves the one there is.
        """
        self._committer.update_state(page, claim)

    def set_left_out(self, url_hashes: Sequence[str], left_out: bool) -> None:
        """Keep these pages out of every search, or let them in again; they stay in the library."""
        unique = list(dict.fromkeys(url_hashes))
        for at in range(0, len(unique), _AT_ONCE):
            self._committer.leave_out(unique[at : at + _AT_ONCE], left_out)

    def remove(self, url_hashes: Sequence[str]) -> int:
        """Remove pages with all their chunks and versions; returns how many there were."""
        unique = list(dict.fromkeys(url_hashes))
        return sum(self._committer.remove(unique[at : at + _AT_ONCE]) for at in range(0, len(unique), _AT_ONCE))

    def clear(self) -> int:
        """Remove every page with its versions; returns how many pages there were."""
        with self._locks.everything():
            return self.remove([page.url_hash for page in self.pages()])

    def page_count(self) -> int:
        """How many pages there are. Every screen asks: counted anew when one changed, over a server every 5 s."""
        calm, moment = self._locks.switch.calm(), time.monotonic()
        at, until, count = self._counted
        if calm is None or at != calm or moment > until:
            count = super().page_count()
            until = moment + _COUNT_KEPT if is_shared(self.client) else math.inf
            self._counted = (calm, until, count)
        return count

    def held(self, url_hashes: Sequence[str]) -> AbstractContextManager[None]:
        """While the block runs, no thread of this process changes these pages."""
        return self._locks.pages(url_hashes)

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

    def audit(self, *, deep: bool = False) -> Audit:
        """Find and repair pages that lack chunks; without `deep` only where the numbers of all do not agree."""
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
            only=scope.as_filter() if scope else None,
            fuse=fuse,
            more=more,
        )

    def idf(self, terms: Sequence[int]) -> dict[int, float]:
        """The inverse document frequency of terms of the sparse vectors, as the engine computes it.

        A term that no chunk holds gets the highest there can be. With several shards, each of which ranks by its own
        counts, it is that of one of them: near enough to tell rare terms from common ones.
        """
        return self._searcher.idf(terms)

    def vector_store(
        self, embeddings: Embeddings, sparse_embeddings: SparseEmbeddings | None = None
    ) -> QdrantVectorStore:
        """LangChain's view of the active chunks, for reading; hybrid when `sparse_embeddings` are given."""
        from rag.store.vector_store import library_vector_store

        return library_vector_store(self.client, self.chunks_collection, embeddings, sparse_embeddings)
