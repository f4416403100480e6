"""Many sources: what is known is left alone, pages are read, cut and encoded in parallel, and stored one by one."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rag.errors import RagError
from rag.ingest.pipeline import Ingestor, OnStage, Read, failure, here_already, result, take_in
from rag.ingest.readahead import Limits, ReadAhead, Taken
from rag.ingest.retry_policy import delay_before
from rag.ingest.sources import Source, apart
from rag.types import Decision, IngestResult, Notice, Page, Stage

log = logging.getLogger(__name__)

_LIMITS = Limits(readers=32, ahead=64)
_LOOK_UP = 0.2  # seconds between two looks at whether to stop

OnItem = Callable[[int, Stage], object]
Entry = tuple[int, IngestResult]


def ingest_all(
    ingestor: Ingestor,
    sources: Sequence[Source],
    *,
    force: bool = False,
    on_stage: OnItem = lambda position, stage: None,
    stopped: Callable[[], bool] = lambda: False,
    decision: Decision = "",
) -> Iterator[Entry]:
    """Yield (position, result) for each source as it is done; sources that follow a stop are skipped.

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
    yield from _Batch(ingestor, sources, on_stage, stopped, decision).run([position for position, _ in todo])


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
    def __init__(
        self,
        ingestor: Ingestor,
        sources: Sequence[Source],
        on_stage: OnItem,
        stopped: Callable[[], bool],
        decision: Decision,
    ) -> None:
        self._ingestor = ingestor
        self._sources = sources
        self._on_stage = on_stage
        self._stopped = stopped
        self._decision: Decision = decision

    def run(self, positions: Sequence[int]) -> Iterator[Entry]:
        """Read and prepare ahead in threads, store here, in the order in which pages are ready."""
        ahead: ReadAhead[Read] = ReadAhead(_LIMITS)
        waiting = deque(positions)
        reading: set[int] = set()
        try:
            while waiting or reading:
                if self._stopped():
                    yield from self._skip([*waiting, *reading])
                    return
                while waiting and ahead.has_room():
                    position = waiting.popleft()
                    ahead.begin("", position, "", partial(self._read, position))
                    reading.add(position)
                if (taken := ahead.take(_LOOK_UP)) is not None:
                    reading.discard(taken.position)
                    yield taken.position, self._finish(taken)
        finally:
            ahead.close()

    def _read(self, position: int) -> Read:
        """Read a source, again where its failure may pass, and make ready what is to be stored of it."""
        report = partial(self._on_stage, position)
        read = self._fetched(position, report)
        return self._ingestor.prepare(read, report, decision=self._decision)

    def _fetched(self, position: int, report: OnStage) -> Read:
        tries = 0
        while True:
            try:
                return self._ingestor.read(self._sources[position], report)
            except RagError as error:
                tries += 1
                delay = delay_before(error, tries)
                if delay is None or not self._wait(delay):
                    raise

    def _wait(self, seconds: float) -> bool:
        """Wait; False when it was stopped meanwhile."""
        end = time.monotonic() + seconds
        while not self._stopped() and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_UP))
        return not self._stopped()

    def _finish(self, taken: Taken[Read]) -> IngestResult:
        source = self._sources[taken.position]
        report = partial(self._on_stage, taken.position)
        try:
            return take_in(self._ingestor, source, taken.result(), taken.began, report, self._decision)
        except RagError as error:
            log.info("%s: %s", source.name[:200], error, exc_info=error.__cause__)
            return failure(source, error, time.monotonic() - taken.began)
        except Exception:  # as in a job: a fault of ours costs one source, not those that follow
            log.exception("%s could not be taken in", source.name[:200])
            return result(source, "", "failed", Notice("unexpected"), seconds=time.monotonic() - taken.began)

    def _skip(self, positions: Sequence[int]) -> Iterator[Entry]:
        for position in sorted(positions):
            yield position, result(self._sources[position], "", "skipped", Notice("cancelled"))
