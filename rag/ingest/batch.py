"""Many sources: what is known is left alone, pages are read, cut and encoded in parallel, and stored one by one."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial

from rag.errors import RagError
from rag.ingest.outcomes import failure, here_already, result
from rag.ingest.pipeline import Ingestor, take_in
from rag.ingest.readahead import Limits, ReadAhead, Taken
from rag.ingest.retry_policy import delay_before
from rag.ingest.source_reading import Read
from rag.ingest.sources import Source, apart
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
    sources = list(apart(sources))
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
    return here_already(source, key, page)


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
                    ahead.begin("", position, "", partial(self._read, self._sources[position]))
                if (taken := ahead.take()) is not None:
                    left -= 1
                    yield taken.position, self._finish(taken)
        finally:
            ahead.close()

    def _read(self, source: Source) -> Read:
        """Read a source, again where its failure may pass, and make ready what is to be stored of it."""
        return self._ingestor.prepare(self._fetched(source), _untold, decision=self._decision)

    def _fetched(self, source: Source) -> Read:
        tries = 0
        while True:
            try:
                return self._ingestor.read(source, _untold)
            except RagError as error:
                tries += 1
                delay = delay_before(error, tries)
                if delay is None:
                    raise
                time.sleep(delay)

    def _finish(self, taken: Taken[Read]) -> IngestResult:
        source = self._sources[taken.position]
        try:
            return take_in(self._ingestor, source, taken.result(), taken.began, _untold, self._decision)
        except RagError as error:
            log.info("%s: %s", source.name[:200], error, exc_info=error.__cause__)
            return failure(source, error, time.monotonic() - taken.began)
        except Exception:  # as in a job: a fault of ours costs one source, not those that follow
            log.exception("%s could not be taken in", source.name[:200])
            return result(source, "", "failed", Notice("unexpected"), seconds=time.monotonic() - taken.began)


def _untold(stage: Stage) -> None:
    """Nobody looks on."""
