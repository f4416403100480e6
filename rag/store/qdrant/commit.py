"""Atomic changes of pages, safe with concurrent writers and crashes, and their earlier texts.

A version is written before the commit that replaces its text, under an id derived from page and number, and stays
unsettled until the commit succeeds. So a version whose number is not below the current text's is the leftover of a
failed commit: it is hidden, overwritten by the next commit, and deleted by the sweep.

A page's record names the *generation* of its current chunks, under a revision `rev` that only changes by
compare-and-set:

    1. read the record: revision r
    2. write the chunks of an attempt, inactive, under a generation unique to the attempt, with `base_rev` r
    3. save the text that is about to be replaced as a version
    4. replace the record if its revision is still r: this one write is the commit
    5. read it back: the process whose token is in it has won; others delete their chunks and retry
    6. delete the chunks of the replaced generation, activate the new ones, settle the version

Cleanup needs neither a clock nor an owner. An attempt can only be committed at its `base_rev`, and each revision is
replaced once. So a process that read revision R and generation G from a record, however long ago, may delete the page's
chunks with `base_rev` < R outside G. A removed page leaves a tombstone, so that its revision never decreases. To delete
chunks of an attempt that could still be committed, first the revision is increased, which prevents the commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast
from uuid import uuid4

import numpy as np
from qdrant_client import QdrantClient, models

from rag.errors import LibraryMovedError, StoreError
from rag.store.qdrant.client import library_locks
from rag.store.qdrant.records import (
    DENSE,
    LIBRARIES,
    ORDER,
    SPARSE,
    WITHOUT_TEXT,
    LibraryInfo,
    PageRecord,
    Revision,
    chunk_id,
    chunk_payload,
    chunks_collection,
    claim_payload,
    library_id,
    match,
    match_any,
    match_ids,
    page_from,
    page_id,
    page_point,
    pages_collection,
    record_from,
    revision_payload,
    state_payload,
    tombstone,
    version_id,
    versions_collection,
    walk,
)
from rag.store.values import CommitResult, Draft, NewChunks, batches, merge_aliases, now, sign
from rag.types import Chunk, Page, PageVersion

MAX_VERSIONS = 20
"""Maximum number of versions of a page, including the current one."""


class Versions:
    """The versions of one library's pages. Callers must lock the pages."""

    def __init__(self, client: QdrantClient, collection: str) -> None:
        self.collection = collection
        self._client = client

    def save(self, page: Page, moment: str) -> None:
        """Save `page` with its text, which a commit at `moment` (ISO 8601) is about to replace."""
        payload = {
            "url_hash": page.url_hash,
            "number": page.version,
            "title": page.title,
            "text": page.text,
            "text_hash": page.text_hash,
            "since": self._text_since(page),
            "until": moment,
            "written": time.time(),
            "settled": False,
        }
        point = models.PointStruct(id=version_id(page.url_hash, page.version), vector={}, payload=payload)
        self._client.upsert(self.collection, [point], wait=True)

    def settle_new(self, replaced: Sequence[tuple[str, int]]) -> None:
        """Settle versions (page, number) after their commits; delete the oldest above MAX_VERSIONS."""
        if not replaced:
            return
        condition = models.Filter(must=[match_ids(version_id(*version) for version in replaced)])
        self._client.set_payload(self.collection, {"settled": True}, points=condition)
        surplus: list[Any] = [version_id(key, n + 1 - MAX_VERSIONS) for key, n in replaced if n >= MAX_VERSIONS]
        if surplus:
            self._client.delete(self.collection, surplus)

    def settle(self, url_hash: str, current: int | None) -> None:
        """Delete invalid versions of a page whose current text has number `current`; all if it is None."""
        if current is None:
            self.delete([url_hash])
            return
        scope = models.Filter(must=[match("url_hash", url_hash)])
        rows = [record.payload or {} for record in walk(self._client, self.collection, scope, payload=["number"])]
        numbers = [int(row["number"]) for row in rows]
        surplus: list[Any] = [version_id(url_hash, n) for n in numbers if not current - MAX_VERSIONS < n < current]
        if surplus:
            self._client.delete(self.collection, surplus)
        self._client.set_payload(self.collection, {"settled": True}, points=models.FilterSelector(filter=scope))

    def delete(self, url_hashes: Sequence[str]) -> None:
        """Delete all versions of these pages."""
        scope = models.Filter(must=[match_any("url_hash", list(url_hashes))])
        self._client.delete(self.collection, models.FilterSelector(filter=scope))

    def unsettled_pages(self, before: float | None) -> set[str]:
        """Return hashes of pages with versions of an interrupted commit. `before` is as in `health.sweep`."""
        scope = models.Filter(must=[match("settled", False)])
        payloads = [
            r.payload or {} for r in walk(self._client, self.collection, scope, payload=["url_hash", "written"])
        ]
        return {data["url_hash"] for data in payloads if before is None or data["written"] <= before}

    def list_versions(self, page: Page) -> list[PageVersion]:
        """Return the versions of `page`, which must include its text, oldest first; the last is the current one."""
        scope = models.Filter(must=[match("url_hash", page.url_hash)])
        rows = [record.payload or {} for record in walk(self._client, self.collection, scope)]
        earlier = sorted((row for row in rows if row["number"] < page.version), key=lambda row: int(row["number"]))
        since = earlier[-1]["until"] if earlier else page.added_at
        current = PageVersion(page.url_hash, page.version, page.title, page.text, page.text_hash, since)
        return [*map(_version, earlier), current]

    def _text_since(self, page: Page) -> str:
        """Return when the page got its current text."""
        if page.version == 1:
            return page.added_at
        ids = [version_id(page.url_hash, page.version - 1)]
        points = self._client.retrieve(self.collection, ids, with_payload=["until"])
        return str((points[0].payload or {})["until"]) if points else page.added_at


def _version(payload: Mapping[str, Any]) -> PageVersion:
    names = ("url_hash", "number", "title", "text", "text_hash", "since", "until")
    return PageVersion(**{name: payload[name] for name in names})


BATCH = 128  # points per call
_ID_BATCH = 1000  # ids per call
_TRIES = 20
_SENDS = 5


@dataclass(frozen=True, slots=True)
class _Swap:
    """A compare-and-set of a record that was read as `before`; it succeeded if the record contains `token`."""

    page: Page
    before: PageRecord | None
    token: str
    operation: Any

    @property
    def url_hash(self) -> str:
        return self.page.url_hash


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One attempt to commit a draft: the page to store, and the record it replaces."""

    draft: Draft
    page: Page
    before: PageRecord | None
    token: str

    @property
    def excluded(self) -> bool:
        """True if the page is excluded and stays so; a page that was gone and is back is included again."""
        if self.before is None or not self.before.excluded:
            return False
        return not (self.before.page.status == "gone" and self.page.status == "active")

    @property
    def makes_version(self) -> bool:
        return self.before is not None and not self.before.removed and self.before.page.version < self.page.version

    def ids(self) -> list[str]:
        return [chunk_id(self.page.url_hash, self.page.generation, chunk.index) for chunk in self.draft.new.chunks]

    def swap(self) -> _Swap:
        revision = _next_revision(self.before, self.token)
        settled = bool(self.page.chunks)  # else `settle` follows
        point = page_point(
            self.page, sign(self.page.text), revision, excluded=self.excluded, settled=settled, claim=self.draft.claim
        )
        return _Swap(self.page, self.before, self.token, _replace(point, self.before))


class Committer:
    """A writer of one library's pages that implements the protocol of this module."""

    def __init__(self, client: QdrantClient, info: LibraryInfo) -> None:
        self.client = client
        self.pages = pages_collection(info.name)
        self.chunks = chunks_collection(info.name, info.embedding_model)
        self.versions = Versions(client, versions_collection(info.name))
        self._library = info.name
        self._locks = library_locks(client, info.name)

    # Committing

    def commit(self, drafts: Sequence[Draft]) -> list[CommitResult]:
        """Replace these pages, each atomically; on StoreError each page is either the old or the new one.

        No page may occur twice. Makes a few calls in total, and as many again per conflict with another process.
        """
        results: dict[str, CommitResult] = {}
        remaining = {draft.page.url_hash: draft for draft in drafts}
        with self._locks.lock_pages(remaining):
            self._check_current()
            for number in range(_TRIES):
                attempts = self._attempts(remaining, results, is_first=not number)
                if attempts:
                    self._stage(attempts)
                    results |= {
                        attempt.page.url_hash: CommitResult(attempt.page) for attempt in self._exchange(attempts)
                    }
                remaining = {key: draft for key, draft in remaining.items() if key not in results}
                if not remaining:
                    return [results[draft.page.url_hash] for draft in drafts]
        raise StoreError("commit_incomplete", url=next(iter(remaining.values())).page.url)

    def _attempts(
        self, drafts: Mapping[str, Draft], results: dict[str, CommitResult], *, is_first: bool
    ) -> list[_Attempt]:
        """Make an attempt for each draft; after the first try, skip those that another process made redundant."""
        attempts = []
        records = self.records(drafts)
        for url_hash, draft in drafts.items():
            before = records.get(url_hash)
            if before and not is_first and _supersedes(before, draft):
                results[url_hash] = CommitResult(before.page, written=False)
                continue
            token = uuid4().hex[:16]
            page = replace(_successor(draft, before), generation=draft.recipe + token)
            attempts.append(_Attempt(draft, page, before, token))
        return attempts

    def _stage(self, attempts: Sequence[_Attempt]) -> None:
        """Write chunks and versions, to which nothing refers yet."""
        written = time.time()
        points = []
        for attempt in attempts:
            new, base_rev = attempt.draft.new, max(_rev(attempt.before), 0)
            points += [_chunk_point(attempt.page, new, row, base_rev, written) for row in range(len(new.chunks))]
        for batch in batches(points, BATCH):
            self.client.upsert(self.chunks, batch, wait=True)
        successors = {attempt.page.url_hash: attempt.page for attempt in attempts if attempt.makes_version}
        if successors:
            ids = [page_id(url_hash) for url_hash in successors]
            for record in self.client.retrieve(self.pages, ids, with_payload=True):
                if record_from(record.payload or {}).removed:
                    continue
                before = page_from(record.payload or {})
                self.versions.save(before, successors[before.url_hash].updated_at)

    def _exchange(self, attempts: Sequence[_Attempt]) -> list[_Attempt]:
        """Commit, and return the attempts that won; delete the chunks of the others."""
        with self._locks.commit_lock:
            hashes = self._swap([attempt.swap() for attempt in attempts])
            winners = [attempt for attempt in attempts if attempt.page.url_hash in hashes]
            losers = [attempt for attempt in attempts if attempt.page.url_hash not in hashes]
            self._delete_chunks([*map(_replaced_ids, winners), *(attempt.ids() for attempt in losers)])
            for excluded in (False, True):
                self._flag([i for attempt in winners if attempt.excluded == excluded for i in attempt.ids()], excluded)
            self.versions.settle_new(
                [(attempt.page.url_hash, attempt.page.version - 1) for attempt in winners if attempt.makes_version]
            )
            for attempt in winners:
                if not attempt.page.chunks:
                    self.settle(attempt.page.url_hash)
        return winners

    def _swap(self, swaps: Sequence[_Swap]) -> set[str]:
        """Send compare-and-sets until the outcome of each is known; return the hashes of pages where they succeeded.

        A write may continue although its response was lost, so undecided ones are sent again unchanged.
        """
        winners: set[str] = set()
        for _ in range(_SENDS):
            self.client.batch_update_points(self.pages, [swap.operation for swap in swaps], ordering=ORDER)
            stored = self.records([swap.url_hash for swap in swaps])
            winners |= {swap.url_hash for swap in swaps if swap.token in _tokens(stored.get(swap.url_hash))}
            swaps = [
                swap
                for swap in swaps
                if swap.url_hash not in winners and _rev(stored.get(swap.url_hash)) == _rev(swap.before)
            ]
            if not swaps:
                return winners
        raise StoreError("commit_incomplete", url=swaps[0].page.url)

    def _delete_chunks(self, ids: Sequence[Sequence[str]]) -> None:
        dead: list[Any] = list(chain.from_iterable(ids))
        for batch in batches(dead, _ID_BATCH):
            self.client.delete(self.chunks, batch)

    def _flag(self, ids: Sequence[str], excluded: bool) -> None:
        """Set the flags of new chunks, by a filter, because another process may have deleted some already."""
        for batch in batches(ids, _ID_BATCH):
            condition = models.Filter(must=[match_ids(batch)])
            self.client.set_payload(self.chunks, search_flags(excluded), points=condition, key="metadata")

    # Changes that do not affect the text

    def records(self, url_hashes: Sequence[str] | Mapping[str, Any]) -> dict[str, PageRecord]:
        """Return the records of these pages by hash, without their texts; includes tombstones."""
        ids = [page_id(url_hash) for url_hash in url_hashes]
        points = self.client.retrieve(self.pages, ids, with_payload=WITHOUT_TEXT) if ids else []
        stored = (record_from(record.payload or {}) for record in points)
        return {record.page.url_hash: record for record in stored}

    def update_state(self, page: Page, claim: str | None = None) -> None:
        """Update the fields of `state_payload` in the page's record; do nothing if the page is not stored."""
        with self._locks.lock_pages([page.url_hash]):
            before = self.records([page.url_hash]).get(page.url_hash)
            if before is None or before.removed:
                return
            claims = {} if claim is None else claim_payload(claim)
            condition = models.Filter(must=[match_ids([page_id(page.url_hash)])], must_not=[match("removed", True)])
            with self._locks.record_lock:
                self.client.set_payload(self.pages, {**state_payload(page), **claims}, points=condition, ordering=ORDER)
            if before.excluded and before.page.status == "gone" and page.status == "active":
                self.set_excluded([page.url_hash], False)

    def set_excluded(self, url_hashes: Sequence[str], excluded: bool) -> None:
        """Exclude the chunks of these pages from every search, or include them again; ignores missing pages."""

        def change(before: PageRecord, token: str) -> Any:
            revision = revision_payload(_next_revision(before, token))
            return _amend(before, {"left_out": excluded, "settled": False, **revision})

        self._change(url_hashes, change)

    def remove(self, url_hashes: Sequence[str]) -> int:
        """Remove pages with all their chunks and versions; return how many existed."""

        def change(before: PageRecord, token: str) -> Any:
            return _replace(tombstone(before.page.url_hash, _next_revision(before, token)), before)

        return self._change(url_hashes, change)

    def _change(self, url_hashes: Sequence[str], change: Callable[[PageRecord, str], Any]) -> int:
        """Change the records of existing pages despite concurrent writers, and clean up; return how many."""
        count = 0
        remaining = list(dict.fromkeys(url_hashes))
        with self._locks.lock_pages(remaining), self._locks.commit_lock:
            self._check_current()
            for _ in range(_TRIES):
                present = [record for record in self.records(remaining).values() if not record.removed]
                token = uuid4().hex[:16]
                swaps = [_Swap(record.page, record, token, change(record, token)) for record in present]
                winners = self._swap(swaps) if swaps else set()
                self._clear_up(list(self.records(list(winners)).values()))
                count += len(winners)
                remaining = [swap.url_hash for swap in swaps if swap.url_hash not in winners]
                if not remaining:
                    return count
        raise StoreError("commit_incomplete", url=swaps[0].page.url)

    def _check_current(self) -> None:
        """Raise LibraryMovedError if the library now uses another set of chunks."""
        points = self.client.retrieve(LIBRARIES, [library_id(self._library)], with_payload=["model"])
        model = (points[0].payload or {}).get("model") if points else None
        if model and chunks_collection(self._library, model) != self.chunks:
            raise LibraryMovedError("library_moved", library=self._library)

    # Cleanup

    def settle(self, url_hash: str) -> None:
        """Make chunks and versions match the page's record, and prevent pending attempts from committing."""
        self._fence(url_hash)
        stored = self.records([url_hash]).get(url_hash)
        if stored is not None:
            self.versions.settle(url_hash, None if stored.removed else stored.page.version)
            self._clear_up([stored])

    def mark_incomplete(self, url_hash: str) -> bool:
        """Record that the page has no chunks if some are missing; return whether it did."""
        before = self.records([url_hash]).get(url_hash)
        if before is None or before.removed:
            return False
        current = [match("metadata.url_hash", url_hash), match("metadata.generation", before.page.generation)]
        count = self.client.count(self.chunks, count_filter=models.Filter(must=current), exact=True).count
        if count >= before.page.chunks:
            return False
        token = uuid4().hex[:16]
        changes: dict[str, Any] = {"generation": "", "chunks": 0, "settled": False}
        changes |= revision_payload(_next_revision(before, token))
        if not self._swap([_Swap(before.page, before, token, _amend(before, changes))]):
            return False
        self._clear_up(list(self.records([url_hash]).values()))
        return True

    def reconcile(self, ids: Sequence[Any]) -> int:
        """Write one replica's copy of these records to every replica; return the number of records.

        The new revision comes from the clock and exceeds that of every replica, so no running commit can succeed.
        """
        points = self.client.retrieve(self.pages, ids, with_payload=True, with_vectors=True) if ids else []
        for record in points:
            rev = max(time.time_ns() // 1_000_000, (record.payload or {}).get("rev", 0) + 1)
            older = models.FieldCondition(key="rev", range=models.Range(lt=rev))
            point: Any = models.PointStruct(
                id=record.id, vector=cast(Any, record.vector or {}), payload={**(record.payload or {}), "rev": rev}
            )
            self.client.upsert(self.pages, [point], update_filter=models.Filter(must=[older]), ordering=ORDER)
            self.settle(str((record.payload or {})["url_hash"]))
        return len(points)

    def _fence(self, url_hash: str) -> None:
        """Increase the revision despite concurrent writers, so that no earlier attempt can be committed."""
        before = self.records([url_hash]).get(url_hash)
        revision = Revision(_next_rev(before))
        fence = _amend(before, {"rev": revision.rev}) if before else _replace(tombstone(url_hash, revision), None)
        self.client.batch_update_points(self.pages, [fence], ordering=ORDER)

    def _clear_up(self, records: Sequence[PageRecord]) -> None:
        """Flag the chunks of each record's generation, and delete obsolete ones."""
        if not records:
            return
        operations = [operation for stored in records for operation in _cleanup_operations(stored)]
        self.client.batch_update_points(self.chunks, operations)
        if removed := [stored.page.url_hash for stored in records if stored.removed]:
            self.versions.delete(removed)
        settled = [_amend(stored, {"settled": True}) for stored in records]
        self.client.batch_update_points(self.pages, settled, ordering=ORDER)


def _supersedes(stored: PageRecord, draft: Draft) -> bool:
    """Return whether the stored page has the draft's recipe or was fetched later."""
    if stored.removed:
        return False
    draft_time = draft.page.checked_at or draft.page.added_at
    is_later = bool(draft_time) and (stored.page.checked_at or stored.page.added_at) > draft_time
    return is_later or stored.page.generation.startswith(draft.recipe)


def _replace(point: models.PointStruct, before: PageRecord | None) -> models.UpsertOperation:
    """Write the whole record, unless it has changed since it was read as `before`."""
    if before is None:
        upsert = models.PointsList(points=[point], update_mode=models.UpdateMode.INSERT_ONLY)
    else:
        condition = models.Filter(must=[match("rev", before.rev)])
        upsert = models.PointsList(points=[point], update_filter=condition, update_mode=models.UpdateMode.UPDATE_ONLY)
    return models.UpsertOperation(upsert=upsert)


def _amend(before: PageRecord, payload: dict[str, Any]) -> models.SetPayloadOperation:
    """Write a few fields of the record, unless it has changed since it was read as `before`."""
    condition = models.Filter(must=[match_ids([page_id(before.page.url_hash)]), match("rev", before.rev)])
    return models.SetPayloadOperation(set_payload=models.SetPayload(payload=payload, filter=condition))


def search_flags(excluded: bool) -> dict[str, bool]:
    """Return the fields of a chunk that decide whether searches find it."""
    return {"active": not excluded, "left_out": excluded}


def _cleanup_operations(stored: PageRecord) -> list[Any]:
    """Return the cleanup operations on the chunks of a page whose record was read as `stored`."""
    of_page = match("metadata.url_hash", stored.page.url_hash)
    of_generation = match("metadata.generation", stored.page.generation)
    before = models.FieldCondition(key="metadata.base_rev", range=models.Range(lt=stored.rev))
    obsolete = models.Filter(must=[of_page, before], must_not=[of_generation])
    operations: list[Any] = [models.DeleteOperation(delete=models.FilterSelector(filter=obsolete))]
    if not stored.removed:
        condition = models.Filter(must=[of_page, of_generation])
        change = models.SetPayload(payload=search_flags(stored.excluded), filter=condition, key="metadata")
        operations.append(models.SetPayloadOperation(set_payload=change))
    return operations


def _rev(stored: PageRecord | None) -> int:
    return stored.rev if stored else -1


def _tokens(stored: PageRecord | None) -> Sequence[str]:
    return stored.recent_tokens if stored else ()


def _next_rev(before: PageRecord | None) -> int:
    """Return the next revision. The first comes from the clock, so that it increases even if a record was lost."""
    return before.rev + 1 if before else time.time_ns() // 1_000_000


def _next_revision(before: PageRecord | None, token: str) -> Revision:
    """Return the next revision with the tokens of the last changes: a winner finds its own even if replaced since."""
    return Revision(_next_rev(before), (*_tokens(before), token)[-8:])


def _replaced_ids(attempt: _Attempt) -> list[str]:
    if attempt.before is None:
        return []
    before = attempt.before.page
    return [chunk_id(before.url_hash, before.generation, index) for index in range(before.chunks)]


def _successor(draft: Draft, stored: PageRecord | None) -> Page:
    """Return the page that replaces `stored`, with counts, dates and merged aliases."""
    moment, page = now(), draft.page
    before = None if stored is None or stored.removed else stored.page
    return replace(
        page,
        chunks=len(draft.new.chunks),
        characters=len(page.text),
        updated_at=moment,
        added_at=(before.added_at if before else "") or page.added_at or moment,
        aliases=merge_aliases(before.aliases if before else (), page.aliases),
        version=before.version + (before.text_hash != page.text_hash) if before else 1,
    )


def _chunk_point(page: Page, new: NewChunks, row: int, base_rev: int, written: float) -> models.PointStruct:
    chunk = new.chunks[row]
    vector: dict[str, Any] = {}
    if new.dense_ok[row]:
        if not np.isfinite(new.dense[row]).all():
            raise StoreError("vector_invalid", point=f"{page.url_hash}/{chunk.index}")
        vector[DENSE] = new.dense[row].tolist()
    if new.sparse[row].indices:
        sparse = new.sparse[row]
        vector[SPARSE] = models.SparseVector.model_construct(indices=sparse.indices, values=sparse.values)
    first = _first_child(new.chunks, row)
    # Unvalidated: checking 384 numbers per point takes longer than storing them.
    return models.PointStruct.model_construct(
        id=chunk_id(page.url_hash, page.generation, chunk.index),
        vector=vector,
        payload=chunk_payload(
            page,
            chunk,
            new.hashes[row],
            active=False,
            written=written,
            first_child=first,
            base_rev=base_rev,
            sentences=new.sentences[row] if new.sentences else "",
        ),
    )


def _first_child(chunks: Sequence[Chunk], row: int) -> int:
    """Return the index of the first chunk with the same parent as that of `row`; they are adjacent."""
    while row and chunks[row].parent is not None and chunks[row - 1].parent == chunks[row].parent:
        row -= 1
    return chunks[row].index
