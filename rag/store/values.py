"""Values that a library takes and returns: chunks, drafts, hits, filters and ways to fuse a search's legs; and how
long a call may wait for the database.

Every method of a library raises StoreError when the database fails, StoreAwayError when it is away for longer than
`patience` allows.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rag.types import Chunk, Page, Passage, SparseVector

T = TypeVar("T")

AWAY = frozenset({"store_away", "store_unreachable", "store_server_full", "postgres_away"})
"""Codes of StoreAwayError."""
QUESTION = 10.0  # seconds for which a call is made again before whoever waits is told
SCREEN = 3.0  # the same while a page is drawn


@dataclass(frozen=True, slots=True)
class Patience:
    """The patience of a call: how long it waits, and what may stop it."""

    seconds: float = QUESTION
    stopped: Callable[[], bool] = lambda: False


_ANYBODY = Patience()
current_patience: ContextVar[Patience] = ContextVar("patience", default=_ANYBODY)


@contextmanager
def patience(seconds: float, stopped: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Let the calls inside, on this thread, wait so long before StoreAwayError; inf waits until `stopped`."""
    token = current_patience.set(Patience(seconds, stopped))
    try:
        yield
    finally:
        current_patience.reset(token)


def patiently(task: Callable[[], T], stopped: Callable[[], bool] = lambda: False) -> Callable[[], T]:
    """The task, part of a job: its calls wait for the server until `stopped`, on whichever thread it is done."""

    def waiting() -> T:
        with patience(math.inf, stopped):
            return task()

    return waiting


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found. `passage.ranks` and `.scores` have an entry for each leg that found it
    and one for `fused`. Where vectors are asked for, `vector` is the stored dense one (d,), if there is
    one, and `terms` are the indices of the sparse one if there is no dense one."""

    passage: Passage
    vector: NDArray[np.float32] | None = None
    terms: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class NewChunks:
    """A page's chunks with their vectors, row by row; `hashes` are those of the texts that were embedded.

    dense: (n, d) float32, L2-normalised; row i is ignored where `dense_ok[i]` is False, and chunk i then takes no part
    in dense ranking.
    """

    chunks: Sequence[Chunk]
    dense: NDArray[np.float32]
    dense_ok: Sequence[bool]
    sparse: Sequence[SparseVector]
    hashes: Sequence[str]

    def __post_init__(self) -> None:
        sizes = {len(self.chunks), len(self.dense_ok), len(self.sparse), len(self.hashes), len(self.dense)}
        if len(sizes) != 1:
            raise ValueError("chunks, dense, dense_ok, sparse and hashes must have one row for each chunk")


@dataclass(frozen=True, slots=True)
class Draft:
    """A page that is to be stored. `recipe` decides its chunks and vectors, `claim` is as in `update_record`."""

    page: Page
    new: NewChunks
    recipe: str
    claim: str = ""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The result of a commit; not `written` if another process already saved this text or a newer one."""

    page: Page
    written: bool = True


@dataclass(frozen=True, slots=True)
class Audit:
    """Counts of pages with missing chunks and with extra chunks, both repaired.

    A page without its chunks keeps its text and is found by no search until it is imported again. `damaged` are
    the addresses of those that lack some because their text was no longer what was stored. `forked` is the number
    of pages of which replicas of the database kept different records.
    """

    lacking: int = 0
    surplus: int = 0
    damaged: tuple[str, ...] = ()
    forked: int = 0


def text_hash(text: str) -> str:
    """The hash of a page's text, which its record keeps: 64 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def content_hash(text: str) -> str:
    """The key under which a text's vectors can be used again: 32 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
Legs = Mapping[str, Mapping[str, float]]  # leg -> point id -> score
Fusion = Callable[[Legs], Mapping[str, float]]  # the legs' answers -> point id -> fused score
Query = tuple[NDArray[np.float32] | None, SparseVector | None]  # what the dense and the sparse leg are asked

RRF_K = 2  # Qdrant's default; ranks count from 0


@dataclass(frozen=True, slots=True)
class Filters:
    """Each field that is not empty confines the search; several values of one field are alternatives.

    `pages` are url_hashes, `sections` headings anywhere on the path, `since` and `until` ISO 8601 dates or
    moments that the page was added between; a date means the whole day in UTC. `without` are url_hashes of pages
    that are left aside.
    """

    pages: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    without: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any((self.pages, self.sites, self.languages, self.sections, self.since, self.until, self.without))

    def holds(self, page: Page, *, dated: bool = True) -> bool:
        """Return whether a page matches, with `dated` also by the date it was added; headings are ignored."""
        chosen = ((self.pages, page.url_hash), (self.sites, page.site), (self.languages, page.language))
        if page.url_hash in self.without or any(wanted and own not in wanted for wanted, own in chosen):
            return False
        return not dated or between(page.added_at, self.since, self.until)

    def within(self, other: Filters) -> Filters:
        """Combine both filters. If a field's values have none in common, this one's count."""

        def both(mine: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(value for value in mine if value in theirs) or mine or theirs

        return Filters(
            both(self.pages, other.pages),
            both(self.sites, other.sites),
            both(self.languages, other.languages),
            both(self.sections, other.sections),
            self.since or other.since,
            self.until or other.until,
            tuple(dict.fromkeys((*self.without, *other.without))),
        )


def between(moment: str, since: str, until: str) -> bool:
    """Return whether a moment (ISO 8601) is between two moments or dates, each of which may be empty."""
    at = _utc(moment) if moment else None
    after = at is not None and (not since or at >= _utc(since))
    end = _utc(until) + timedelta(days=bool(DATE.fullmatch(until))) if until else None
    return after and (end is None or (at is not None and at <= end))


def _utc(moment: str) -> datetime:
    read = datetime.fromisoformat(moment)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def reciprocal_rank_fusion(legs: Legs, k: float = RRF_K) -> dict[str, float]:
    """The sum of 1 / (k + rank), ranks from 0 (Cormack et al., SIGIR 2009). One leg keeps its own scores."""
    if len(legs) == 1:
        return dict(next(iter(legs.values())))
    fused: dict[str, float] = {}
    for scores in legs.values():
        for rank, found in enumerate(best_first(scores)):
            fused[found] = fused.get(found, 0.0) + 1.0 / (k + rank)
    return fused


def best_first(scores: Mapping[str, float]) -> list[str]:
    """The ids, those of equal scores by themselves."""
    by_id = sorted(scores)
    by_id.sort(key=scores.__getitem__, reverse=True)  # stable: equal scores stay in the order of their ids
    return by_id
