"""Many sources: what is known is left alone, pages are read in parallel and stored one after another."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial

from rag.errors import RagError
from rag.ingest.pipeline import Ingestor, failure, result, take_in
from rag.ingest.sources import Source
from rag.types import IngestResult, Notice, Page, Stage

log = logging.getLogger(__name__)

READERS = 4
_AHEAD = 8  # pages that are read before their turn to be stored

OnItem = Callable[[int, Stage], object]
Entry = tuple[int, IngestResult]


def ingest_all(
    ingestor: Ingestor,
    sources: Sequence[Source],
    *,
    force: bool = False,
    on_stage: OnItem = lambda position, stage: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Entry]:
    """Yield (position, result) for each source as it is done; sources that follow a stop are skipped.

    A source given twice, or known to the library, is not fetched again; `force` reads known ones anew.
    """
    todo: list[tuple[int, str]] = []
    for position, key, settled in _dedupe(ingestor, sources, force):
        if settled is not None:
            yield position, settled
        else:
            todo.append((position, key))
    yield from _Batch(ingestor, sources, on_stage, stopped).run([position for position, _ in todo])


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
    known = {} if force else ingestor.library.known(waiting)
    return [
        (position, key, settled or _known(sources[position], known[key]) if key in known else settled)
        for position, key, settled in rows
    ]


def _known(source: Source, page: Page) -> IngestResult | None:
    if source.kind != "web":
        return None  # its text is at hand: whether it changed costs no fetch
    notice = Notice("already_here", {"title": page.title, "added": page.added_at[:10]})
    return result(source, page.url_hash, "unchanged", notice, chunks=page.chunks)


class _Batch:
    def __init__(
        self, ingestor: Ingestor, sources: Sequence[Source], on_stage: OnItem, stopped: Callable[[], bool]
    ) -> None:
        self._ingestor = ingestor
        self._sources = sources
        self._on_stage = on_stage
        self._stopped = stopped

    def run(self, positions: Sequence[int]) -> Iterator[Entry]:
        """Read ahead in threads, store here, in the order in which pages arrive."""
        waiting = list(reversed(positions))
        reading: dict[Future[Page], tuple[int, float]] = {}
        with ThreadPoolExecutor(READERS, thread_name_prefix="read") as pool:
            while waiting or reading:
                while waiting and len(reading) < _AHEAD and not self._stopped():
                    position = waiting.pop()
                    report = partial(self._on_stage, position)
                    future = pool.submit(self._ingestor.read, self._sources[position], report)
                    reading[future] = (position, time.monotonic())
                if self._stopped():
                    yield from self._skip([*waiting, *(self._dropped(reading))])
                    return
                done, _ = wait(reading, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    position, began = reading.pop(future)
                    yield position, self._finish(position, future, began)

    def _finish(self, position: int, future: Future[Page], began: float) -> IngestResult:
        source = self._sources[position]
        try:
            return take_in(self._ingestor, source, future.result(), began, partial(self._on_stage, position))
        except RagError as error:
            log.info("%s: %s", source.name[:200], error, exc_info=error.__cause__)
            return failure(source, error, time.monotonic() - began)

    @staticmethod
    def _dropped(reading: dict[Future[Page], tuple[int, float]]) -> list[int]:
        for future in reading:
            future.cancel()
        return [position for position, _ in reading.values()]

    def _skip(self, positions: Sequence[int]) -> Iterator[Entry]:
        for position in sorted(positions):
            yield position, result(self._sources[position], "", "skipped", Notice("cancelled"))
