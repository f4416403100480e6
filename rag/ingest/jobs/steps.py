"""What is done with each item of one job: read it, and take it in.

The files that were handed in with it become its items first, a few at a time.
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
from rag.ingest.discovery import FoundPage, SitePlan
from rag.ingest.duplicates import Settling
from rag.ingest.jobs.sites import Sites, Walk
from rag.ingest.loader import Read
from rag.ingest.pipeline import Ingestor, named
from rag.ingest.results import UNHEARD, failure, held_result, is_answer, result, stored_result
from rag.ingest.sources import RecordBounds, Source, sources_in, unique_sources, web_source
from rag.reading.parser import READING
from rag.store.sql.database import Database
from rag.store.sql.job_table import ItemTable, Job, JobItem, NewItem
from rag.text import plain
from rag.types import IngestResult, Notice, Page
from rag.web.guard import shown
from rag.web.url_key import split_url, url_hash

log = logging.getLogger(__name__)
OpenIngestor = Callable[[str], Ingestor]
OpenSites = Callable[[], Sites]

_AT_ONCE = 500
_APART = frozenset(["data", "broken"])


class Steps:
    """`read` and `find` may run in many threads at once; `settle_all` is for one at a time. All raise RagError."""

    def __init__(
        self,
        job: Job,
        ingestor: Ingestor,
        items: ItemTable,
        walk: Walk | None = None,
        files: Unpacking | None = None,
    ) -> None:
        """`walk` goes through the job's site, if it has one; `files` are those that it came with."""
        self.job = job
        self._ingestor = ingestor
        self._items = items
        self._walk = walk
        self._files = files
        self._online = False
        self._unheard: list[tuple[JobItem, Read]] = []

    def find(self, stopped: Callable[[], bool] = lambda: False) -> int:
        """Add the pages that the job begins with to it; returns how many there are. Twice is as good as once."""
        if self._files is not None:
            return self._files.run(stopped)
        if self._walk is None:
            found = [FoundPage(page.url) for page in self._pages_to_recheck()]
        else:
            found = self._walk.begin(stopped)
        self._items.append(self.job.id, map(_found_item, found))
        return len(found)

    def read(self, item: JobItem) -> Read | IngestResult:
        """The page of an item, ready to be stored, or its result where nothing need be read.

        What the page links to is added to a crawl.
        """
        source = self._source(item)
        key = self._ingestor.key(source)
        known = self._ingestor.resolve(key)
        if known is not None and (early := self._early(item, source, known)) is not None:
            return early
        report = partial(self._items.move, self.job.id, item.position)
        read = self._ingestor.read(
            source,
            report,
            known=known if known and known.url_hash == key and self._looks_again(item, source) else None,
            links=self._wants_links(item),
        )
        if source.kind == "web" and (read.error is None or is_answer(read.error)):
            self._online = True
        if self._leads_away(item, read):
            return held_result(read, Notice("leads_away", {"target": shown(read.final_url)}))
        if self._walk is not None and read.links:
            # Before the page is taken in: once it is, a restart has no reason to read it again.
            further = self._walk.expand(item.url, item.depth, read.links)
            self._items.append(self.job.id, (_found_item(one, item.position) for one in further))
        return self._ingestor.prepare(read, report, decision=item.decision)

    def settle_all(self, given: Sequence[tuple[JobItem, Read, float]]) -> list[IngestResult | RagError]:
        """Take in what was read for items, each since a moment of time.monotonic(); rows, or what came instead."""
        online = self._online
        outcomes = self._ingestor.settle_all([self._settling(item, read, online) for item, read, _ in given])
        rows: list[IngestResult | RagError] = []
        for (item, read, began), outcome in zip(given, outcomes, strict=True):
            if not isinstance(outcome, RagError):
                outcome = named(self._own(item, read.source, outcome), replace(read.source, name=item.source), began)
                if not online and outcome.reason == UNHEARD:
                    self._unheard.append((item, read))
            rows.append(outcome)
        if online:
            self._count_unheard()
        return rows

    def _own(self, item: JobItem, source: Source, outcome: IngestResult) -> IngestResult:
        """The outcome, or that of an earlier attempt at the item whose process lost the job before it could say so."""
        if outcome.status != "unchanged" or item.attempts < 2:
            return outcome
        known = self._ingestor.resolve(outcome.url_hash)
        return (known and _taken_in_before(item, source, known)) or outcome

    def _settling(self, item: JobItem, read: Read, online: bool) -> Settling:
        return Settling(read, partial(self._items.move, self.job.id, item.position), item.decision, online)

    def _count_unheard(self) -> None:
        """Something answered: that pages before it did not is held against them after all."""
        while self._unheard:
            item, read = self._unheard.pop()
            try:
                present = self._items.item(self.job.id, item.position)
                if present is not None and present.result is not None and present.result.reason == UNHEARD:
                    (row,) = self._ingestor.settle_all([self._settling(item, read, online=True)])
                    if isinstance(row, RagError):
                        raise row
                    row = named(row, replace(read.source, name=item.source), time.monotonic())
                    self._items.replace(self.job.id, item.position, row)
            except RagError as error:  # the page keeps its row, and the one that was just taken in its own
                log.info("%s: %s", item.source[:200], error, exc_info=error.__cause__)

    def failed(self, item: JobItem, error: RagError, began: float) -> IngestResult:
        """The result of an item that could not be read or taken in."""
        return failure(_named(item), error, time.monotonic() - began)

    def _source(self, item: JobItem) -> Source:
        packed = self._items.payload(self.job.id, item.position)
        if packed is None:
            raise StoreError("item_unknown")
        return unpack(*packed)

    def _early(self, item: JobItem, source: Source, known: Page) -> IngestResult | None:
        """The result of a page that is in the library already and is not to be looked at again."""
        if item.started_at:
            self._ingestor.let_go_of_twins(known)
            return _taken_in_before(item, source, known)
        fresh = self.job.options.get("force") or self.job.kind == "recheck"
        if fresh or item.decision or source.kind != "web" or self._wants_links(item):
            return None
        return stored_result(source, self._ingestor.key(source), known)

    def _looks_again(self, item: JobItem, source: Source) -> bool:
        """Whether the item's page, if it is stored, is asked for only if it has changed.

        A page that a person names and wants fetched anew is fetched: it may be to be cut otherwise.
        """
        return self.job.kind != "pages" and source.kind == "web" and not item.decision

    def _leads_away(self, item: JobItem, read: Read) -> bool:
        """Whether redirects ended outside of the site, or the part of it, that the person chose."""
        if self._walk is None or read.known or item.decision or not read.final_url:
            return False
        return not self._walk.holds(read.final_url, item.depth)

    def _wants_links(self, item: JobItem) -> bool:
        return self._walk is not None and self._walk.follows(item.depth)

    def _pages_to_recheck(self) -> list[Page]:
        chosen = self.job.options.get("url_hashes")
        site = str(self.job.options.get("site", ""))
        pages = [page for page in self._ingestor.library.pages() if page.source == "web"]
        if chosen is not None:
            wanted = frozenset(chosen)
            return [page for page in pages if page.url_hash in wanted]
        return [page for page in pages if not site or site in (page.site, split_url(page.url).hostname)]


class StepsOf:
    """Makes the steps of a job. `open_ingestor` and `open_sites` are as in `Jobs`; `bounds` those of JSONL files."""

    def __init__(
        self, database: Database, open_ingestor: OpenIngestor, open_sites: OpenSites | None, bounds: RecordBounds
    ) -> None:
        self._database = database
        self._open_ingestor = open_ingestor
        self._open_sites = open_sites
        self._bounds = bounds

    def __call__(self, job: Job) -> Steps:
        """May take long; raises RagError."""
        items, ingestor = self._database.items, self._open_ingestor(job.library)
        chunker, size = str(job.options.get("chunker") or ""), float(job.options.get("chunk_size") or 0)
        if chunker or size:
            ingestor = ingestor.with_chunker(chunker, size)
        if job.kind not in ("sitemap", "crawl", "feed"):
            files = Unpacking(job.id, self._database, self._bounds) if job.kind == "pages" else None
            return Steps(job, ingestor, items, files=files)
        if self._open_sites is None:
            raise IngestError("site_unavailable")
        known = (FoundPage(item.url, item.depth) for item in items.items(job.id))
        walk = self._open_sites().walk(SitePlan.from_options(job.options["plan"]), known)
        return Steps(job, ingestor, items, walk)


def _found_item(page: FoundPage, parent: int | None = None) -> NewItem:
    return new_item(web_source(page.url), url_hash(page.url), depth=page.depth, parent=parent)


def cancelled(item: JobItem) -> IngestResult:
    """The result of an item that a person did not wait for."""
    return result(_named(item), item.url_hash, "skipped", Notice("cancelled"))


def told(item: JobItem, notice: Notice) -> IngestResult:
    """The result of an item that fails for a reason that has nothing to do with it."""
    return result(_named(item), item.url_hash, "failed", notice)


def left_out(item: JobItem) -> IngestResult:
    """The result of an item that a person does not want."""
    return result(_named(item), item.url_hash, "skipped", Notice("left_alone"))


def _named(item: JobItem) -> Source:
    return Source(item.source, item.url, "web")


def _taken_in_before(item: JobItem, source: Source, known: Page) -> IngestResult | None:
    """What a process that was killed or lost its lease had done with the item, if it had done it."""
    if known.updated_at < item.started_at or known.url_hash != (item.url_hash or known.url_hash):
        return None
    is_new = known.added_at >= item.started_at
    notice = Notice("page_added" if is_new else "page_updated", {"title": known.title, "chunks": known.chunks})
    return result(source, known.url_hash, "added" if is_new else "updated", notice, chunks=known.chunks)


class Unpacking:
    """`run` may be cut off at any point and called again: the items that there are tell how far it was."""

    def __init__(self, job_id: str, database: Database, bounds: RecordBounds) -> None:
        self._job_id = job_id
        self._items = database.items
        self._files = database.files
        self._bounds = bounds

    def run(self, stopped: Callable[[], bool]) -> int:
        """Add an item for each source in the job's files, then forget the files; returns how many were added."""
        added = 0
        items = islice(new_items(self._sources()), self._items.count(self._job_id), None)
        while batch := list(islice(items, _AT_ONCE)):
            if stopped() or not self._items.append(self._job_id, batch):  # the job was cancelled or removed
                return added
            added += len(batch)
        self._files.clear(self._job_id)
        return added

    def _sources(self) -> Iterator[Source]:
        for name, data in self._files.files(self._job_id):
            yield from sources_in(name, data, bounds=self._bounds)


def new_items(sources: Iterable[Source]) -> Iterator[NewItem]:
    """An item for each source; one that repeats the address of another has its result at once."""
    first: dict[str, str] = {}
    for source in unique_sources(sources):
        key = _key(source)
        if key not in first:
            if key:
                first[key] = source.name
            yield new_item(source, key)
            continue
        row = result(source, key, "duplicate", Notice("same_address", {"url": source.url, "first": first[key]}))
        yield NewItem(row.source, source.url, result=row)


def _key(source: Source) -> str:
    """The source's url_hash; empty for one that has none, which its turn will tell."""
    if source.broken is not None or not split_url(source.url).scheme:
        return ""
    try:
        return url_hash(source.url)
    except RagError:
        return ""


def pack(source: Source) -> dict[str, Any]:
    """Everything of a source that JSON can carry; its `data` is stored beside it."""
    packed = {field.name: getattr(source, field.name) for field in fields(source) if field.name not in _APART}
    packed["record"] = dict(source.record)
    packed["reading"] = READING
    if source.broken is not None:
        packed["broken"] = {"code": source.broken.code, "params": dict(source.broken.notice.params)}
    return packed


def unpack(packed: Mapping[str, Any], data: bytes | None) -> Source:
    kept = {name: value for name, value in packed.items() if name != "reading"}
    broken, inline = kept.pop("broken", None), kept.pop("data", None)
    if inline is not None:  # as files of the first version hold it
        data = base64.b64decode(inline)
    error = IngestError(broken["code"], **broken["params"]) if broken else None
    return Source(**kept, data=data, broken=error)


def new_item(source: Source, url_hash: str = "", *, depth: int = 0, parent: int | None = None) -> NewItem:
    return NewItem(plain(source.name), source.url, url_hash, pack(source), source.data, depth, parent)
