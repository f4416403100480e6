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
from rag.ingest.pipeline import Ingestor, existing_result, failure, find_repeats, result, with_source_name
from rag.ingest.sources import Limits, LoadedPage, ReadAhead, ReadResult, Source, delay_before
from rag.store.values import wait_limit, with_unlimited_wait
from rag.types import Decision, IngestResult, Notice

log = logging.getLogger(__name__)

_LIMITS = Limits(readers=32, ahead=64)


def ingest_all(
    ingestor: Ingestor,
    sources: Sequence[Source],
    *,
    force: bool = False,
    decision: Decision = "",
) -> Iterator[tuple[int, IngestResult]]:
    """Yield (position, result) for each source as it is done.

    Repeated sources are fetched once, and pages in the library only if `force` is set. `decision` is the user's choice
    for pages that would need review or are duplicates.
    """
    identified = list(find_repeats(sources))
    # Other texts are at hand, so checking them for changes needs no fetch.
    web = [key for source, key, row in identified if row is None and key and source.kind == "web"]
    existing = {} if force else ingestor.library.resolve(web)
    todo: dict[int, Source] = {}
    for position, (source, key, row) in enumerate(identified):
        if source.broken is not None:
            row = failure(source, source.broken)
        elif row is None and source.kind == "web" and key in existing:
            row = existing_result(source, key, existing[key])
        if row is None:
            todo[position] = source
        else:
            yield position, row
    yield from _import_sources(ingestor, todo, decision)


def _import_sources(
    ingestor: Ingestor, sources: dict[int, Source], decision: Decision
) -> Iterator[tuple[int, IngestResult]]:
    """Read and prepare pages in other threads; store them in this one as they become ready."""
    ahead: ReadAhead[LoadedPage] = ReadAhead(_LIMITS)
    waiting = deque(sources)
    remaining = len(sources)
    try:
        while remaining:
            while waiting and ahead.has_capacity():
                position = waiting.popleft()
                read = with_unlimited_wait(partial(_read, ingestor, sources[position], decision))
                ahead.begin("", position, "", read)
            batch = ahead.take(MAX_GROUP)
            remaining -= len(batch)
            requests = [StoreRequest(item.value, decision=decision) for item in batch if item.value is not None]
            outcomes = iter(_store(ingestor, requests))
            for item in batch:
                yield item.position, _make_row(sources[item.position], item, item.error or next(outcomes))
    finally:
        ahead.close()


def _read(ingestor: Ingestor, source: Source, decision: Decision) -> LoadedPage:
    """Read a source, retrying after temporary failures, and prepare it for storing."""
    tries = 0
    while True:
        try:
            loaded = ingestor.read(source)
        except RagError as error:
            tries += 1
            delay = delay_before(error, tries)
            if delay is None:
                raise
            time.sleep(delay)
        else:
            return ingestor.prepare(loaded, decision=decision)


def _store(ingestor: Ingestor, requests: Sequence[StoreRequest]) -> list[IngestResult | Exception]:
    try:
        with wait_limit(math.inf):
            return [*ingestor.store_all(requests)]
    except Exception as error:
        if len(requests) == 1:
            return [error]
        log.exception("Could not store %d pages together; storing them one by one", len(requests))
        return [outcome for request in requests for outcome in _store(ingestor, [request])]


def _make_row(source: Source, item: ReadResult[LoadedPage], outcome: IngestResult | Exception) -> IngestResult:
    if isinstance(outcome, IngestResult):
        return with_source_name(outcome, source.name, item.began)
    if isinstance(outcome, RagError):
        log.info("%s: %s", source.name[:200], outcome, exc_info=outcome.__cause__)
        return failure(source, outcome, time.monotonic() - item.began)
    log.error("Could not import %s", source.name[:200], exc_info=outcome)
    return result(source, "", "failed", Notice("unexpected"), seconds=time.monotonic() - item.began)
