"""A library: a named set of pages with their chunks, stored in Qdrant, and hybrid search over its active chunks.

Both legs go to the engine in one batch, which returns only ids and scores. They are fused here, by exact reciprocal
rank fusion or the caller's function, and only the winners are read. The engine's fusion does not return ranks by leg,
so the legs would have to be queried again. Measured on the embedded engine with 20 000 chunks of 384 dimensions,
prefetch 100, limit 20, with payload and vectors: 4.1 ms this way, with winners read and checked against the pages'
records; 5.4 ms for the engine's fusion and both legs, unchecked; 6.5 ms for both legs with payload and vectors inline;
2.5 ms for the engine's fusion without ranks. The engine also orders ties arbitrarily; here the smaller id wins.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from rag.errors import ModelMismatchError
from rag.store.qdrant.client import is_shared, library_locks
from rag.store.qdrant.commit import Committer
from rag.store.qdrant.health import audit, sweep
from rag.store.qdrant.records import (
    DENSE,
    SENTENCES,
    SPARSE,
    WITHOUT_TEXT,
    LibraryInfo,
    active_chunks,
    check_format,
    check_library_name,
    check_present,
    create_library,
    ensure_library,
    is_removed,
    match,
    match_any,
    match_ids,
    page_from,
    page_id,
    passage_from,
    recipe,
    scope_filter,
    walk,
)
from rag.store.values import (
    ACROSS,
    SIMILARITY_THRESHOLD,
    Audit,
    CommitResult,
    Draft,
    Filters,
    Fusion,
    Hit,
    Legs,
    NewChunks,
    Query,
    Signature,
    alias_hash,
    batches,
    now,
    reciprocal_rank_fusion,
    signature_from,
    similarity,
    sort_ids,
    text_hash,
)
from rag.types import Page, PageVersion, Passage, SparseVector

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_qdrant import SparseEmbeddings

    from rag.store.qdrant.vector_store import LibraryVectorStore

_IDF_SECONDS = 300.0  # on a server, other processes may write
_MAX_TERMS = 1 << 16
_PAGE_HASH = models.PayloadSelectorInclude(include=["metadata.url_hash"])
_RECORD_READERS = ThreadPoolExecutor(8, "records")


@dataclass(frozen=True, slots=True)
class _Match:
    id: str
    ranks: Mapping[str, int]
    scores: Mapping[str, float]


def dense_vector(point: Any) -> NDArray[np.float32] | None:
    """Return the dense vector (d,) of a point, if it has one."""
    vector = _vector(point, DENSE)
    return None if vector is None else np.asarray(vector, dtype=np.float32)


def _vector(point: Any, name: str) -> Any:
    return point.vector.get(name) if isinstance(point.vector, dict) else None


def _requests(
    queries: Sequence[Query], depth: int, only: models.Filter | None, is_shared: bool, language: str
) -> dict[str, models.QueryRequest]:
    """Return one request per leg: `dense` and `sparse` of the first query, `dense.2` and `sparse.2` of the second, etc.

    With `language`, also one for `ACROSS`. On a server, the filter does not require `active`: new chunks are valid
    between the commit and the write of flags.
    """
    if is_shared:
        condition = models.Filter(must=[only] if only else [], must_not=[match("metadata.left_out", True)])
    else:
        condition = active_chunks(only)
    elsewhere = models.Filter(must=[condition], must_not=[match("metadata.language", language)])
    legs: dict[str, Any] = {}
    for number, (dense, sparse) in enumerate(queries, start=1):
        suffix = f".{number}" if number > 1 else ""
        if dense is not None:
            legs[DENSE + suffix] = dense.tolist()
        if sparse is not None and sparse.indices:
            legs[SPARSE + suffix] = models.SparseVector.model_construct(indices=sparse.indices, values=sparse.values)
    if language and DENSE in legs:
        legs[ACROSS] = legs[DENSE]
    # Unvalidated: checking hundreds of numbers can take longer than the search.
    return {
        leg: models.QueryRequest.model_construct(
            query=models.NearestQuery.model_construct(nearest=vector),
            using=DENSE if leg == ACROSS else leg.partition(".")[0],
            filter=elsewhere if leg == ACROSS else condition,
            limit=depth,
            with_payload=_PAGE_HASH if is_shared else False,
            with_vector=False,
        )
        for leg, vector in legs.items()
    }


def _rank(legs: Legs, fuse: Fusion) -> Iterator[_Match]:
    """Yield the hits of the legs, best first, ties by id, with rank (from 1) and score in each leg."""
    by_leg = {**legs, "fused": fuse(legs)}
    orders = {leg: sort_ids(scores) for leg, scores in by_leg.items()}
    ranks = {leg: dict(zip(order, range(1, len(order) + 1), strict=True)) for leg, order in orders.items()}
    for point in orders["fused"]:
        point_ranks = {leg: places[point] for leg, places in ranks.items() if point in places}
        yield _Match(point, point_ranks, {leg: by_leg[leg][point] for leg in point_ranks})


def _term_query(term: int) -> models.QueryRequest:
    """Request one chunk with the term, and its weight there."""
    vector = models.SparseVector.model_construct(indices=[term], values=[1.0])
    return models.QueryRequest.model_construct(
        query=models.NearestQuery.model_construct(nearest=vector),
        using=SPARSE,
        limit=1,
        with_payload=False,
        with_vector=[SPARSE],
    )


_BATCH = 100  # pages per call
_COUNT_SECONDS = 5.0  # on a server, other processes may write
_WITH_ALIASES = models.PayloadSelectorExclude(exclude=["text", "signature"])
_WITH_SIGNATURE = models.PayloadSelectorExclude(exclude=["text", "alias_hashes", "claim_hashes"])
_NOT_REMOVED = models.Filter(must_not=[match("removed", True)])
_TEXT_FIELDS = ["url_hash", "text", "text_hash"]
_READ_TRIES = 3
_PAGES_A_QUERY = 1000
_MAX_CLAIMANTS = 8  # a site with a wrong canonical link may have it on all pages
_MAX_CANDIDATES = 500  # pages compared per text; more share a band only if a text repeats hundreds of times


def open_library(
    client: QdrantClient, name: str, embedding_model: str, dimension: int, *, create: bool = True
) -> Library:
    """Open the library, or with `create` create it, and finish or undo the work of killed processes.

    Raises ModelMismatchError if it was made with another model. Raises StoreError if the name is invalid, the library
    was deleted or has another format, or, without `create`, does not exist.
    """
    new_info = LibraryInfo(name, embedding_model, dimension, now())
    info = create_library(client, new_info) if create else check_present(client, check_library_name(name))
    if (info.embedding_model, info.dimension) != (embedding_model, dimension):
        raise ModelMismatchError(
            "model_mismatch",
            library=info.display_name,
            made_with=info.embedding_model,
            made_dimension=info.dimension,
            asked=embedding_model,
            asked_dimension=dimension,
        )
    with library_locks(client, name).lock_all():
        ensure_library(client, name, embedding_model, dimension)
        check_format(info)
    library = Library(client, info)
    library.sweep()
    if is_shared(client):
        library.audit()
    return library


class Library:
    """A named set of pages with their chunks, made with one embedding model, in the embedded engine or on a server.

    Safe to share between threads.
    """

    def __init__(self, client: QdrantClient, info: LibraryInfo) -> None:
        self.info = info
        self.name = info.name
        self.embedding_model = info.embedding_model
        self.dimension = info.dimension
        self.client = client
        self._committer = Committer(client, info)
        self.pages_collection = self._committer.pages
        self.chunks_collection = self._committer.chunks
        self.versions_collection = self._committer.versions.collection
        self._locks = library_locks(client, info.name)
        self._is_shared = is_shared(client)
        self._idf: dict[int, float] = {}  # by term, until the next change, or because of other processes, for a while
        self._idf_state = (-1, 0.0)  # change number, expiry
        self._count_cache: tuple[int | None, float, int] = (None, 0.0, 0)  # change number, expiry, number of pages
        self._damaged: set[str] = set()

    # Searches

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
        language: str = "",
    ) -> list[Hit]:
        """Return the best `limit` chunks, best first, fused from the best `prefetch` of each leg.

        dense: (d,). A leg that is None or has no terms is skipped. `fuse` gets the results of the legs, `{leg: {chunk
        id: score}}`, and returns the fused scores. Ties are ordered by id. The legs of `more` are named `dense.2`,
        `sparse.2` and so on. With `language`, the leg `ACROSS` searches `dense` in pages in other languages. A damaged
        chunk is returned without its text.
        """
        queries = [(dense, sparse), *more]
        requests = _requests(queries, max(prefetch, limit), scope_filter(scope), self._is_shared, language)
        if not requests:
            return []
        hits, stale = self._run(requests, limit, with_vectors, fuse)
        if stale:  # a page is being replaced; retry after that
            with self._locks.commit_lock:
                hits, _ = self._run(requests, limit, with_vectors, fuse)
        return hits

    def search_diverse(
        self,
        dense: NDArray[np.float32],
        *,
        limit: int,
        fetch_k: int,
        lambda_mult: float,
        scope: Filters | None = None,
    ) -> list[Hit]:
        """Select `limit` of the `fetch_k` chunks nearest to `dense` (d,) by langchain-qdrant's MMR, in its order.

        `lambda_mult` ranges from 0 (diversity only) to 1 (relevance only). Damaged chunks are returned without text.
        """
        from rag.store.qdrant.vector_store import library_vector_store

        state = None if self._is_shared else self._locks.commit_lock.snapshot()
        store = library_vector_store(self.client, self.chunks_collection)
        results = store.max_marginal_relevance_search_with_score_by_vector(
            dense.tolist(), limit, fetch_k, lambda_mult, scope_filter(scope)
        )
        ranked, pages = [], {}
        for rank, (document, score) in enumerate(results, 1):
            point = str(document.metadata["_id"])
            pages[point] = {"metadata": document.metadata}
            legs = (DENSE, "fused")
            ranked.append(_Match(point, dict.fromkeys(legs, rank), dict.fromkeys(legs, score)))
        return self._read_hits(ranked, False, state, pages)

    def idf(self, terms: Sequence[int]) -> dict[int, float]:
        """Return the inverse document frequency of terms, as the engine computes it for sparse vectors.

        A term without chunks gets the highest possible value. With several shards, each of which has its own counts,
        the value is from one of them: good enough to tell rare terms from common ones.
        """
        changes, moment = self._locks.commit_lock.changes, time.monotonic()
        if changes != self._idf_state[0] or moment > self._idf_state[1] or len(self._idf) > _MAX_TERMS:
            self._idf, self._idf_state = {}, (changes, moment + _IDF_SECONDS)
        cache = self._idf
        if missing := [term for term in terms if term not in cache]:
            count = self.client.count(self.chunks_collection, exact=False).count
            highest = math.log(1.0 + (count + 0.5) / 0.5)
            responses = self.client.query_batch_points(self.chunks_collection, list(map(_term_query, missing)))
            for term, response in zip(missing, responses, strict=True):
                idf = highest
                for point in response.points:  # one, whose score is its weight of the term times the IDF
                    vector = _vector(point, SPARSE)
                    weight = dict(zip(vector.indices, vector.values, strict=True)).get(term, 0.0) if vector else 0.0
                    idf = point.score / weight if weight else 0.0
                cache[term] = idf
        return {term: cache[term] for term in terms}

    def _run(
        self, requests: dict[str, models.QueryRequest], limit: int, with_vectors: bool, fuse: Fusion
    ) -> tuple[list[Hit], bool]:
        """Return the hits, and whether some were skipped because their page is changing."""
        state = None if self._is_shared else self._locks.commit_lock.snapshot()
        responses = self.client.query_batch_points(self.chunks_collection, list(requests.values()))
        legs = {
            leg: {str(point.id): point.score for point in response.points}
            for leg, response in zip(requests, responses, strict=True)
        }
        pages = {str(point.id): point.payload for response in responses for point in response.points if point.payload}
        if ACROSS in legs:
            legs[DENSE] |= legs[ACROSS]
        ranked = _rank(legs, fuse)
        hits: list[Hit] = []
        stale = False
        while len(hits) < limit and (batch := list(islice(ranked, limit - len(hits)))):
            batch_hits = self._read_hits(batch, with_vectors, state, pages)
            stale = stale or len(batch_hits) < len(batch)
            hits.extend(batch_hits)
        return hits, stale

    def _read_hits(
        self, batch: Sequence[_Match], with_vectors: bool, state: int | None, pages: Mapping[str, Mapping[str, Any]]
    ) -> list[Hit]:
        """Return the hits of `batch`, in order, without those of an outdated generation.

        If nothing has changed since `state`, none are outdated: other chunks are inactive. With the hashes in `pages`,
        a payload by point, records and chunks are read from a server in parallel.
        """
        records = None
        if self._is_shared:
            hashes = {pages[ranked.id]["metadata"]["url_hash"] for ranked in batch}
            records = _RECORD_READERS.submit(copy_context().run, self._generations, hashes)
        points, terms = self._points([ranked.id for ranked in batch], with_vectors)
        by_id = {str(point.id): point for point in points if point.payload is not None}
        is_unchanged = state is not None and state == self._locks.commit_lock.snapshot()
        if records is not None:
            current = records.result()
        else:
            point_hashes = {point.payload["metadata"]["url_hash"] for point in points if point.payload}
            current = {} if is_unchanged else self._generations(point_hashes)
        hits = []
        for ranked in batch:
            point = by_id.get(ranked.id)
            data = (point.payload or {})["metadata"] if point else {}
            if point and (is_unchanged or current.get(data["url_hash"]) == data["generation"]):
                passage = passage_from(point, ranked.scores["fused"], ranked.ranks, ranked.scores)
                hit_terms, sentences = terms.get(ranked.id, frozenset()), data.get(SENTENCES, "")
                hits.append(Hit(self._note_damage(passage), dense_vector(point), hit_terms, sentences))
        return hits

    def _note_damage(self, passage: Passage) -> Passage:
        """Return the passage; record its page as damaged if it has no text."""
        if not passage.text:
            self._damaged.add(passage.url_hash)
        return passage

    def _points(self, ids: list[str], with_vectors: bool) -> tuple[list[models.Record], dict[str, frozenset[int]]]:
        """Return the chunks with these ids, and the terms of those without a dense vector.

        The embedded engine reads terms slowly, so a second call reads the needed ones only; a server's calls cost more.
        """
        vectors: Any = ([DENSE, SPARSE] if self._is_shared else [DENSE]) if with_vectors else False
        points = self.client.retrieve(self.chunks_collection, ids, with_payload=True, with_vectors=vectors)
        sparse_only = [point for point in points if _vector(point, DENSE) is None] if with_vectors else []
        if sparse_only and not self._is_shared:
            sparse_ids = [str(point.id) for point in sparse_only]
            sparse_only = self.client.retrieve(
                self.chunks_collection, sparse_ids, with_payload=False, with_vectors=[SPARSE]
            )
        weights = {str(point.id): _vector(point, SPARSE) for point in sparse_only}
        return points, {point_id: frozenset(vector.indices if vector else ()) for point_id, vector in weights.items()}

    def _generations(self, url_hashes: Collection[str]) -> dict[str, str]:
        """Return the current generation of each included page. The engine reads each record's text too."""
        ids = [page_id(url_hash) for url_hash in url_hashes]
        fields = ["url_hash", "generation", "left_out"]
        records = self.client.retrieve(self.pages_collection, ids, with_payload=fields) if ids else []
        payloads = [record.payload for record in records if record.payload]
        return {payload["url_hash"]: payload["generation"] for payload in payloads if not payload.get("left_out")}

    # Pages

    def stored_pages(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        """Return the stored pages among these, by hash, in a query for each thousand."""
        pages: dict[str, Page] = {}
        for ids in _id_batches(url_hashes):  # more records at a time would mostly be garbage to collect
            for record in self.client.retrieve(self.pages_collection, list(ids), with_payload=WITHOUT_TEXT):
                if not is_removed(record):
                    page = self._page_from(record.payload or {})
                    pages[page.url_hash] = page
        return pages

    def find_known(self, url_hashes: Sequence[str]) -> set[str]:
        """Return those hashes that `resolve` would find, without reading the pages, which takes four times as long."""
        known: set[str] = set()
        for ids in _id_batches(url_hashes):
            only = models.Filter(must=[match_ids(ids)], must_not=[match("removed", True)])
            known.update(
                ids[str(record.id)] for record in walk(self.client, self.pages_collection, only, payload=False)
            )
        return known | self._find_aliases(set(url_hashes) - known, ["alias_hashes"]).keys()

    def _page_from(self, payload: Mapping[str, Any]) -> Page:
        """Return the page; a damaged one without HTTP validators, so that its site sends the content again."""
        page = page_from(payload)
        return replace(page, etag="", last_modified="") if page.url_hash in self._damaged else page

    def resolve(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        """Return the stored pages by the given hashes, which are those of pages or of their aliases.

        Makes a query for each thousand hashes, and another if some are not those of pages.
        """
        pages = self.stored_pages(url_hashes)
        rows = self._find_aliases(set(url_hashes) - pages.keys(), _WITH_ALIASES)
        return {alias: self._page_from(row) for alias, row in rows.items()} | pages

    def _find_aliases(self, hashes: set[str], payload: Any) -> dict[str, Mapping[str, Any]]:
        """Return the records of the stored pages that have these aliases, by alias, with the selected `payload`."""
        if not hashes:
            return {}
        only = models.Filter(must=[match_any("alias_hashes", sorted(hashes))], must_not=[match("removed", True)])
        records = [*walk(self.client, self.pages_collection, only, payload=payload)]
        rows = [record.payload or {} for record in reversed(records)]
        return {alias: row for row in rows for alias in hashes.intersection(row["alias_hashes"])}

    def claimants(self, url_hashes: Sequence[str], *, limit: int = _MAX_CLAIMANTS) -> dict[str, list[Page]]:
        """Return up to `limit` pages that claim one of these addresses, by its hash. Claims are unverified."""
        if not url_hashes:
            return {}
        only = models.Filter(must=[match_any("claim_hashes", list(dict.fromkeys(url_hashes)))])
        records, _ = self.client.scroll(
            self.pages_collection, scroll_filter=only, limit=limit, with_payload=WITHOUT_TEXT
        )
        claimants: dict[str, list[Page]] = {}
        for payload in (record.payload or {} for record in records):
            claimants.setdefault(alias_hash(payload["claim"]), []).append(page_from(payload))
        return claimants

    def page(self, url_hash: str) -> Page | None:
        """Return the page with its text, by its hash or that of an alias, such as a merged duplicate.

        Damaged text is returned unchanged; its hash does not match.
        """
        records = self.client.retrieve(self.pages_collection, [page_id(url_hash)], with_payload=True)
        records = [record for record in records if not is_removed(record)]
        if not records and (alias_page := self.resolve([url_hash]).get(url_hash)):
            records = self.client.retrieve(self.pages_collection, [page_id(alias_page.url_hash)], with_payload=True)
        page = page_from(records[0].payload or {}) if records else None
        if page and text_hash(page.text) != page.text_hash:
            self._damaged.add(page.url_hash)
        return page

    def texts(self, url_hashes: Sequence[str]) -> dict[str, str]:
        """Return the texts of the stored pages among these, by hash, in one query. Damaged ones are skipped."""
        ids = [page_id(key) for key in dict.fromkeys(url_hashes)]
        records = self.client.retrieve(self.pages_collection, ids, with_payload=_TEXT_FIELDS) if ids else []
        rows = {r.payload["url_hash"]: r.payload for r in records if r.payload and "text" in r.payload}
        texts = {key: data["text"] for key, data in rows.items() if text_hash(data["text"]) == data["text_hash"]}
        self._damaged |= rows.keys() - texts.keys()
        return texts

    def pages(self) -> list[Page]:
        """Return the pages without their text, newest first, ties by hash."""
        records = walk(self.client, self.pages_collection, _NOT_REMOVED, payload=WITHOUT_TEXT)
        pages = sorted((page_from(record.payload or {}) for record in records), key=lambda page: page.url_hash)
        return sorted(pages, key=lambda page: page.added_at, reverse=True)

    def page_count(self) -> int:
        """Return the number of pages, cached until the next change, because every screen calls this."""
        state, moment = self._locks.commit_lock.snapshot(), time.monotonic()
        cached_state, until, count = self._count_cache
        if state is None or cached_state != state or moment > until:
            count = self.client.count(self.pages_collection, count_filter=_NOT_REMOVED, exact=True).count
            until = moment + _COUNT_SECONDS if self._is_shared else math.inf
            self._count_cache = (state, until, count)
        return count

    def change_token(self) -> object | None:
        """Return a token that changes with the pages; None if other processes may change them unnoticed."""
        pages, records = self._locks.commit_lock.snapshot(), self._locks.record_lock.snapshot()
        return None if self._is_shared or pages is None or records is None else (pages, records)

    def chunk_count(self, scope: Filters | None = None) -> int:
        """Count the searchable chunks, optionally only those in `scope`."""
        only = active_chunks(scope_filter(scope))
        return self.client.count(self.chunks_collection, count_filter=only, exact=True).count

    def excluded_pages(self) -> set[str]:
        only = models.Filter(must=[match("left_out", True)])
        records = walk(self.client, self.pages_collection, only, payload=["url_hash"])
        return {record.payload["url_hash"] for record in records if record.payload}

    def versions(self, url_hash: str) -> list[PageVersion]:
        """Return the stored versions of the page, oldest first; the last is the current one."""
        page = self.page(url_hash)
        return self._committer.versions.list_versions(page) if page else []

    # Similar pages

    def pages_with_text(self, text_hash: str) -> list[Page]:
        """Return the pages with exactly this text, oldest first."""
        return self.pages_with_texts([text_hash])

    def pages_with_texts(self, text_hashes: Sequence[str]) -> list[Page]:
        """Return the pages with one of these texts, without their text, oldest first."""
        only = models.Filter(must=[match_any("text_hash", list(text_hashes))])
        records = walk(self.client, self.pages_collection, only, payload=WITHOUT_TEXT)
        pages = [page_from(record.payload or {}) for record in records]
        return sorted(pages, key=lambda page: (page.added_at, page.url_hash))

    def similar_pages(self, signature: Signature) -> list[tuple[Page, float]]:
        """Return pages with nearly identical text and their similarity (0 to 1), most similar first.

        The signature is from `rag.store.values.sign`; text that is too short for one has no matches.
        """
        return self.similar_pages_batch([signature])[0]

    def similar_pages_batch(self, signatures: Sequence[Signature]) -> list[list[tuple[Page, float]]]:
        """Return `similar_pages` of each signature, in one call."""
        bands = [signature.bands for signature in signatures]
        requests = [
            models.QueryRequest(
                query=models.SparseVector(indices=band.indices, values=band.values),
                using=SPARSE,
                filter=_NOT_REMOVED,
                limit=_MAX_CANDIDATES,
                with_payload=_WITH_SIGNATURE,
            )
            for band in bands
            if band.indices
        ]
        answers = iter(self.client.query_batch_points(self.pages_collection, requests) if requests else ())
        results = []
        for signature, band in zip(signatures, bands, strict=True):
            payloads = [point.payload or {} for point in next(answers).points] if band.indices else []
            scored = [(page_from(payload), similarity(signature, signature_from(payload))) for payload in payloads]
            similar = [(page, score) for page, score in scored if score >= SIMILARITY_THRESHOLD]
            results.append(sorted(similar, key=lambda pair: (-pair[1], pair[0].added_at, pair[0].url_hash)))
        return results

    # Chunks

    def chunks(self, url_hash: str) -> list[Passage]:
        """Return the page's chunks in order, without damaged ones."""
        for _ in range(_READ_TRIES):
            page = self.stored_pages([url_hash]).get(url_hash)
            if page is None:
                return []
            points = list(walk(self.client, self.chunks_collection, _chunks_filter(page)))
            if len(points) == page.chunks:  # else it changed meanwhile
                break
        ordered = sorted(points, key=lambda point: int((point.payload or {})["metadata"]["index"]))
        return [passage for passage in map(self._note_damage, map(passage_from, ordered)) if passage.text]

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return chunks by id, in the given order; missing and damaged ones are skipped."""
        if not ids:
            return []
        points = self.client.retrieve(self.chunks_collection, list(dict.fromkeys(ids)), with_payload=True)
        by_id = {str(point.id): point for point in points}
        passages = (self._note_damage(passage_from(by_id[chunk_id])) for chunk_id in ids if chunk_id in by_id)
        return [passage for passage in passages if passage.text]

    def reusable_vectors(self, url_hash: str) -> dict[str, tuple[NDArray[np.float32] | None, SparseVector]]:
        """Return dense (None if the model can't read the text) and sparse vectors of the chunks by `content_hash`."""
        vectors = {}
        page = self.stored_pages([url_hash]).get(url_hash)
        if page is None:
            return {}
        only = _chunks_filter(page)
        for point in walk(self.client, self.chunks_collection, only, payload=["metadata.content_hash"], vectors=True):
            vector: Any = point.vector if isinstance(point.vector, dict) else {}
            weights = vector.get(SPARSE)
            sparse = SparseVector(list(weights.indices), list(weights.values)) if weights else SparseVector([], [])
            vectors[(point.payload or {})["metadata"]["content_hash"]] = (dense_vector(point), sparse)
        return vectors

    # Writing

    def is_current(self, page: Page, text: str, chunker: str) -> bool:
        """Return whether the stored `page` is undamaged and was made from `text` with this chunker."""
        is_undamaged = page.url_hash not in self._damaged
        models = (self.embedding_model, *self.info.earlier_models)
        return is_undamaged and page.generation.startswith(tuple(recipe(text, chunker, model) for model in models))

    def draft(self, page: Page, new: NewChunks, chunker: str = "", claim: str = "") -> Draft:
        """Return the input of `commit_all` for a page and its chunks. `claim` is as in `update_record`."""
        return Draft(page, new, recipe(page.text, chunker, self.embedding_model), claim)

    def commit_all(self, drafts: Sequence[Draft]) -> list[CommitResult]:
        """Store or replace these pages, each atomically; return each with its generation, counts and times.

        No page may occur twice. If another process stored the same text meanwhile, or fetched the page later, its
        version wins. On StoreError each page is either the old or the new one.
        """
        results = self._committer.commit(drafts)
        self._damaged -= {draft.page.url_hash for draft in drafts}
        return results

    def update_record(self, page: Page, *, claim: str | None = None) -> None:
        """Update the etag, last_modified, checked_at, failures, reading, status and aliases of a page, if it is stored.

        Does not touch its chunks, except that an excluded page which was gone and is back is included again. Aliases
        must be normalised by `rag.web.urls`. `claim` is the unverified address that the page claims; None keeps the
        current one.
        """
        self._committer.update_state(page, claim)

    def set_excluded(self, url_hashes: Sequence[str], excluded: bool) -> None:
        """Exclude these pages from every search, or include them again; they stay in the library."""
        for batch in batches(list(dict.fromkeys(url_hashes)), _BATCH):
            self._committer.set_excluded(batch, excluded)

    def remove(self, url_hashes: Sequence[str]) -> int:
        """Remove pages with all their chunks and versions; return how many existed."""
        return sum(map(self._committer.remove, batches(list(dict.fromkeys(url_hashes)), _BATCH)))

    def clear(self) -> int:
        """Remove all pages with their chunks and versions; return how many existed."""
        with self._locks.lock_all():
            return self.remove([page.url_hash for page in self.pages()])

    def lock_pages(self, url_hashes: Sequence[str]) -> AbstractContextManager[None]:
        """Lock these pages against other threads of this process for the block."""
        return self._locks.lock_pages(url_hashes)

    def sweep(self) -> None:
        """Finish or undo the interrupted work of killed processes; cheap if there is none."""
        with self._locks.lock_all():
            sweep(self._committer, before=time.time() - 600.0 if self._is_shared else None)

    def audit(self, *, deep: bool = False) -> Audit:
        """Find and repair pages with missing or extra chunks; see `health.audit`."""
        return audit(self._committer, deep=deep)

    def vector_store(
        self, embeddings: Embeddings, sparse_embeddings: SparseEmbeddings | None = None
    ) -> LibraryVectorStore:
        """Return a read-only LangChain store of the active chunks; hybrid if `sparse_embeddings` are given."""
        from rag.store.qdrant.vector_store import library_vector_store

        return library_vector_store(self.client, self.chunks_collection, embeddings, sparse_embeddings)


def _chunks_filter(page: Page) -> models.Filter:
    """Return the filter for the chunks of the page's current text."""
    return models.Filter(
        must=[match("metadata.url_hash", page.url_hash), match("metadata.generation", page.generation)]
    )


def _id_batches(url_hashes: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the pages' hashes by the ids of their records, in batches for one query each."""
    for batch in batches(list(dict.fromkeys(url_hashes)), _PAGES_A_QUERY):
        yield {page_id(url_hash): url_hash for url_hash in batch}
