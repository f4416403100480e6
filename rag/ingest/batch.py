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
from rag.ingest.pipeline import (
    IdentifiedSource,
    Ingestor,
    existing_result,
    failure,
    find_repeats,
    result,
    with_source_name,
)
from rag.ingest.sources import Limits, LoadedPage, ReadAhead, ReadResult, Source, delay_before
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
    identified = list(find_repeats(sources))
    todo: list[int] = []
    for position, row in enumerate(_find_results(ingestor, identified, force)):
        if row is not None:
            yield position, row
        else:
            todo.append(position)
    yield from _Batch(ingestor, [source for source, _, _ in identified], decision).run(todo)


def _find_results(ingestor: Ingestor, identified: Sequence[IdentifiedSource], force: bool) -> list[IngestResult | None]:
    """Return the result of each source that need not be read, None for the others. Takes one query."""
    rows = [row if source.broken is None else failure(source, source.broken) for source, _, row in identified]
    waiting = [key for (source, key, _), row in zip(identified, rows, strict=True) if row is None and not source.record]
    existing = {} if force else ingestor.library.resolve(list(filter(None, waiting)))
    return [
        row or _skip_stored(source, key, existing[key]) if key in existing else row
        for (source, key, _), row in zip(identified, rows, strict=True)
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
            log.exception("Could not store %d pages together; storing them one by one", len(requests))
            return [outcome for request in requests for outcome in self._store([request])]

    def _row(self, item: ReadResult[LoadedPage], outcome: IngestResult | Exception) -> IngestResult:
        source = self._sources[item.position]
        if isinstance(outcome, IngestResult):
            return with_source_name(outcome, source, item.began)
        if isinstance(outcome, RagError):
            log.info("%s: %s", source.name[:200], outcome, exc_info=outcome.__cause__)
            return failure(source, outcome, time.monotonic() - item.began)
        log.error("Could not import %s", source.name[:200], exc_info=outcome)
        return result(source, "", "failed", Notice("unexpected"), seconds=time.monotonic() - item.began)


def _ignore_stage(stage: Stage) -> None:
    """Ignore the progress."""
