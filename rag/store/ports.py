"""The interface of a library for reading, writing and searching, independent of the database.

`qdrant.library.Library` is the one there is; the tests in `tests/contracts/test_library.py` hold for any other. Tables
of jobs and conversations have no port beside `sql`, whose statements are what another database would have to
understand; that of checkpoints is LangGraph's `BaseCheckpointSaver`. Every method raises StoreError when the database
fails, StoreAwayError when it is away for longer than `patience` allows.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rag.store.duplicates import Signature
from rag.store.query import Filters, Fusion, Query, reciprocal_rank_fusion
from rag.types import Chunk, Page, PageVersion, Passage, SparseVector

T = TypeVar("T")

AWAY = frozenset({"store_away", "store_unreachable", "store_server_full"})
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
    """A page that is to be stored. `recipe` decides its chunks and vectors, `claim` is as in `Pages.update_record`."""

    page: Page
    new: NewChunks
    recipe: str
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Stand:
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


class PageLookup(Protocol):
    """Read access to a library's pages, by address and by text. A page comes without its text."""

    def known(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        """The stored pages among these, by hash; one query for all of them."""

    def resolve(self, url_hashes: Sequence[str]) -> dict[str, Page]:
        """The stored pages that these lead to, by the hash given: their own, or that of an alias.

        One query for any number of hashes.
        """

    def claimants(self, url_hashes: Sequence[str], *, most: int = ...) -> dict[str, list[Page]]:
        """Pages that say of themselves that their address is one of these, by the hash given.

        Saying so proves nothing. Of many that say the same, a few: `most` are looked at.
        """

    def texts(self, url_hashes: Sequence[str]) -> dict[str, str]:
        """The texts of the stored pages among these, by hash; one query for all of them. Damaged ones are skipped."""

    def versions(self, url_hash: str) -> list[PageVersion]:
        """The texts that the page has had, oldest first, as many as are kept; the last is the present one."""

    def same_text(self, text_hash: str) -> list[Page]:
        """The pages with this very text, the oldest first."""

    def near_texts(self, signature: Signature) -> list[tuple[Page, float]]:
        """Pages whose texts are nearly that of the signature, with their similarity (0 to 1), the nearest first.

        See `rag.store.duplicates.sign`; a text that is too short for a signature is like no other.
        """


class Pages(PageLookup, Protocol):
    """The pages of a library, and what their sites last said of them."""

    def page(self, url_hash: str) -> Page | None:
        """The page with its text, by its own hash or that of an alias, such as one that gave way to its twin.

        A text that is damaged comes as it is: its hash tells.
        """

    def pages(self) -> list[Page]:
        """The pages without their text, newest first; those of one moment in order of their hash."""

    def page_count(self) -> int:
        """Return the number of pages. Called by every screen, so it is cheap while nothing changes."""

    def as_of(self) -> object | None:
        """Return a token that changes with the pages; None if other processes may change them unnoticed."""

    def left_out(self) -> set[str]:
        """Hashes of the pages that a person keeps out of answers."""

    def same_texts(self, text_hashes: Sequence[str]) -> list[Page]:
        """The pages with one of these texts, without it, the oldest first."""

    def near_texts_of(self, signatures: Sequence[Signature]) -> list[list[tuple[Page, float]]]:
        """`near_texts` of each, in one call."""

    def update_record(self, page: Page, *, claim: str | None = None) -> None:
        """Write what the page's site last said of it: etag, last_modified, checked_at, failures, status, aliases.

        One write, which touches no chunk; a page that is not stored stays so. Aliases are spelled as
        their keys (`rag.web.url_key`). A page that was excluded because it was gone, and is back,
        takes part in answers again. `claim` is the address that the page says is its own, which nobody
        has looked at; None leaves the one there is.
        """

    def set_left_out(self, url_hashes: Sequence[str], left_out: bool) -> None:
        """Keep these pages out of every search, or let them in again; they stay in the library."""

    def remove(self, url_hashes: Sequence[str]) -> int:
        """Remove pages with all their chunks and versions; returns how many there were."""

    def clear(self) -> int:
        """Remove every page with its versions; returns how many pages there were."""

    def held(self, url_hashes: Sequence[str]) -> AbstractContextManager[None]:
        """While the block runs, no thread of this process changes these pages."""


class Chunks(Protocol):
    """The chunks of a library's pages, with their vectors."""

    def chunk_count(self, scope: Filters | None = None) -> int:
        """Of pages that take part in answers; those within `scope`."""

    def chunks(self, url_hash: str) -> list[Passage]:
        """The page's chunks in order, without those that are damaged."""

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Chunks by id, in the order asked; those that are gone or damaged are skipped."""

    def reusable(self, url_hash: str) -> Mapping[str, tuple[NDArray[np.float32] | None, SparseVector]]:
        """The vectors of the page's chunks by `content_hash`; None where the model cannot read the text."""

    def search(
        self,
        *,
        dense: NDArray[np.float32] | None,
        sparse: SparseVector | None,
        limit: int,
        prefetch: int,
        with_vectors: bool = False,
        scope: Filters | None = None,
        fuse: Fusion = reciprocal_rank_fusion,
        more: Sequence[Query] = (),
    ) -> list[Hit]:
        """The best `limit` chunks of pages that take part, best first, fused from the best `prefetch` of each leg.

        dense: (d,); a leg that is None, or a sparse vector without terms, takes no part. `fuse` gets
        the legs that took part, `{leg: {chunk id: score}}`, and returns the fused scores. Equal scores
        are ordered by id. The legs of `more` are called `dense.2`, `sparse.2` and so on; so would be those of
        vectors of another kind. A chunk that is damaged is found without its text.
        """

    def diverse(
        self,
        dense: NDArray[np.float32],
        *,
        limit: int,
        fetch_k: int,
        lambda_mult: float,
        scope: Filters | None = None,
    ) -> list[Hit]:
        """Choose `limit` chunks of the `fetch_k` nearest to `dense` (d,) by langchain-qdrant's MMR, in order of choice.

        `lambda_mult` 1 is all relevance, 0 all diversity. Damaged chunks come without their text.
        """

    def idf(self, terms: Sequence[int]) -> dict[int, float]:
        """The inverse document frequency of terms of the sparse vectors, as the engine computes it.

        A term that no chunk holds gets the highest there can be. With several shards, each of which ranks by its own
        counts, it is that of one of them: near enough to tell rare terms from common ones.
        """


class Library(Pages, Chunks, Protocol):
    """A named set of pages with their chunks, made with one embedding model. Safe to share between threads."""

    name: str
    embedding_model: str
    dimension: int

    def is_current(self, page: Page, text: str, chunker: str) -> bool:
        """Return whether the stored `page` was made from `text` by this chunker, so that nothing need be done.

        Not where it was seen to be damaged.
        """

    def draft(self, page: Page, new: NewChunks, chunker: str = "", claim: str = "") -> Draft:
        """Make the input of `commit_all` from a page and its chunks. `claim` is as in `update_record`."""

    def commit_all(self, drafts: Sequence[Draft]) -> list[Stand]:
        """Store or replace these pages, each all at once; how each stands then, with generation, counts and times.

        A page may be there once. Where another process stored the same text of a page meanwhile, or one that was
        fetched later, that stays. StoreError leaves of each page what was stored before or what was given.
        """

    def sweep(self) -> None:
        """Finish or undo what a killed process left half done; cheap when nothing is."""

    def audit(self, *, deep: bool = False) -> Audit:
        """Find and repair pages that lack chunks; without `deep` only where the numbers of all do not agree."""


def text_hash(text: str) -> str:
    """The hash of a page's text, which its record keeps: 64 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def content_hash(text: str) -> str:
    """The key under which a text's vectors can be used again: 32 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
