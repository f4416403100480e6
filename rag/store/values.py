"""Values of the library API: filters, drafts, hits, hashes, aliases and signatures of near-duplicate texts.

Every method of a library raises StoreError if the database fails, and StoreUnavailableError if it is unavailable for
longer than `wait_limit` allows.

To find near-duplicates, each text is reduced to a set of shingles: runs of `SHINGLE` words, where a Chinese character
counts as a word. The share of equal values in two MinHash signatures estimates the Jaccard similarity of the sets
(Broder, "On the resemblance and containment of documents", 1997). Signatures are split into bands; pages that share a
band are candidates (Leskovec et al., "Mining of Massive Datasets", chapter 3). With 16 bands of 8 values, a pair of
similarity s is found with probability 1 - (1 - s^8)^16: 99.4 % at 0.85, 61 % at 0.7, 6 % at 0.5.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from rag.text import lazy_regex
from rag.types import Chunk, Page, Passage, SparseVector

if TYPE_CHECKING:
    from datasketch import MinHash

_MAX_ALIASES = 500
_MAX_ALIAS_BYTES = 100_000  # readers of exported files accept rows of up to 256 KB
SIMILARITY_THRESHOLD = 0.85
SHINGLE = 4
PERMUTATIONS = 128
BANDS = 16
_SCHEME = "affine32"  # datasketch's hash scheme; changing it invalidates stored signatures
_MIN_SHINGLES = 40  # shingles; similarity is unreliable for fewer
_BATCH = 1024  # shingles hashed per call: 0.5 MB, which fits in a core's cache
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_TOKEN = lazy_regex(f"[{_HAN}]|[^\\W_{_HAN}]+")


def alias_hash(address: str) -> str:
    """Return the url_hash of an alias that is already normalised by `rag.web.urls`."""
    return hashlib.md5(address.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def merge_aliases(existing: Iterable[str], recent: Iterable[str]) -> tuple[str, ...]:
    """Merge a page's aliases, most recently seen last; drop the oldest above the limits.

    Without a limit, an address that redirects somewhere new every time would add aliases forever.
    """
    fresh = dict.fromkeys(recent)
    addresses = [*(alias for alias in dict.fromkeys(existing) if alias not in fresh), *fresh]
    selected: list[str] = []
    remaining = _MAX_ALIAS_BYTES
    for address in reversed(addresses[-_MAX_ALIASES:]):
        remaining -= len(json.dumps(address)) + 1
        if remaining < 0:
            break
        selected.append(address)
    return tuple(reversed(selected))


@dataclass(frozen=True, slots=True)
class Signature:
    """A MinHash signature. `values` are 128 little-endian uint32; empty for a text that is too short."""

    values: bytes = b""

    @property
    def bands(self) -> SparseVector:
        """The bands as terms of weight 1, so that an inverted index finds pages that share one.

        A sparse vector needs 1.3 KB per page, a keyword index 5.4 KB.
        """
        width = len(self.values) // BANDS
        pieces = (bytes([at]) + self.values[at * width : (at + 1) * width] for at in range(BANDS if width else 0))
        terms = sorted({int.from_bytes(hashlib.sha256(piece).digest()[:4], "little") for piece in pieces})
        return SparseVector(terms, [1.0] * len(terms))

    def payload(self) -> dict[str, Any]:
        return {"signature": base64.b64encode(self.values).decode()}


def signature_from(payload: Mapping[str, Any]) -> Signature:
    """Return the signature in a page's record, or an empty one if it has none."""
    return Signature(base64.b64decode(payload.get("signature", "")))


@functools.lru_cache(maxsize=64)
def sign(text: str) -> Signature:
    """Return a text's signature, cached so that the commit reuses the duplicate check's; 5 ms per 20 000 characters."""
    shingles = _shingles(text)
    if len(shingles) < _MIN_SHINGLES:
        return Signature()
    minhash = _empty_minhash().copy()
    for at in range(0, len(shingles), _BATCH):
        minhash.update_batch(shingles[at : at + _BATCH])
    values = np.asarray(minhash.hashvalues, dtype="<u4").tobytes()
    return Signature(values)


def similarity(first: Signature, second: Signature) -> float:
    """Return the estimated Jaccard similarity of two texts, 0 to 1; 0 if either has no signature."""
    if len(first.values) != len(second.values) or not first.values:
        return 0.0
    return float(np.mean(np.frombuffer(first.values, dtype="<u4") == np.frombuffer(second.values, dtype="<u4")))


def jaccard_similarity(text: str, other_text: str) -> float:
    """Return the exact Jaccard similarity of two texts, 0 to 1; works for short texts too."""
    if text == other_text:
        return 1.0
    first, second = _shingles(text), _shingles(other_text)
    common = len(np.intersect1d(first, second, assume_unique=True))
    return common / max(1, len(first) + len(second) - common)


def _shingles(text: str) -> NDArray[np.uint32]:
    """Return hashes of the distinct shingles, (n,)."""
    tokens = _TOKEN.findall(unicodedata.normalize("NFKC", text).lower())
    codes = {token: zlib.crc32(token.encode("utf-8", "surrogatepass")) for token in set(tokens)}
    hashed = np.fromiter((codes[token] for token in tokens), dtype=np.uint64, count=len(tokens))
    if len(hashed) < SHINGLE:
        return np.zeros(0, dtype=np.uint32)
    rolled = np.zeros(len(hashed) - SHINGLE + 1, dtype=np.uint64)
    for at in range(SHINGLE):
        rolled = (rolled + hashed[at : at + len(rolled)]) * _PRIME
    return np.unique((rolled >> np.uint64(32)).astype(np.uint32))


@functools.cache
def _empty_minhash() -> MinHash:
    """Return an empty MinHash; copying one is cheaper than generating its permutations."""
    from datasketch import MinHash

    return MinHash(num_perm=PERMUTATIONS, scheme=_SCHEME, hashfunc=lambda value: value)


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
    return text_hash(text)[:32]


DATE = lazy_regex(r"\d{4}-\d{2}-\d{2}", re.ASCII)
Legs = Mapping[str, Mapping[str, float]]  # leg -> point id -> score
Fusion = Callable[[Legs], Mapping[str, float]]  # results of the legs -> point id -> fused score
Query = tuple[NDArray[np.float32] | None, SparseVector | None]  # query vectors of the dense and the sparse leg

RRF_K = 2  # Qdrant's default; ranks count from 0
ACROSS: Final = "across"
"""The leg that searches the dense vectors of pages in other languages than the question's. They share no words with it,
so that pages in its own language would fill all first places."""
ACROSS_WEIGHT: Final = 0.5
ACROSS_POWER: Final = 4


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


def batches(rows: Sequence[T], size: int) -> Iterator[list[T]]:
    """Yield the rows in lists of `size`, the last of which may be shorter."""
    return (list(rows[at : at + size]) for at in range(0, len(rows), size))


def now() -> str:
    """Return the current time in the storage format: ISO 8601 in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


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
    """Return the sum of 1 / (k + rank), ranks from 0 (Cormack et al., SIGIR 2009). A single leg keeps its scores.

    Points of `ACROSS` count up to half, the less the farther they are from the best of the dense leg.
    """
    if len(legs) == 1:
        return dict(next(iter(legs.values())))
    best = max(legs.get("dense", {}).values(), default=1.0)
    fused: dict[str, float] = {}
    for leg, scores in legs.items():
        for rank, point in enumerate(sort_ids(scores)):
            weight = ACROSS_WEIGHT * max(0.0, scores[point] / best) ** ACROSS_POWER if leg == ACROSS else 1.0
            fused[point] = fused.get(point, 0.0) + weight / (k + rank)
    return fused


def sort_ids(scores: Mapping[str, float]) -> list[str]:
    """Return the ids by descending score, ties by id."""
    by_id = sorted(scores)
    by_id.sort(key=scores.__getitem__, reverse=True)  # stable: ties stay sorted by id
    return by_id
