"""The steps of a job for each of its items: read it, then store it.

Files of the job are first unpacked into items, in batches.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import islice
from typing import Any

from rag.errors import IngestError, RagError, StoreError
from rag.ingest.discovery import SitePlan, Sites, Walk
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
from rag.ingest.sources import LoadedPage, RecordBounds, Source, sources_in, web_source
from rag.reading.parser import READING_VERSION
from rag.store.sql.database import Database
from rag.store.sql.job_table import ItemTable, Job, JobItem, NewItem
from rag.text import to_plain_line
from rag.types import IngestResult, Notice, Page
from rag.web.guard import printable
from rag.web.urls import FoundPage, split_url, url_hash

log = logging.getLogger(__name__)
OpenIngestor = Callable[[str], Ingestor]
OpenSites = Callable[[], Sites]

_BATCH_SIZE = 500
_SEPARATE = frozenset(["data", "broken"])


class Steps:
    """The steps of a job. `read` and `find` may run in many threads, `store_all` in one. All raise RagError."""

    def __init__(
        self,
        job: Job,
        ingestor: Ingestor,
        items: ItemTable,
        walk: Walk | None = None,
        files: FileUnpacker | None = None,
    ) -> None:
        """`walk` covers the site of a site job; `files` unpacks the files of the job."""
        self.job = job
        self._ingestor = ingestor
        self._items = items
        self._walk = walk
        self._files = files
        self._online = False
        self._unanswered: list[tuple[JobItem, LoadedPage]] = []

    def find(self, is_cancelled: Callable[[], bool] = lambda: False) -> int:
        """Add the job's first pages to it; return their number. Safe to repeat."""
        if self._files is not None:
            return self._files.run(is_cancelled)
        if self._walk is None:
            pages = [FoundPage(page.url) for page in self._pages_to_recheck()]
        else:
            pages = self._walk.begin(is_cancelled)
        self._items.append(self.job.id, map(_make_item, pages))
        return len(pages)

    def read(self, item: JobItem) -> LoadedPage | IngestResult:
        """Read an item's page and prepare it for storing; return a result instead if there is nothing to store.

        In a crawl, add the pages that it links to.
        """
        source = self._source(item)
        key = self._ingestor.key(source)
        known = self._ingestor.resolve(key)
        if known is not None and (row := self._skip_stored(item, source, known)) is not None:
            return row
        report = partial(self._items.set_stage, self.job.id, item.position)
        loaded = self._ingestor.read(
            source,
            report,
            known=known if known and known.url_hash == key and self._is_conditional(item, source) else None,
            links=self._wants_links(item),
        )
        if source.kind == "web" and (loaded.error is None or is_answer(loaded.error)):
            self._online = True
        if self._leads_away(item, loaded):
            return review_result(loaded, Notice("leads_away", {"target": printable(loaded.final_url)}))
        if self._walk is not None and loaded.links:
            # Before the page is stored, as a restart does not read stored pages again.
            further = self._walk.expand(item.url, item.depth, loaded.links)
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
                outcome = with_source_name(
                    self._recall(item, loaded.source, outcome), replace(loaded.source, name=item.source), began
                )
                if not online and outcome.reason == UNANSWERED:
                    self._unanswered.append((item, loaded))
            rows.append(outcome)
        if online:
            self._store_unanswered()
        return rows

    def _recall(self, item: JobItem, source: Source, outcome: IngestResult) -> IngestResult:
        """Return the outcome, or that of an earlier attempt which stored the page but did not record it."""
        if outcome.status != "unchanged" or item.attempts < 2:
            return outcome
        known = self._ingestor.resolve(outcome.url_hash)
        return (known and _find_earlier_result(item, source, known)) or outcome

    def _make_request(self, item: JobItem, loaded: LoadedPage, online: bool) -> StoreRequest:
        return StoreRequest(loaded, partial(self._items.set_stage, self.job.id, item.position), item.decision, online)

    def _store_unanswered(self) -> None:
        """Settle unanswered pages again now that something else answered, so that they count as failures."""
        while self._unanswered:
            item, loaded = self._unanswered.pop()
            try:
                current = self._items.item(self.job.id, item.position)
                if current is not None and current.result is not None and current.result.reason == UNANSWERED:
                    (row,) = self._ingestor.store_all([self._make_request(item, loaded, online=True)])
                    if isinstance(row, RagError):
                        raise row
                    row = with_source_name(row, replace(loaded.source, name=item.source), time.monotonic())
                    self._items.replace(self.job.id, item.position, row)
            except RagError as error:  # the page keeps its row, and so does the one that was just stored
                log.info("%s: %s", item.source[:200], error, exc_info=error.__cause__)

    def fail(self, item: JobItem, error: RagError, began: float) -> IngestResult:
        """Return the result of an item that could not be read or stored."""
        return failure(_make_source(item), error, time.monotonic() - began)

    def _source(self, item: JobItem) -> Source:
        payload = self._items.payload(self.job.id, item.position)
        if payload is None:
            raise StoreError("item_unknown")
        return from_payload(*payload)

    def _skip_stored(self, item: JobItem, source: Source, known: Page) -> IngestResult | None:
        """Return the result of a page that is already stored and need not be read; None if it must be."""
        if item.started_at:
            self._ingestor.remove_twins(known)
            return _find_earlier_result(item, source, known)
        is_forced = self.job.options.get("force") or self.job.kind == "recheck"
        if is_forced or item.decision or source.kind != "web" or self._wants_links(item):
            return None
        return existing_result(source, self._ingestor.key(source), known)

    def _is_conditional(self, item: JobItem, source: Source) -> bool:
        """Return whether to request the item's stored page only if it has changed.

        A page that a user explicitly refetches is always fetched, as it may have to be split differently.
        """
        return self.job.kind != "pages" and source.kind == "web" and not item.decision

    def _leads_away(self, item: JobItem, loaded: LoadedPage) -> bool:
        """Return whether redirects ended outside the part of the site that the user chose."""
        if self._walk is None or loaded.known or item.decision or not loaded.final_url:
            return False
        return not self._walk.contains(loaded.final_url, item.depth)

    def _wants_links(self, item: JobItem) -> bool:
        return self._walk is not None and self._walk.can_follow(item.depth)

    def _pages_to_recheck(self) -> list[Page]:
        hashes = self.job.options.get("url_hashes")
        site = str(self.job.options.get("site", ""))
        pages = [page for page in self._ingestor.library.pages() if page.source == "web"]
        if hashes is not None:
            selection = frozenset(hashes)
            return [page for page in pages if page.url_hash in selection]
        return [page for page in pages if not site or site in (page.site, split_url(page.url).hostname)]


class StepsFactory:
    """A factory of steps. `open_ingestor`, `open_sites` and `bounds` are as in `Jobs`."""

    def __init__(
        self, database: Database, open_ingestor: OpenIngestor, open_sites: OpenSites | None, bounds: RecordBounds
    ) -> None:
        self._database = database
        self._open_ingestor = open_ingestor
        self._open_sites = open_sites
        self._bounds = bounds

    def __call__(self, job: Job) -> Steps:
        """Return the steps of a job. May take long; raises RagError."""
        items, ingestor = self._database.items, self._open_ingestor(job.library)
        chunker, size = str(job.options.get("chunker") or ""), float(job.options.get("chunk_size") or 0)
        if chunker or size:
            ingestor = ingestor.with_chunker(chunker, size)
        if job.kind not in ("sitemap", "crawl", "feed"):
            files = FileUnpacker(job.id, self._database, self._bounds) if job.kind == "pages" else None
            return Steps(job, ingestor, items, files=files)
        if self._open_sites is None:
            raise IngestError("site_unavailable")
        known = (FoundPage(item.url, item.depth) for item in items.items(job.id))
        walk = self._open_sites().walk(SitePlan(**job.options["plan"]), known)
        return Steps(job, ingestor, items, walk)


def _make_item(page: FoundPage, parent: int | None = None) -> NewItem:
    return new_item(web_source(page.url), url_hash(page.url), depth=page.depth, parent=parent)


def make_cancellation(item: JobItem) -> IngestResult:
    """Return the result of an item whose job was cancelled."""
    return result(_make_source(item), item.url_hash, "skipped", Notice("cancelled"))


def make_failure(item: JobItem, notice: Notice) -> IngestResult:
    """Return the result of an item that fails for a reason unrelated to it."""
    return result(_make_source(item), item.url_hash, "failed", notice)


def make_skip(item: JobItem) -> IngestResult:
    """Return the result of an item that the user skipped."""
    return result(_make_source(item), item.url_hash, "skipped", Notice("left_alone"))


def _make_source(item: JobItem) -> Source:
    return Source(item.source, item.url, "web")


def _find_earlier_result(item: JobItem, source: Source, known: Page) -> IngestResult | None:
    """Return the result that an earlier, interrupted process did not record; None if it had not stored the item."""
    if known.updated_at < item.started_at or known.url_hash != (item.url_hash or known.url_hash):
        return None
    is_new = known.added_at >= item.started_at
    notice = Notice("page_added" if is_new else "page_updated", {"title": known.title, "chunks": known.chunks})
    return result(source, known.url_hash, "added" if is_new else "updated", notice, chunks=known.chunks)


class FileUnpacker:
    """An unpacker of a job's files into items. `run` resumes after an interruption, by the number of existing items."""

    def __init__(self, job_id: str, database: Database, bounds: RecordBounds) -> None:
        self._job_id = job_id
        self._items = database.items
        self._files = database.files
        self._bounds = bounds

    def run(self, is_cancelled: Callable[[], bool]) -> int:
        """Add an item for each source in the job's files, then delete the files; return how many were added."""
        count = 0
        items = islice(new_items(self._sources()), self._items.count(self._job_id), None)
        while batch := list(islice(items, _BATCH_SIZE)):
            if is_cancelled() or not self._items.append(self._job_id, batch):  # the job was cancelled or deleted
                return count
            count += len(batch)
        self._files.clear(self._job_id)
        return count

    def _sources(self) -> Iterator[Source]:
        for name, data in self._files.files(self._job_id):
            yield from sources_in(name, data, bounds=self._bounds)


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
    broken, inline = values.pop("broken", None), values.pop("data", None)
    if inline is not None:  # as stored by the first version
        data = base64.b64decode(inline)
    error = IngestError(broken["code"], **broken["params"]) if broken else None
    return Source(**values, data=data, broken=error)


def new_item(source: Source, url_hash: str = "", *, depth: int = 0, parent: int | None = None) -> NewItem:
    return NewItem(to_plain_line(source.name), source.url, url_hash, to_payload(source), source.data, depth, parent)
