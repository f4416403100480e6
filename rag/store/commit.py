"""How a page changes: all of it at once, whatever ends the process in between.

    1. the chunks of the new generation are written, inactive, and counted
    2. the page's record is written with the new generation: this one write is the commit
    3. the new chunks are flagged active, those of other generations are deleted
    4. the record is marked settled

Searches ask for active chunks and check them against the records, so between 2 and 4 nobody sees a
page by halves. After a kill, `settle` repeats 3 and 4 for records that are not settled.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from rag.errors import StoreError
from rag.store.collections import DENSE, SPARSE
from rag.store.locks import LibraryLocks
from rag.store.records import (
    WITHOUT_TEXT,
    chunk_id,
    chunk_payload,
    content_hash,
    match,
    now,
    page_from,
    page_id,
    page_payload,
)
from rag.types import Chunk, Page, SparseVector

BATCH = 128
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class NewChunks:
    """A page's chunks with their vectors, row by row; `hashes` are those of the texts that were embedded."""

    chunks: Sequence[Chunk]
    dense: NDArray[np.float32]
    dense_ok: Sequence[bool]
    sparse: Sequence[SparseVector]
    hashes: Sequence[str]

    def __post_init__(self) -> None:
        sizes = {len(self.chunks), len(self.dense_ok), len(self.sparse), len(self.hashes), len(self.dense)}
        if len(sizes) != 1:
            raise ValueError("chunks, dense, dense_ok, sparse and hashes must have one row for each chunk")


def recipe(text: str, chunker: str, embedding_model: str) -> str:
    """What decides the chunks and vectors of a page: its text, the chunker, the embedding model."""
    parts = "\n".join((chunker, embedding_model, content_hash(text)))
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def generation_of(page: Page, new: NewChunks, chunker: str, embedding_model: str) -> str:
    """The recipe, then a hash of everything else the points hold: equal generations are equal points."""
    spans = [(chunk.index, chunk.start, chunk.end, chunk.section, *(chunk.parent or ())) for chunk in new.chunks]
    rest = json.dumps([page.url, page.title, page.site, page.language, spans, list(new.hashes)])
    return recipe(page.text, chunker, embedding_model) + hashlib.sha256(rest.encode()).hexdigest()[:16]


class Committer:
    """Writes pages of one library by the protocol above."""

    def __init__(self, client: QdrantClient, pages: str, chunks: str, locks: LibraryLocks) -> None:
        self._client = client
        self._pages = pages
        self._chunks = chunks
        self._locks = locks

    def commit(self, page: Page, new: NewChunks) -> Page:
        """Replace what is stored of `page`, whose `generation` is set; StoreError leaves the old in place."""
        with self._locks.pages([page.url_hash]):
            before = self.current(page.url_hash)
            moment = now()
            page = replace(
                page,
                chunks=len(new.chunks),
                characters=len(page.text),
                added_at=(before and before.added_at) or page.added_at or moment,
                updated_at=moment,
            )
            # Equal generations are equal points: writing them inactive would hide a page that is well.
            visible = before is not None and before.generation == page.generation
            for _ in range(_ATTEMPTS):
                stored = self._attempt(page, new, visible)
                if stored == page.chunks:
                    return page
            raise StoreError("commit_incomplete", url=page.url, expected=page.chunks, stored=stored)

    def _attempt(self, page: Page, new: NewChunks, visible: bool) -> int:
        """One run of the protocol; the number of chunks found at its end, or at the check before the commit.

        Another process over the same server may clear our chunks in between, hence the second count.
        """
        self._write_chunks(page, new, visible)
        stored = self._count(page)
        if stored != page.chunks:
            return stored
        with self._locks.switch:
            self._write_record(page)
            self.settle(page.url_hash, page.generation)
        return self._count(page)

    def current(self, url_hash: str) -> Page | None:
        found = self._client.retrieve(self._pages, [page_id(url_hash)], with_payload=WITHOUT_TEXT)
        return page_from(found[0].payload or {}) if found else None

    def settle(self, url_hash: str, generation: str | None) -> None:
        """Make the chunks agree with the record: only those of `generation` stay, active; None: none stay."""
        ours = match("metadata.url_hash", url_hash)
        if generation is None:
            self._client.delete(self._chunks, models.FilterSelector(filter=models.Filter(must=[ours])))
            return
        current = match("metadata.generation", generation)
        self._flag(models.Filter(must=[ours, current]), active=True)
        others = models.Filter(must=[ours], must_not=[current])
        self._client.delete(self._chunks, models.FilterSelector(filter=others))
        self._client.set_payload(self._pages, {"settled": True}, points=[page_id(url_hash)])

    def hide(self, only: models.Filter) -> None:
        """Flag chunks inactive, which marks them for the sweep until they are deleted."""
        self._flag(only, active=False)

    def _flag(self, only: models.Filter, *, active: bool) -> None:
        selector = models.FilterSelector(filter=only)
        self._client.set_payload(self._chunks, {"active": active}, points=selector, key="metadata")

    def _write_chunks(self, page: Page, new: NewChunks, active: bool) -> None:
        written = time.time()
        for start in range(0, len(new.chunks), BATCH):
            rows = range(start, min(start + BATCH, len(new.chunks)))
            points = [_chunk_point(page, new, row, active, written) for row in rows]
            self._client.upsert(self._chunks, points, wait=True)

    def _count(self, page: Page) -> int:
        which = [match("metadata.url_hash", page.url_hash), match("metadata.generation", page.generation)]
        return self._client.count(self._chunks, count_filter=models.Filter(must=which), exact=True).count

    def _write_record(self, page: Page) -> None:
        payload = page_payload(page, settled=False)
        point = models.PointStruct(id=page_id(page.url_hash), vector={}, payload=payload)
        self._client.upsert(self._pages, [point], wait=True)


def _chunk_point(page: Page, new: NewChunks, row: int, active: bool, written: float) -> models.PointStruct:
    chunk = new.chunks[row]
    vector: dict[str, Any] = {}
    if new.dense_ok[row]:
        if not np.isfinite(new.dense[row]).all():
            raise StoreError("vector_invalid", point=f"{page.url_hash}/{chunk.index}")
        vector[DENSE] = new.dense[row].tolist()
    if new.sparse[row].indices:
        given = new.sparse[row]
        vector[SPARSE] = models.SparseVector.model_construct(indices=given.indices, values=given.values)
    # Built bare: validating 384 numbers a point costs more than storing them.
    return models.PointStruct.model_construct(
        id=chunk_id(page.url_hash, page.generation, chunk.index),
        vector=vector,
        payload=chunk_payload(
            page, chunk, new.hashes[row], active=active, written=written, first_child=_first_child(new.chunks, row)
        ),
    )


def _first_child(chunks: Sequence[Chunk], row: int) -> int:
    """The index of the first chunk with the same parent as that of `row`; they are neighbours."""
    while row and chunks[row].parent is not None and chunks[row - 1].parent == chunks[row].parent:
        row -= 1
    return chunks[row].index
