"""Many sources: what is known is left alone, pages are read, cut and encoded in parallel, and stored one by one."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial

from rag.errors import RagError
from rag.ingest.duplicates import MOST, Settling
from rag.ingest.loader import Read
from rag.ingest.pipeline import Ingestor, named
from rag.ingest.readahead import Limits, ReadAhead, Taken
from rag.ingest.results import failure, result, stored_result
from rag.ingest.retry_policy import delay_before
from rag.ingest.sources import Source, unique_sources
from rag.store.values import patience, patiently
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

    A source given twice, or known to the library, is not fetched again; `force` reads known ones anew.
    `decision` is what a person wants with pages that would be held back or are duplicates.
    """
    sources = list(unique_sources(sources))
    todo: list[tuple[int, str]] = []
    for position, key, settled in _dedupe(ingestor, sources, force):
        if settled is not None:
            yield position, settled
        else:
            todo.append((position, key))
    yield from _Batch(ingestor, sources, decision).run([position for position, _ in todo])


def _dedupe(ingestor: Ingestor, sources: Sequence[Source], force: bool) -> list[tuple[int, str, IngestResult | None]]:
    """Each source's key, and its result where nothing need be read: first among themselves, then one query."""
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
    waiting = [key for position, key, settled in rows if settled is None and not sources[position].record]
    known = {} if force else ingestor.library.resolve(waiting)
    return [
        (position, key, settled or _known(sources[position], key, known[key]) if key in known else settled)
        for position, key, settled in rows
    ]


def _known(source: Source, key: str, page: Page) -> IngestResult | None:
    if source.kind != "web":
        return None  # its text is at hand: whether it changed costs no fetch
    return stored_result(source, key, page)


class _Batch:
    def __init__(self, ingestor: Ingestor, sources: Sequence[Source], decision: Decision) -> None:
        self._ingestor = ingestor
        self._sources = sources
        self._decision: Decision = decision

    def run(self, positions: Sequence[int]) -> Iterator[Entry]:
        """Read and prepare ahead in threads, store here, in the order in which pages are ready."""
        ahead: ReadAhead[Read] = ReadAhead(_LIMITS)
        waiting = deque(positions)
        left = len(positions)
        try:
            while left:
                while waiting and ahead.has_room():
                    position = waiting.popleft()
                    ahead.begin("", position, "", patiently(partial(self._read, self._sources[position])))
                if (taken := ahead.take()) is not None:
                    some = [taken, *ahead.ready(MOST - 1)]
                    left -= len(some)
                    yield from zip((one.position for one in some), self._finish(some), strict=True)
        finally:
            ahead.close()

    def _read(self, source: Source) -> Read:
        """Read a source, again where its failure may pass, and make ready what is to be stored of it."""
        return self._ingestor.prepare(self._fetched(source), _ignore_stage, decision=self._decision)

    def _fetched(self, source: Source) -> Read:
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

    def _finish(self, taken: Sequence[Taken[Read]]) -> list[IngestResult]:
        """What became of what was read, in its order."""
        reads = [Settling(one.value, _ignore_stage, self._decision) for one in taken if one.value is not None]
        outcomes = iter(self._settled(reads))
        return [self._row(one, one.error or next(outcomes)) for one in taken]

    def _settled(self, reads: Sequence[Settling]) -> list[IngestResult | Exception]:
        try:
            with patience(math.inf):
                return [*self._ingestor.settle_all(reads)]
        except Exception as error:
            if len(reads) == 1:
                return [error]
            log.exception("%d pages could not be taken in together", len(reads))
            return [found for one in reads for found in self._settled([one])]

    def _row(self, taken: Taken[Read], outcome: IngestResult | Exception) -> IngestResult:
        source = self._sources[taken.position]
        if isinstance(outcome, IngestResult):
            return named(outcome, source, taken.began)
        if isinstance(outcome, RagError):
            log.info("%s: %s", source.name[:200], outcome, exc_info=outcome.__cause__)
            return failure(source, outcome, time.monotonic() - taken.began)
        log.error("%s could not be taken in", source.name[:200], exc_info=outcome)
        return result(source, "", "failed", Notice("unexpected"), seconds=time.monotonic() - taken.began)


def _ignore_stage(stage: Stage) -> None:
    """Nobody looks on."""
