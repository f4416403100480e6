"""How a page changes: all of it at once, whatever ends the process in between.

    1. the chunks of the new generation are written, inactive, and counted
    2. a text that is about to be replaced is written down as a version
    3. the page's record is written with the new generation: this one write is the commit
    4. the new chunks are flagged active, those of other generations are deleted
    5. the version is settled, then the record

Searches ask for active chunks and check them against the records, so between 3 and 5 nobody sees a
page by halves. After a kill, `settle` repeats 4 and 5 for what is not settled.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from threading import Lock, RLock
from typing import Any
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from rag.errors import StoreError
from rag.store.duplicates import Signature, sign
from rag.store.records import (
    DENSE,
    SPARSE,
    WITHOUT_TEXT,
    Stored,
    chunk_id,
    chunk_payload,
    claim_payload,
    content_hash,
    date_of,
    joined_aliases,
    match,
    now,
    page_from,
    page_id,
    page_point,
    state_payload,
    stored_from,
)
from rag.store.versions import Versions
from rag.types import Chunk, Page, SparseVector

BATCH = 128
_ATTEMPTS = 3
_STRIPES = 64


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
    rest = json.dumps([page.url, page.title, page.site, page.language, date_of(page), spans, list(new.hashes)])
    return recipe(page.text, chunker, embedding_model) + hashlib.sha256(rest.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class _Change:
    """What one commit writes: the page with its chunks, and what was there before."""

    page: Page
    new: NewChunks
    signature: Signature
    before: Stored | None
    claim: str = ""

    @property
    def left_out(self) -> bool:
        """A page stays out of answers through its changes, but for one that was gone and is back."""
        if self.before is None or not self.before.left_out:
            return False
        return not (self.before.page.status == "gone" and self.page.status == "active")

    @property
    def visible(self) -> bool:
        """Whether the same points are there already: writing them inactive would hide a page that is well."""
        if self.before is None or self.before.left_out:
            return False
        return self.before.page.generation == self.page.generation

    @property
    def makes_version(self) -> bool:
        return self.before is not None and self.before.page.version < self.page.version


class Committer:
    """Writes pages of one library by the protocol above."""

    def __init__(self, client: QdrantClient, pages: str, chunks: str, versions: Versions, locks: LibraryLocks) -> None:
        self.versions = versions
        self._client = client
        self._pages = pages
        self._chunks = chunks
        self._locks = locks

    def commit(self, page: Page, new: NewChunks, claim: str = "") -> Page:
        """Replace what is stored of `page`, whose `generation` is set; StoreError leaves the old in place."""
        with self._locks.pages([page.url_hash]):
            before = self.stored(page.url_hash)
            page = _succeeding(page, before.page if before else None, len(new.chunks))
            change = _Change(page, new, sign(page.text), before, claim)
            for _ in range(_ATTEMPTS):
                found = self._attempt(change)
                if found == page.chunks:
                    return page
            raise StoreError("commit_incomplete", url=page.url, expected=page.chunks, stored=found)

    def _attempt(self, change: _Change) -> int:
        """One run of the protocol; the number of chunks found at its end, or at the check before the commit.

        Another process over the same server may clear our chunks in between, hence the second count.
        """
        page = change.page
        self._write_chunks(page, change.new, change.visible)
        found = self._count(page)
        if found != page.chunks:
            return found
        if change.makes_version:
            self._keep_version(page)
        with self._locks.switch:
            self._write_record(change)
            self._settle_chunks(page, change.left_out)
            if change.makes_version:
                self.versions.settle(page.url_hash, page.version)
            self._mark_settled(page.url_hash)
        return self._count(page)

    def _keep_version(self, successor: Page) -> None:
        found = self._client.retrieve(self._pages, [page_id(successor.url_hash)], with_payload=True)
        before = page_from(found[0].payload or {}) if found else None
        if before is not None and before.version < successor.version:  # else an attempt before this one got that far
            self.versions.keep(before, successor.updated_at)

    def stored(self, url_hash: str) -> Stored | None:
        """The page's record, without its text."""
        found = self._client.retrieve(self._pages, [page_id(url_hash)], with_payload=WITHOUT_TEXT)
        return stored_from(found[0].payload or {}) if found else None

    def update_state(self, page: Page, claim: str | None = None) -> None:
        """Write what `page` says of its address, not of its text, into its record; nothing when it has none."""
        with self._locks.pages([page.url_hash]):
            before = self.stored(page.url_hash)
            if before is None:
                return
            said = {} if claim is None else claim_payload(claim)
            self._client.set_payload(self._pages, {**state_payload(page), **said}, points=[page_id(page.url_hash)])
            if before.left_out and before.page.status == "gone" and page.status == "active":
                self.leave_out(page.url_hash, False)

    def leave_out(self, url_hash: str, left_out: bool) -> None:
        """Keep the page's chunks out of every search, or let them in again; nothing for a page that is not there."""
        with self._locks.pages([url_hash]), self._locks.switch:
            if self.stored(url_hash) is None:
                return
            change = {"left_out": left_out, "settled": False}
            self._client.set_payload(self._pages, change, points=[page_id(url_hash)])
            self.settle(url_hash)

    def settle(self, url_hash: str) -> None:
        """Make chunks and versions agree with the page's record; without a record, none of them stay."""
        stored = self.stored(url_hash)
        if stored is None:
            self.versions.settle(url_hash, None)
            ours = models.Filter(must=[match("metadata.url_hash", url_hash)])
            self._client.delete(self._chunks, models.FilterSelector(filter=ours))
            return
        self._settle_chunks(stored.page, stored.left_out)
        self.versions.settle(url_hash, stored.page.version)
        self._mark_settled(url_hash)

    def _settle_chunks(self, page: Page, left_out: bool) -> None:
        """Only the chunks of the page's generation stay; they are active, or marked as left out on purpose."""
        ours, current = match("metadata.url_hash", page.url_hash), match("metadata.generation", page.generation)
        self._flag(models.Filter(must=[ours, current]), active=not left_out, left_out=left_out)
        others = models.Filter(must=[ours], must_not=[current])
        self._client.delete(self._chunks, models.FilterSelector(filter=others))

    def _mark_settled(self, url_hash: str) -> None:
        self._client.set_payload(self._pages, {"settled": True}, points=[page_id(url_hash)])

    def hide(self, only: models.Filter) -> None:
        """Flag chunks inactive, which marks them for the sweep until they are deleted."""
        self._flag(only, active=False, left_out=False)

    def _flag(self, only: models.Filter, *, active: bool, left_out: bool) -> None:
        flags = {"active": active, "left_out": left_out}
        self._client.set_payload(self._chunks, flags, points=models.FilterSelector(filter=only), key="metadata")

    def _write_chunks(self, page: Page, new: NewChunks, active: bool) -> None:
        written = time.time()
        for start in range(0, len(new.chunks), BATCH):
            rows = range(start, min(start + BATCH, len(new.chunks)))
            points = [_chunk_point(page, new, row, active, written) for row in rows]
            self._client.upsert(self._chunks, points, wait=True)

    def _count(self, page: Page) -> int:
        which = [match("metadata.url_hash", page.url_hash), match("metadata.generation", page.generation)]
        return self._client.count(self._chunks, count_filter=models.Filter(must=which), exact=True).count

    def _write_record(self, change: _Change) -> None:
        point = page_point(change.page, change.signature, left_out=change.left_out, settled=False, claim=change.claim)
        self._client.upsert(self._pages, [point], wait=True)


def _succeeding(page: Page, before: Page | None, chunks: int) -> Page:
    """The page as it is to be stored in the place of `before`: counted, dated, under all its addresses."""
    moment = now()
    aliases = joined_aliases((), page.aliases)
    page = replace(page, chunks=chunks, characters=len(page.text), updated_at=moment, aliases=aliases)
    if before is None:
        return replace(page, added_at=page.added_at or moment, version=1)
    return replace(
        page,
        added_at=before.added_at or page.added_at or moment,
        aliases=joined_aliases(before.aliases, page.aliases),
        version=before.version + (before.text_hash != page.text_hash),
    )


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


class Switch:
    """A lock that one thread may take again, and that counts in `changes` how often it was taken and given back."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._inside = 0
        self._failed = False
        self.changes = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._inside += 1
        self.changes += 1

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._failed = self._failed or error is not None
        self.changes += 1
        self._inside -= 1
        self._lock.release()

    def calm(self) -> int | None:
        """A number that stays the same until something changes; None while something does, or once that has failed."""
        return None if self._inside or self._failed else self.changes


class LibraryLocks:
    """`page` keeps two writers off one page; `switch` covers the instant in which a page changes over."""

    def __init__(self) -> None:
        self._stripes = [RLock() for _ in range(_STRIPES)]
        self.switch = Switch()

    @contextmanager
    def pages(self, url_hashes: Iterable[str]) -> Iterator[None]:
        """Hold the locks of these pages. Always in the same order, so that no two holders wait in a ring."""
        wanted = sorted({crc32(one.encode()) % _STRIPES for one in url_hashes})
        with ExitStack() as stack:
            for stripe in wanted:
                stack.enter_context(self._stripes[stripe])
            yield

    @contextmanager
    def everything(self) -> Iterator[None]:
        with ExitStack() as stack:
            for stripe in self._stripes:
                stack.enter_context(stripe)
            stack.enter_context(self.switch)
            yield


_registry: WeakKeyDictionary[QdrantClient, dict[str, LibraryLocks]] = WeakKeyDictionary()
_registering = Lock()


def library_locks(client: QdrantClient, library: str) -> LibraryLocks:
    with _registering:
        return _registry.setdefault(client, {}).setdefault(library, LibraryLocks())
