"""Value types of the library API, and limits on how long a call waits for the database.

Every method of a library raises StoreError if the database fails, and StoreUnavailableError if it is unavailable for
longer than `wait_limit` allows.
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

from rag.patterns import lazy_regex
from rag.types import Chunk, Page, Passage, SparseVector

T = TypeVar("T")

UNAVAILABLE_CODES = frozenset({"store_away", "store_unreachable", "store_server_full", "postgres_away"})
"""Error codes of StoreUnavailableError."""
QUESTION_SECONDS = 10.0  # seconds to retry a call before reporting an error
SCREEN_SECONDS = 3.0  # the same while a page is rendered


@dataclass(frozen=True, slots=True)
class WaitLimit:
    """A limit in seconds on how long a call waits for the database, and a callback that cancels the wait."""

    seconds: float = QUESTION_SECONDS
    stopped: Callable[[], bool] = lambda: False


_DEFAULT_WAIT_LIMIT = WaitLimit()
current_wait_limit: ContextVar[WaitLimit] = ContextVar("wait_limit", default=_DEFAULT_WAIT_LIMIT)


@contextmanager
def wait_limit(seconds: float, stopped: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Set how long calls in the block, on this thread, wait before StoreUnavailableError; inf waits until `stopped`."""
    token = current_wait_limit.set(WaitLimit(seconds, stopped))
    try:
        yield
    finally:
        current_wait_limit.reset(token)


def with_unlimited_wait(task: Callable[[], T], stopped: Callable[[], bool] = lambda: False) -> Callable[[], T]:
    """Wrap a job's task so that its calls, on whatever thread it runs, wait for the server until `stopped`."""

    def wrapper() -> T:
        with wait_limit(math.inf, stopped):
            return task()

    return wrapper


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found by a search.

    `passage.ranks` and `.scores` have an entry for each leg that found it, and one for `fused`. `vector` is the stored
    dense one (d,) if requested and present; `terms` are the indices of the sparse vector if there is no dense one.
    `sentences` is the stored sentence index of the passage, empty if there is none.
    """

    passage: Passage
    vector: NDArray[np.float32] | None = None
    terms: frozenset[int] = frozenset()
    sentences: str = ""


@dataclass(frozen=True, slots=True)
class NewChunks:
    """A page's chunks and their vectors, one row per chunk; `hashes` are those of the embedded texts.

    dense: (n, d) float32, L2-normalised; if `dense_ok[i]` is False, row i is ignored and dense ranking skips chunk i.
    `sentences` are the packed sentence indexes of the chunks; without them, each search computes what it needs.
    """

    chunks: Sequence[Chunk]
    dense: NDArray[np.float32]
    dense_ok: Sequence[bool]
    sparse: Sequence[SparseVector]
    hashes: Sequence[str]
    sentences: Sequence[str] = ()

    def __post_init__(self) -> None:
        sizes = {len(self.chunks), len(self.dense_ok), len(self.sparse), len(self.hashes), len(self.dense)}
        sizes |= {len(self.sentences)} if self.sentences else set()
        if len(sizes) != 1:
            raise ValueError("chunks, dense, dense_ok, sparse, hashes and sentences must have one row for each chunk")


@dataclass(frozen=True, slots=True)
class Draft:
    """A page to be stored. `recipe` identifies its chunks and vectors; `claim` is as in `update_record`."""

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
    """The number of pages with missing chunks (`incomplete`) and with extra chunks (`extra`), both repaired.

    A page with missing chunks keeps its text, but searches cannot find it until it is imported again. `damaged` are the
    addresses of pages with chunks whose text was corrupted. `diverged` is the number of pages whose record differed
    between replicas.
    """

    incomplete: int = 0
    extra: int = 0
    damaged: tuple[str, ...] = ()
    diverged: int = 0


def text_hash(text: str) -> str:
    """Return the hash of a page's text as stored in its record: 64 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def content_hash(text: str) -> str:
    """Return the key under which a text's vectors are reused: 32 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


DATE = lazy_regex(r"\d{4}-\d{2}-\d{2}", re.ASCII)
Legs = Mapping[str, Mapping[str, float]]  # leg -> point id -> score
Fusion = Callable[[Legs], Mapping[str, float]]  # results of the legs -> point id -> fused score
Query = tuple[NDArray[np.float32] | None, SparseVector | None]  # query vectors of the dense and the sparse leg

RRF_K = 2  # Qdrant's default; ranks count from 0


@dataclass(frozen=True, slots=True)
class Filters:
    """Search filters: non-empty fields are combined with AND, the values of a field with OR.

    `pages` are url_hashes; `sections` are headings anywhere on the path; `since` and `until` limit when the page was
    added, as ISO 8601 times or dates (the whole day in UTC). `without` are url_hashes of excluded pages.
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

    def matches(self, page: Page, *, dated: bool = True) -> bool:
        """Return whether a page matches, ignoring headings and, unless `dated`, the date it was added."""
        filters = ((self.pages, page.url_hash), (self.sites, page.site), (self.languages, page.language))
        if page.url_hash in self.without or any(accepted and value not in accepted for accepted, value in filters):
            return False
        return not dated or is_between(page.added_at, self.since, self.until)

    def intersect(self, other: Filters) -> Filters:
        """Intersect both filters, field by field. Where they have no common value, use this filter's."""

        def intersect(own: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(value for value in own if value in others) or own or others

        return Filters(
            intersect(self.pages, other.pages),
            intersect(self.sites, other.sites),
            intersect(self.languages, other.languages),
            intersect(self.sections, other.sections),
            self.since or other.since,
            self.until or other.until,
            tuple(dict.fromkeys((*self.without, *other.without))),
        )


def is_between(moment: str, since: str, until: str) -> bool:
    """Return whether a time (ISO 8601) is between two times or dates (whole days), each of which may be empty."""
    if not moment:
        return False
    time = _parse_utc(moment)
    if since and time < _parse_utc(since):
        return False
    if DATE.fullmatch(until):
        return time < _parse_utc(until) + timedelta(days=1)
    return not until or time <= _parse_utc(until)


def _parse_utc(moment: str) -> datetime:
    parsed = datetime.fromisoformat(moment)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def reciprocal_rank_fusion(legs: Legs, k: float = RRF_K) -> dict[str, float]:
    """Return the sum of 1 / (k + rank), ranks from 0 (Cormack et al., SIGIR 2009). A single leg keeps its scores."""
    if len(legs) == 1:
        return dict(next(iter(legs.values())))
    fused: dict[str, float] = {}
    for scores in legs.values():
        for rank, point in enumerate(sort_ids(scores)):
            fused[point] = fused.get(point, 0.0) + 1.0 / (k + rank)
    return fused


def sort_ids(scores: Mapping[str, float]) -> list[str]:
    """Return the ids by descending score, ties by id."""
    by_id = sorted(scores)
    by_id.sort(key=scores.__getitem__, reverse=True)  # stable: ties stay sorted by id
    return by_id
