"""The steps of a job for each of its items: read it, then store it.

Files of the job are first unpacked into items, in batches.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from itertools import islice
from typing import Any

from rag.errors import IngestError, RagError, StoreError
from rag.ingest.discovery import SitePlan, Walk
from rag.ingest.duplicates import StoreRequest
from rag.ingest.pipeline import (
    UNANSWERED,
    Ingestor,
    existing_result,
    failure,
    find_repeats,
    is_answer,
    result,
    review_result,
    with_source_name,
)
from rag.ingest.sources import BOUNDS, LoadedPage, RecordBounds, Source, file_sources, web_source
from rag.reading.parser import READING_VERSION
from rag.store.sql.database import Database
from rag.store.sql.job_table import Job, JobItem, NewItem
from rag.text import to_plain_line
from rag.types import IngestResult, IngestStatus, Notice, Page
from rag.web.guard import printable
from rag.web.urls import FoundPage, split_url, url_hash

log = logging.getLogger(__name__)
OpenIngestor = Callable[[str], Ingestor]
OpenWalk = Callable[[SitePlan, Iterable[FoundPage]], Walk]

_BATCH_SIZE = 500
_SEPARATE = frozenset(["data", "broken"])


class Steps:
    """The steps of a job. `read` and `find` may run in many threads, `store_all` in one. All raise RagError."""

    def __init__(
        self,
        job: Job,
        ingestor: Ingestor,
        database: Database,
        bounds: RecordBounds = BOUNDS,
        walk: Walk | None = None,
    ) -> None:
        """`walk` covers the site of a site job."""
        self.job = job
        self._ingestor = ingestor
        self._database = database
        self._items = database.items
        self._bounds = bounds
        self._walk = walk
        self._online = False
        self._unanswered: list[tuple[JobItem, LoadedPage]] = []

    def find(self, is_cancelled: Callable[[], bool] = lambda: False) -> int:
        """Add the job's first pages to it; return their number. Safe to repeat."""
        if self.job.kind == "pages":
            return unpack_files(self.job.id, self._database, self._bounds, is_cancelled)
        if self._walk:
            pages = self._walk.begin(is_cancelled)
        else:
            hashes, site = self.job.options.get("url_hashes"), str(self.job.options.get("site", ""))
            stored = [page for page in self._ingestor.library.pages() if page.source == "web"]
            if hashes is not None:
                stored = [page for page in stored if page.url_hash in frozenset(hashes)]
            elif site:
                stored = [page for page in stored if site in (page.site, split_url(page.url).hostname)]
            pages = [FoundPage(page.url) for page in stored]
        self._items.append(self.job.id, map(_make_item, pages))
        return len(pages)

    def read(self, item: JobItem) -> LoadedPage | IngestResult:
        """Read an item's page and prepare it for storing; return a result instead if there is nothing to store.

        In a crawl, add the pages that it links to.
        """
        payload = self._items.payload(self.job.id, item.position)
        if payload is None:
            raise StoreError("item_unknown")
        source = from_payload(*payload)
        key = self._ingestor.key(source)
        known = self._ingestor.resolve(key)
        if known is not None and (row := self._skip_stored(item, source, known)) is not None:
            return row
        report = partial(self._items.set_stage, self.job.id, item.position)
        # A page that a user explicitly refetches is always fetched, as it may have to be split differently.
        is_conditional = self.job.kind != "pages" and source.kind == "web" and not item.decision
        if known is not None and (known.url_hash != key or not is_conditional):
            known = None
        loaded = self._ingestor.read(source, report, known=known, links=self._wants_links(item))
        if source.kind == "web" and (loaded.error is None or is_answer(loaded.error)):
            self._online = True
        is_within = self._walk is None or self._walk.contains(loaded.final_url, item.depth)
        if loaded.final_url and not is_within and not loaded.known and not item.decision:  # redirects left the plan
            return review_result(loaded, Notice("leads_away", {"target": printable(loaded.final_url)}))
        if self._walk is not None and loaded.links:
            # Before the page is stored, as a restart does not read stored pages again.
            further = self._walk.expand(FoundPage(item.url, item.depth), loaded.links)
            self._items.append(self.job.id, (_make_item(page, item.position) for page in further))
        return self._ingestor.prepare(loaded, report, decision=item.decision)

    def store_all(self, loaded_pages: Sequence[tuple[JobItem, LoadedPage, float]]) -> list[IngestResult | RagError]:
        """Store pages, each with its item and the time.monotonic() when reading began; return rows or errors."""
        online = self._online
        outcomes = self._ingestor.store_all(
            [self._make_request(item, loaded, online) for item, loaded, _ in loaded_pages]
        )
        rows: list[IngestResult | RagError] = []
        for (item, loaded, began), outcome in zip(loaded_pages, outcomes, strict=True):
            if not isinstance(outcome, RagError):
                if outcome.status == "unchanged" and item.attempts > 1:
                    # An earlier attempt may have stored the page without recording its result.
                    known = self._ingestor.resolve(outcome.url_hash)
                    outcome = (known and _find_earlier_result(item, loaded.source, known)) or outcome
                outcome = with_source_name(outcome, item.source, began)
                if not online and outcome.notice.code == UNANSWERED:
                    self._unanswered.append((item, loaded))
            rows.append(outcome)
        if online:
            self._store_unanswered()
        return rows

    def _make_request(self, item: JobItem, loaded: LoadedPage, online: bool) -> StoreRequest:
        return StoreRequest(loaded, partial(self._items.set_stage, self.job.id, item.position), item.decision, online)

    def _store_unanswered(self) -> None:
        """Settle unanswered pages again now that something else answered, so that they count as failures."""
        while self._unanswered:
            item, loaded = self._unanswered.pop()
            try:
                current = self._items.item(self.job.id, item.position)
                if current is not None and current.result is not None and current.result.notice.code == UNANSWERED:
                    (row,) = self._ingestor.store_all([self._make_request(item, loaded, online=True)])
                    if isinstance(row, RagError):
                        raise row
                    row = with_source_name(row, item.source, time.monotonic())
                    self._items.replace(self.job.id, item.position, row)
            except RagError as error:  # the page keeps its row, and so does the one that was just stored
                log.info("%s: %s", item.source[:200], error, exc_info=error.__cause__)

    def fail(self, item: JobItem, error: RagError, began: float) -> IngestResult:
        """Return the result of an item that could not be read or stored."""
        return failure(_make_source(item), error, time.monotonic() - began)

    def _skip_stored(self, item: JobItem, source: Source, known: Page) -> IngestResult | None:
        """Return the result of a page that is already stored and need not be read; None if it must be."""
        if item.started_at:
            self._ingestor.remove_twins(known)
            return _find_earlier_result(item, source, known)
        is_forced = self.job.options.get("force") or self.job.kind == "recheck"
        if is_forced or item.decision or source.kind != "web" or self._wants_links(item):
            return None
        return existing_result(source, self._ingestor.key(source), known)

    def _wants_links(self, item: JobItem) -> bool:
        return self._walk is not None and self._walk.can_follow(item.depth)


def open_steps(
    database: Database, open_ingestor: OpenIngestor, open_walk: OpenWalk, bounds: RecordBounds, job: Job
) -> Steps:
    """Return the steps of a job; the arguments are those of `Jobs`. May take long; raises RagError."""
    ingestor = open_ingestor(job.library)
    chunker, size = str(job.options.get("chunker") or ""), float(job.options.get("chunk_size") or 0)
    if chunker or size:
        ingestor = ingestor.with_chunker(chunker, size)
    walk = None
    if job.kind in ("sitemap", "crawl", "feed"):
        known = (FoundPage(item.url, item.depth) for item in database.items.items(job.id))
        walk = open_walk(SitePlan(**job.options["plan"]), known)
    return Steps(job, ingestor, database, bounds, walk)


def _make_item(page: FoundPage, parent: int | None = None) -> NewItem:
    return new_item(web_source(page.url), url_hash(page.url), depth=page.depth, parent=parent)


def make_result(item: JobItem, status: IngestStatus, notice: Notice) -> IngestResult:
    """Return the result of an item for a reason that its page doesn't give."""
    return result(_make_source(item), item.url_hash, status, notice)


def make_cancellation(item: JobItem) -> IngestResult:
    """Return the result of an item whose job was cancelled."""
    return make_result(item, "skipped", Notice("cancelled"))


def _make_source(item: JobItem) -> Source:
    return Source(item.source, item.url, "web")


def _find_earlier_result(item: JobItem, source: Source, known: Page) -> IngestResult | None:
    """Return the result that an earlier, interrupted process did not record; None if it had not stored the item."""
    if known.updated_at < item.started_at or known.url_hash != (item.url_hash or known.url_hash):
        return None
    is_new = known.added_at >= item.started_at
    notice = Notice("page_added" if is_new else "page_updated", {"title": known.title, "chunks": known.chunks})
    return result(source, known.url_hash, "added" if is_new else "updated", notice, chunks=known.chunks)


def unpack_files(job_id: str, database: Database, bounds: RecordBounds, is_cancelled: Callable[[], bool]) -> int:
    """Add an item for each source in the job's files, then delete the files; return how many were added.

    Resumes after an interruption, by the number of existing items.
    """
    sources = (
        source for name, data in database.files.files(job_id) for source in file_sources(name, data, bounds=bounds)
    )
    items = islice(new_items(sources), database.items.count(job_id), None)
    count = 0
    while batch := list(islice(items, _BATCH_SIZE)):
        if is_cancelled() or not database.items.append(job_id, batch):  # the job was cancelled or deleted
            return count
        count += len(batch)
    database.files.clear(job_id)
    return count


def new_items(sources: Iterable[Source]) -> Iterator[NewItem]:
    """Yield an item for each source; one that repeats an earlier URL already has its result."""
    for source, key, row in find_repeats(sources):
        yield NewItem(row.source, source.url, result=row) if row is not None else new_item(source, key)


def to_payload(source: Source) -> dict[str, Any]:
    """Return a source as JSON values, without its `data`, which is stored separately."""
    payload = {field.name: getattr(source, field.name) for field in fields(source) if field.name not in _SEPARATE}
    payload["record"] = dict(source.record)
    payload["reading"] = READING_VERSION
    if source.broken is not None:
        payload["broken"] = {"code": source.broken.code, "params": dict(source.broken.notice.params)}
    return payload


def from_payload(payload: Mapping[str, Any], data: bytes | None) -> Source:
    values = {name: value for name, value in payload.items() if name != "reading"}
    broken = values.pop("broken", None)
    error = IngestError(broken["code"], **broken["params"]) if broken else None
    return Source(**values, data=data, broken=error)


def new_item(source: Source, url_hash: str = "", *, depth: int = 0, parent: int | None = None) -> NewItem:
    return NewItem(to_plain_line(source.name), source.url, url_hash, to_payload(source), source.data, depth, parent)
