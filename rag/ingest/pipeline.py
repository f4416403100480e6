"""One page's way from its source into the library: read it, cut it, encode it, store it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from rag.errors import IngestError, RagError
from rag.ingest.chunking import Chunker, embedded_text, get_chunker
from rag.ingest.duplicates import (
    Duplicate,
    Judged,
    Lookup,
    PrefetchedLookup,
    Settling,
    aliases_of,
    claim_of,
    find_duplicate,
    independent_groups,
    replaced_page,
    with_alias,
    with_own_name,
    without_alias,
)
from rag.ingest.encode_chunks import ChunkEncoder, Prepared
from rag.ingest.loader import OnStage, Read, Reader
from rag.ingest.results import (
    duplicate_result,
    held_result,
    mark_checked,
    mark_missing,
    mark_moved,
    read_in_part,
    result,
    still_there,
)
from rag.ingest.sources import Source
from rag.models.embedding import EmbeddingModel
from rag.models.engines import Together
from rag.models.sparse import SparseEncoder
from rag.reading.parser import Parser
from rag.reading.quality import judge
from rag.store.duplicates import sign
from rag.store.values import CommitResult, Draft, content_hash
from rag.text import plain
from rag.types import Decision, IngestResult, IngestStatus, Notice, Page
from rag.web.fetch import Fetcher
from rag.web.url_key import url_hash, url_key

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library

T = TypeVar("T")

MAX_CHUNKS = 20_000
_LOT, _GATHERING = 64, 0.005  # addresses looked up in one call, and seconds that more are waited for
_RULES = 3  # raise it when a chunker cuts otherwise than before: pages are then cut anew when they are read again


@dataclass(frozen=True, slots=True)
class _PendingCommit:
    """A page that is about to be stored, and the row that tells of it once it is."""

    draft: Draft
    told: Callable[[CommitResult], IngestResult]


class Ingestor:
    """Takes sources into one library: each is read, prepared and settled.

    `read` and `prepare` may run in many threads at once, `settle` and `settle_all` in one.
    """

    def __init__(
        self,
        library: Library,
        model: EmbeddingModel,
        sparse: SparseEncoder,
        fetcher: Fetcher,
        parser: Parser,
        chunker: Chunker,
    ) -> None:
        self.library = library
        self._model = model
        self._sparse = sparse
        self._encoder = ChunkEncoder(model, sparse)
        self._fetcher = fetcher
        self._parser = parser
        self._reader = Reader(fetcher, parser)
        self._chunker = chunker
        self._recipe = recipe_of(chunker)
        pool = ThreadPoolExecutor(1, "lookups")
        self._lookups: Together[str, Page | None] = Together(
            self._resolve_lot, lambda lot: pool.submit(copy_context().run, _soon, lot), most=_LOT
        )

    def with_chunker(self, name: str = "", maximum: float = 0) -> Ingestor:
        """The same with another chunker, another size, or both. Raises KeyError for a name that is not in CHUNKERS."""
        chunker = get_chunker(name or self._chunker.name, maximum or self._chunker.maximum)
        return Ingestor(self.library, self._model, self._sparse, self._fetcher, self._parser, chunker)

    def warm(self) -> None:
        """Load what the first page would wait for: the libraries that cut and compare, the dictionaries of keywords."""
        sample = "This sentence belongs to a page that is long enough to be cut. 这一句也属于这个网页。" * 60
        self._chunker.split(sample, self._model.sentence_vectors)
        self._sparse.encode_passage(sample)
        sign(sample)

    def key(self, source: Source) -> str:
        """The source's url_hash. Raises IngestError for a source that is broken or has no valid address."""
        if source.broken is not None:
            raise source.broken
        return url_hash(source.url)

    def resolve(self, url_hash: str) -> Page | None:
        """The stored page that this leads to, without its text; threads that ask at once share the calls for it."""
        return self._lookups.ask(url_hash)

    def _resolve_lot(self, url_hashes: Sequence[str]) -> list[Page | None]:
        found = self.library.resolve(url_hashes)
        return [found.get(one) for one in url_hashes]

    def read(self, source: Source, on_stage: OnStage, *, known: Page | None = None, links: bool = False) -> Read:
        """The source's page with its text, not stored yet; `links` asks for the addresses in it too.

        With `known`, the stored page that the source is, an unchanged page is not sent again where its
        site can tell, and a page that cannot be read comes back as a `Read` with its error, for `settle`
        to note; without it, IngestError is raised.
        """
        return with_own_name(self.library, self._reader.read(source, self.key(source), on_stage, known, links))

    def prepare(self, read: Read, on_stage: OnStage, *, decision: Decision = "") -> Read:
        """`read` with its chunks and vectors, so that `settle` has nothing left to do but to store them.

        What would not be stored as the library is now comes back as it was, and so does what cannot be
        prepared: `settle` tells why.
        """
        if decision == "skip" or read.error or read.not_modified:
            return read
        as_of = self.library.as_of()
        try:
            before = self.resolve((read.known or read.page).url_hash)
            if before and before.url_hash != (read.known or read.page).url_hash:
                before = None
            if read.known and before is None:
                return read
            objection = self._objection(read, before, decision, self.library)
            read = replace(read, judged=Judged(objection, decision, as_of))
            if isinstance(objection, Duplicate) and objection.gives_way:
                return replace(read, prepared=self._prepared(read.page, objection.page, on_stage))
            if isinstance(objection, Duplicate) and decision == "refresh":
                before = objection.page
            elif objection:
                return read
            if before and self._is_current(before, read.page):
                return read
            return replace(read, prepared=self._prepared(read.page, before, on_stage))
        except RagError:
            return read

    def settle(self, read: Read, on_stage: OnStage, *, decision: Decision = "", online: bool = False) -> IngestResult:
        """Take in what was read, or say why not; what a person decided about it comes as `decision`.

        `online` tells that something else answered meanwhile, so that a page which does not is at fault
        itself. Raises RagError; what was stored of the page before then stays.
        """
        (outcome,) = self.settle_all([Settling(read, on_stage, decision, online)])
        if isinstance(outcome, RagError):
            raise outcome
        return outcome

    def settle_all(self, given: Sequence[Settling]) -> list[IngestResult | RagError]:
        """What `settle` returns or raises for each, in their order; new pages are looked up and stored together."""
        outcomes: dict[int, IngestResult | RagError] = {}
        for group in independent_groups(given):
            seen = PrefetchedLookup(self.library, [given[at].read for at in group]) if len(group) > 1 else self.library
            takings: dict[int, _PendingCommit] = {}
            for at in group:
                outcome: IngestResult | RagError | _PendingCommit
                try:
                    outcome = self._decided(given[at], seen)
                except RagError as error:
                    outcome = error
                if isinstance(outcome, _PendingCommit):
                    takings[at] = outcome
                    continue
                outcomes[at] = outcome
                if isinstance(seen, PrefetchedLookup):
                    seen.is_stale = True  # what was done about a page may concern those after it
            outcomes |= self._stored_all(takings)
        return [outcomes[at] for at in range(len(given))]

    def _stored_all(self, takings: Mapping[int, _PendingCommit]) -> dict[int, IngestResult | RagError]:
        """Commit together, or, where that fails by one of them, each for itself."""
        try:
            stands = self.library.commit_all([one.draft for one in takings.values()]) if takings else []
            return {at: one.told(stand) for (at, one), stand in zip(takings.items(), stands, strict=True)}
        except RagError as error:
            if len(takings) == 1:
                return dict.fromkeys(takings, error)
        found: dict[int, IngestResult | RagError] = {}
        for at, one in takings.items():
            found |= self._stored_all({at: one})
        return found

    def _decided(self, given: Settling, seen: Lookup) -> IngestResult | _PendingCommit:
        """What becomes of what was read, by what is stored as `seen`."""
        decision, read = given.decision, with_own_name(seen, given.read)
        given = replace(given, read=read)
        if decision == "skip":
            return result(read.source, read.page.url_hash, "skipped", Notice("left_alone"))
        page = replace(read.page, aliases=aliases_of(read.page, moved_to=read.moved_to))
        before = _stored(seen, read.known or page)
        if before is not None:
            self.let_go_of_twins(before)
        if read.known and (read.error or read.not_modified or before is None):
            return self._looked_again(read, before, given.online)
        if before is not None:
            page = _in_place_of(before, page)
        objection = self._objection(read, before, decision, seen)
        if isinstance(objection, Notice):
            return self._held(read, before, objection)
        if objection and before is not None:
            return self._replaced(read, before, objection)
        if objection and objection.gives_way:
            return self._take_the_place(given, page, objection.page)
        if objection:
            if decision != "refresh":
                return self._repeated(read, objection)
            page, before = _in_place_of(objection.page, page), objection.page
        return self._take(given, page, before, seen)

    def _looked_again(self, read: Read, before: Page | None, online: bool) -> IngestResult:
        """The result for a known page of which there is no text to store."""
        status: IngestStatus = "unchanged"
        if before is None:
            status, notice = "skipped", Notice("page_removed")
        elif read.error:
            status, notice = mark_missing(self.library, before, read.error, online=online)
        else:
            notice = still_there(self.library, before)
        return result(read.source, read.page.url_hash, status, notice, chunks=before.chunks if before else 0)

    def _objection(
        self, read: Read, before: Page | None, decision: Decision, seen: Lookup
    ) -> Notice | Duplicate | None:
        """What speaks against storing what was read: why the gate holds it back, or the page that it repeats.

        The gate judges once, and so do those who look for its likes, where the library is as it was then.
        """
        if read.source.kind in ("import", "note") or (before is not None and before.text_hash == read.page.text_hash):
            return None
        judged = read.judged if read.judged and read.judged.decision == decision else None
        is_as_it_was = judged is not None and judged.as_of is not None and judged.as_of == self.library.as_of()
        if judged and (is_as_it_was or isinstance(judged.objection, Notice)):
            return judged.objection
        if not judged and decision not in ("add_anyway", "keep_both", "refresh") and read.extracted is not None:
            notice = judge(read.extracted, can_read=self._model.can_read, status=read.http_status)
            if notice is not None:
                return notice
        if before is not None:
            return None if decision else replaced_page(seen, before, read.page, read.final_url)
        if decision == "keep_both":
            return None
        return find_duplicate(seen, read.page, moved_to=read.moved_to, canonical=read.canonical)

    def _held(self, read: Read, before: Page | None, notice: Notice) -> IngestResult:
        """The result for a page that the gate holds back."""
        if before is not None:
            mark_checked(self.library, before)
        return held_result(read, notice)

    def _repeated(self, read: Read, duplicate: Duplicate) -> IngestResult:
        """The result for a page that is here already; an address that leads to it is remembered."""
        if duplicate.is_alias:
            self.library.update_record(with_alias(duplicate.page, read.page.url))
        return duplicate_result(read, duplicate)

    def _replaced(self, read: Read, before: Page, other: Duplicate) -> IngestResult:
        """The result for a stored page in whose place its site shows another one by now: the stored text stays."""
        if other.reason == "now_elsewhere":
            mark_moved(self.library, before)
            return held_result(read, other.notice, "gone")
        return self._held(read, before, Notice(f"now_{other.reason}", other.notice.params))

    def _take(self, given: Settling, page: Page, before: Page | None, seen: Lookup) -> IngestResult | _PendingCommit:
        source = given.read.source
        if before is None and (other := seen.resolve([page.url_hash]).get(page.url_hash)):
            self.library.update_record(without_alias(other, page.url))
            seen = self.library
        claim = claim_of(page, given.read.canonical)

        def unchanged(stored: Page) -> IngestResult:
            notice = Notice("page_unchanged", {"title": stored.title, "chunks": stored.chunks})
            if source.kind == "web":
                notice = still_there(self.library, stored, page, claim)
            return result(source, stored.url_hash, "unchanged", notice, chunks=stored.chunks)

        def told(stand: CommitResult) -> IngestResult:
            if not stand.written:
                return unchanged(stand.page)
            status, code = _became(before, page)
            notice = Notice(code, {"title": stand.page.title, "chunks": stand.page.chunks})
            if namesake and before is None:
                notice = Notice("page_added_beside", {**notice.params, "other": namesake.title})
            row = result(source, stand.page.url_hash, status, notice, chunks=stand.page.chunks)
            return read_in_part(row, given.read)

        key = url_hash(source.url)
        namesake = seen.known([key]).get(key) if source.is_upload and page.url_hash != key else None
        before = before or _stored(seen, page)
        if before and self._is_current(before, page):
            return unchanged(before)
        return _PendingCommit(self._draft(given, page, before, claim), told)

    def _take_the_place(self, given: Settling, page: Page, twin: Page) -> _PendingCommit:
        """Store the page under its own address, and let go of the same one that came first under another."""
        for address in (twin.url, *twin.aliases):
            page = with_alias(page, address)

        def told(stand: CommitResult) -> IngestResult:
            stored = stand.page
            self.let_go_of_twins(stored)
            notice = Notice("canonical_first", {"title": stored.title, "chunks": stored.chunks, "other": twin.url})
            return result(given.read.source, stored.url_hash, "added", notice, chunks=stored.chunks)

        return _PendingCommit(self._draft(given, page, twin), told)

    def _draft(self, given: Settling, page: Page, before: Page | None, claim: str = "") -> Draft:
        """The page as it is to be committed: as it was prepared, or cut and encoded now."""
        prepared = given.read.prepared
        if prepared is None or prepared.made_of != self._made_of(page):
            prepared = self._prepared(page, before, given.on_stage)
        given.on_stage("storing")
        return self.library.draft(page, prepared.new, self._recipe, claim)

    def let_go_of_twins(self, page: Page) -> None:
        """Remove what gave way to this page: an alias of it is stored itself only where a kill came in between."""
        if not page.aliases:
            return
        for twin in self.library.claimants([page.url_hash]).get(page.url_hash, []):
            if url_key(twin.url) in page.aliases:
                if twin.url_hash in self.library.left_out():
                    self.library.set_left_out([page.url_hash], True)
                self.library.remove([twin.url_hash])

    def _is_current(self, stored: Page, page: Page) -> bool:
        return stored.title == page.title and self.library.is_current(stored, page.text, self._recipe)

    def _made_of(self, page: Page) -> tuple[str, str, str]:
        return page.title, page.text_hash, self._recipe

    def _prepared(self, page: Page, before: Page | None, on_stage: OnStage) -> Prepared:
        """The page cut and encoded; what the chunks of `before` have in common with its own is not encoded again."""
        on_stage("chunking")
        chunks = self._chunker.split(page.text, self._model.sentence_vectors)
        if not chunks:
            raise IngestError("no_text", url=page.url)
        if len(chunks) > MAX_CHUNKS:
            raise IngestError("too_many_chunks", url=page.url, limit=MAX_CHUNKS)
        on_stage("embedding")
        texts = [embedded_text(page.title, chunk) for chunk in chunks]
        hashes = [content_hash(text) for text in texts]
        reusable = self.library.reusable(before.url_hash) if before else {}
        return Prepared(self._made_of(page), self._encoder.encode(chunks, texts, hashes, reusable))


def _soon(lot: Callable[[], T]) -> T:
    """What other threads are about to ask shares the call."""
    time.sleep(_GATHERING)
    return lot()


def _stored(seen: Lookup, page: Page) -> Page | None:
    """The page as it is stored now; other pages may have become its aliases since it was read."""
    return seen.known([page.url_hash]).get(page.url_hash)


def _became(before: Page | None, page: Page) -> tuple[IngestStatus, str]:
    """What storing `page` in the place of `before` is called, and the code of what is said of it."""
    if before is None:
        return "added", "page_added"
    return "updated", "page_updated" if before.text_hash != page.text_hash else "page_reindexed"


def _in_place_of(stored: Page, page: Page) -> Page:
    """What was read, as the next text of a stored page, which keeps its address; the other becomes an alias."""
    if stored.url_hash == page.url_hash:
        return page
    others = tuple(address for address in page.aliases if address != url_key(stored.url))
    moved = replace(page, url=stored.url, url_hash=stored.url_hash, source=stored.source, aliases=others)
    return with_alias(moved, page.url)


def recipe_of(chunker: Chunker) -> str:
    """What decides where a chunker cuts: its name, its sizes, and the number of its rules."""
    sizes = json.dumps(vars(chunker), sort_keys=True, default=str)
    return f"{chunker.name}-{_RULES}{sizes}"


def named(row: IngestResult, source: Source, began: float) -> IngestResult:
    """The row, under the name that `source` was given by, of a page that was read since `began` (monotonic seconds)."""
    return replace(row, source=plain(source.name), seconds=round(time.monotonic() - began, 3))
