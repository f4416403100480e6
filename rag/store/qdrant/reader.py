"""What a library tells of its pages: records, texts, chunks, versions, and which pages are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from rag.store.aliases import alias_hash
from rag.store.duplicates import THRESHOLD, Signature, signature_from, similarity
from rag.store.filters import Filters
from rag.store.qdrant.conditions import match, match_any, walk, within
from rag.store.qdrant.records import (
    SPARSE,
    WITHOUT_TEXT,
    LibraryInfo,
    chunks_collection,
    is_removed,
    page_from,
    page_id,
    pages_collection,
    passage_from,
    versions_collection,
)
from rag.store.qdrant.search import dense_of
from rag.store.qdrant.versions import Versions
from rag.types import Page, PageVersion, Passage, SparseVector

_WITH_ALIASES = models.PayloadSelectorExclude(exclude=["text", "signature"])
_WITH_SIGNATURE = models.PayloadSelectorExclude(exclude=["text", "alias_hashes", "claim_hashes"])
_THERE = models.Filter(must_not=[match("removed", True)])
_LOOKS = 3
_CLAIMANTS = 8  # a site with a wrong canonical link has it on all of its pages
_CANDIDATES = 500  # pages compared for one text; more share a band only where one text repeats hundreds of times


class LibraryReader:
    """The reading half of `library.Library`; no locks, nothing is written."""

    def __init__(self, client: QdrantClient, info: LibraryInfo) -> None:
        self.info = info
        self.name = info.name
        self.embedding_model = info.embedding_model
        self.dimension = info.dimension
        self.client = client
        self.pages_collection = pages_collection(info.name)
        self.chunks_collection = chunks_collection(info.name, info.embedding_model)
        self._versions = Versions(client, versions_collection(info.name))

    # Pages

    def known(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        ids = [page_id(one) for one in dict.fromkeys(url_hashes)]
        if not ids:
            return {}
        records = self.client.retrieve(self.pages_collection, ids, with_payload=WITHOUT_TEXT)
        return {page.url_hash: page for page in (page_from(r.payload or {}) for r in records if not is_removed(r))}

    def resolve(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        wanted = dict.fromkeys(url_hashes)
        if not wanted:
            return {}
        ids = models.HasIdCondition(has_id=[page_id(one) for one in wanted])
        only = models.Filter(should=[ids, match_any("alias_hashes", list(wanted))])
        records = [*walk(self.client, self.pages_collection, only, payload=_WITH_ALIASES)]
        there = [record.payload or {} for record in reversed(records) if not is_removed(record)]
        others = {alias: page_from(one) for one in there for alias in wanted.keys() & one.get("alias_hashes", ())}
        return others | {one["url_hash"]: page_from(one) for one in there if one["url_hash"] in wanted}

    def claimants(self, url_hashes: Sequence[str], *, most: int = _CLAIMANTS) -> dict[str, list[Page]]:
        if not url_hashes:
            return {}
        only = models.Filter(must=[match_any("claim_hashes", list(dict.fromkeys(url_hashes)))])
        records, _ = self.client.scroll(
            self.pages_collection, scroll_filter=only, limit=most, with_payload=WITHOUT_TEXT
        )
        found: dict[str, list[Page]] = {}
        for payload in (record.payload or {} for record in records):
            found.setdefault(alias_hash(payload["claim"]), []).append(page_from(payload))
        return found

    def page(self, url_hash: str) -> Page | None:
        records = self.client.retrieve(self.pages_collection, [page_id(url_hash)], with_payload=True)
        records = [record for record in records if not is_removed(record)]
        if not records and (other := self.resolve([url_hash]).get(url_hash)):
            records = self.client.retrieve(self.pages_collection, [page_id(other.url_hash)], with_payload=True)
        return page_from(records[0].payload or {}) if records else None

    def texts(self, url_hashes: Sequence[str]) -> dict[str, str]:
        ids = [page_id(one) for one in dict.fromkeys(url_hashes)]
        records = self.client.retrieve(self.pages_collection, ids, with_payload=["url_hash", "text"]) if ids else []
        return {r.payload["url_hash"]: r.payload["text"] for r in records if r.payload and "text" in r.payload}

    def pages(self) -> list[Page]:
        records = walk(self.client, self.pages_collection, _THERE, payload=WITHOUT_TEXT)
        found = sorted((page_from(record.payload or {}) for record in records), key=lambda page: page.url_hash)
        return sorted(found, key=lambda page: page.added_at, reverse=True)

    def page_count(self) -> int:
        return self.client.count(self.pages_collection, count_filter=_THERE, exact=True).count

    def chunk_count(self, scope: Filters | None = None) -> int:
        given = within(scope) if scope else None
        only = models.Filter(must=[match("metadata.active", True), *([given] if given else [])])
        return self.client.count(self.chunks_collection, count_filter=only, exact=True).count

    def left_out(self) -> set[str]:
        only = models.Filter(must=[match("left_out", True)])
        found = walk(self.client, self.pages_collection, only, payload=["url_hash"])
        return {record.payload["url_hash"] for record in found if record.payload}

    # Pages that are alike

    def versions(self, url_hash: str) -> list[PageVersion]:
        page = self.page(url_hash)
        return self._versions.of(page) if page else []

    def same_text(self, text_hash: str) -> list[Page]:
        return self.same_texts([text_hash])

    def same_texts(self, text_hashes: Sequence[str]) -> list[Page]:
        only = models.Filter(must=[match_any("text_hash", list(text_hashes))])
        records = walk(self.client, self.pages_collection, only, payload=WITHOUT_TEXT)
        found = [page_from(record.payload or {}) for record in records]
        return sorted(found, key=lambda page: (page.added_at, page.url_hash))

    def near_texts(self, signature: Signature) -> list[tuple[Page, float]]:
        return self.near_texts_of([signature])[0]

    def near_texts_of(self, signatures: Sequence[Signature]) -> list[list[tuple[Page, float]]]:
        bands = [one.bands for one in signatures]
        requests = [
            models.QueryRequest(
                query=models.SparseVector(indices=one.indices, values=one.values),
                using=SPARSE,
                filter=_THERE,
                limit=_CANDIDATES,
                with_payload=_WITH_SIGNATURE,
            )
            for one in bands
            if one.indices
        ]
        answers = iter(self.client.query_batch_points(self.pages_collection, requests) if requests else ())
        found = [next(answers).points if one.indices else [] for one in bands]
        return [_near(signature, points) for signature, points in zip(signatures, found, strict=True)]

    # Chunks

    def chunks(self, url_hash: str) -> list[Passage]:
        for _ in range(_LOOKS):
            page = self.known([url_hash]).get(url_hash)
            if page is None:
                return []
            points = list(walk(self.client, self.chunks_collection, _chunks_of(page)))
            if len(points) == page.chunks:  # else it changed in between
                break
        ordered = sorted(points, key=lambda point: int((point.payload or {})["metadata"]["index"]))
        return [passage_from(point) for point in ordered]

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        if not ids:
            return []
        points = self.client.retrieve(self.chunks_collection, list(dict.fromkeys(ids)), with_payload=True)
        by_id = {str(point.id): point for point in points}
        return [passage_from(by_id[one]) for one in ids if one in by_id]

    def reusable(self, url_hash: str) -> dict[str, tuple[NDArray[np.float32] | None, SparseVector]]:
        found = {}
        page = self.known([url_hash]).get(url_hash)
        if page is None:
            return {}
        only = _chunks_of(page)
        for point in walk(self.client, self.chunks_collection, only, payload=["metadata.content_hash"], vectors=True):
            vector: Any = point.vector if isinstance(point.vector, dict) else {}
            weights = vector.get(SPARSE)
            sparse = SparseVector(list(weights.indices), list(weights.values)) if weights else SparseVector([], [])
            found[(point.payload or {})["metadata"]["content_hash"]] = (dense_of(point), sparse)
        return found


def _chunks_of(page: Page) -> models.Filter:
    """The chunks of the page's present text."""
    return models.Filter(
        must=[match("metadata.url_hash", page.url_hash), match("metadata.generation", page.generation)]
    )


def _near(signature: Signature, points: Sequence[models.ScoredPoint]) -> list[tuple[Page, float]]:
    """The pages among those that share a band which are near enough, the nearest first."""
    payloads = [point.payload or {} for point in points]
    scored = [(page_from(one), similarity(signature, signature_from(one))) for one in payloads]
    near = [(page, score) for page, score in scored if score >= THRESHOLD]
    return sorted(near, key=lambda one: (-one[1], one[0].added_at, one[0].url_hash))
