"""Batch import: stored pages are skipped, others are read, split and encoded in parallel, and stored in turn."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial

from rag.errors import RagError
from rag.ingest.duplicates import MAX_GROUP, StoreRequest
from rag.ingest.loader import LoadedPage
from rag.ingest.pipeline import Ingestor, with_source_name
from rag.ingest.readahead import Limits, ReadAhead, ReadResult, delay_before
from rag.ingest.results import existing_result, failure, result
from rag.ingest.sources import Source, unique_sources
from rag.store.values import wait_limit, with_unlimited_wait
from rag.types import Decision, IngestResult, Notice, Page, Stage

log = logging.getLogger(__name__)

_LIMITS = Limits(readers=32, ahead=64)

Entry = tuple[int, IngestResult]


def ingest_all(
    ingestor: Ingestor,
    sources: Sequence[Source],
    *,
    force: bool = False,
    decision: Decision = "",
) -> Iterator[Entry]:
    """Yield (position, result) for each source as it is done.

    Repeated sources are fetched once, and pages in the library only if `force` is set. `decision` is the user's choice
    for pages that would need review or are duplicates.
    """
    sources = list(unique_sources(sources))
    todo: list[tuple[int, str]] = []
    for position, key, row in _dedupe(ingestor, sources, force):
        if row is not None:
            yield position, row
        else:
            todo.append((position, key))
    yield from _Batch(ingestor, sources, decision).run([position for position, _ in todo])


def _dedupe(ingestor: Ingestor, sources: Sequence[Source], force: bool) -> list[tuple[int, str, IngestResult | None]]:
    """Return each source's position and key, and its result if it need not be read. Takes one query."""
    keys: dict[str, int] = {}
    rows: list[tuple[int, str, IngestResult | None]] = []
    for position, source in enumerate(sources):
        try:
            key = ingestor.key(source)
        except RagError as error:
            rows.append((position, "", failure(source, error)))
            continue
        twin = keys.setdefault(key, position)
        if twin == position:
            rows.append((position, key, None))
        else:
            notice = Notice("same_address", {"url": source.url, "first": sources[twin].name})
            rows.append((position, key, result(source, key, "duplicate", notice)))
    waiting = [key for position, key, row in rows if row is None and not sources[position].record]
    existing = {} if force else ingestor.library.resolve(waiting)
    return [
        (position, key, row or _skip_stored(sources[position], key, existing[key]) if key in existing else row)
        for position, key, row in rows
    ]


def _skip_stored(source: Source, key: str, page: Page) -> IngestResult | None:
    if source.kind != "web":
        return None  # its text is at hand, so checking for changes needs no fetch
    return existing_result(source, key, page)


class _Batch:
    def __init__(self, ingestor: Ingestor, sources: Sequence[Source], decision: Decision) -> None:
        self._ingestor = ingestor
        self._sources = sources
        self._decision: Decision = decision

    def run(self, positions: Sequence[int]) -> Iterator[Entry]:
        """Read and prepare pages in other threads; store them in this one as they become ready."""
        ahead: ReadAhead[LoadedPage] = ReadAhead(_LIMITS)
        waiting = deque(positions)
        remaining = len(positions)
        try:
            while remaining:
                while waiting and ahead.has_capacity():
                    position = waiting.popleft()
                    ahead.begin("", position, "", with_unlimited_wait(partial(self._read, self._sources[position])))
                if (first := ahead.take()) is not None:
                    batch = [first, *ahead.take_ready(MAX_GROUP - 1)]
                    remaining -= len(batch)
                    yield from zip((item.position for item in batch), self._finish(batch), strict=True)
        finally:
            ahead.close()

    def _read(self, source: Source) -> LoadedPage:
        """Read a source, retrying after temporary failures, and prepare it for storing."""
        return self._ingestor.prepare(self._fetch(source), _ignore_stage, decision=self._decision)

    def _fetch(self, source: Source) -> LoadedPage:
        tries = 0
        while True:
            try:
                return self._ingestor.read(source, _ignore_stage)
            except RagError as error:
                tries += 1
                delay = delay_before(error, tries)
                if delay is None:
                    raise
                time.sleep(delay)

    def _finish(self, results: Sequence[ReadResult[LoadedPage]]) -> list[IngestResult]:
        """Store pages; return the result of each item, in order."""
        requests = [
            StoreRequest(item.value, _ignore_stage, self._decision) for item in results if item.value is not None
        ]
        outcomes = iter(self._store(requests))
        return [self._row(item, item.error or next(outcomes)) for item in results]

    def _store(self, requests: Sequence[StoreRequest]) -> list[IngestResult | Exception]:
        try:
            with wait_limit(math.inf):
                return [*self._ingestor.store_all(requests)]
        except Exception as error:
            if len(requests) == 1:
                return [error]
            log.exception("%d pages could not be taken in together", len(requests))
            return [outcome for request in requests for outcome in self._store([request])]

    def _row(self, item: ReadResult[LoadedPage], outcome: IngestResult | Exception) -> IngestResult:
        source = self._sources[item.position]
        if isinstance(outcome, IngestResult):
            return with_source_name(outcome, source, item.began)
        if isinstance(outcome, RagError):
            log.info("%s: %s", source.name[:200], outcome, exc_info=outcome.__cause__)
            return failure(source, outcome, time.monotonic() - item.began)
        log.error("%s could not be taken in", source.name[:200], exc_info=outcome)
        return result(source, "", "failed", Notice("unexpected"), seconds=time.monotonic() - item.began)


def _ignore_stage(stage: Stage) -> None:
    """Ignore the progress."""
