"""The pipeline for one page, from its source to the library: read, split, encode, store; and its result row."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from rag.errors import IngestError, RagError
from rag.ingest.chunking import Chunker, embedding_text, get_chunker
from rag.ingest.duplicates import (
    Lookup,
    PrefetchedLookup,
    StoreRequest,
    claim_of,
    find_duplicate,
    find_replacement,
    independent_groups,
    with_alias,
    with_unique_name,
    without_alias,
)
from rag.ingest.sources import (
    Duplicate,
    LoadedPage,
    OnStage,
    PreparedChunks,
    Reader,
    Source,
    StorageCheck,
    ignore_stage,
    unique_sources,
)
from rag.models.embedding import (
    EmbeddingModel,
    SparseEncoder,
    index_sentences,
    join_vectors,
    lexical_head,
    pack_sentences,
)
from rag.models.transformer import CallBatcher
from rag.reading.parser import Parser
from rag.reading.quality import check_quality
from rag.store.values import CommitResult, Draft, NewChunks, content_hash, merge_aliases, now, sign
from rag.text import number_ranges, to_plain_line
from rag.types import Chunk, Decision, IngestResult, IngestStatus, Notice, Page, SparseVector, because
from rag.web.fetch import Fetcher
from rag.web.urls import split_url, url_hash, url_key

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library

IdentifiedSource = tuple[Source, str, IngestResult | None]
_PREVIEW = 600  # characters
_SKIPPED_CODES = frozenset(["other_kind", "archive_left_out"])
GONE_AFTER = 3
"""Consecutive failures after which a page counts as gone."""
_OWN_REFUSALS = frozenset(["blocked", "cancelled"])  # refusals by this program say nothing about the page
_OWN_CAUSES = frozenset(["parse_timeout", "parse_failed", "reader_missing"])  # nor do its own failures
_NO_ANSWER = frozenset(["unresolved", "unreachable", "timeout"])  # this machine may be offline
UNANSWERED = "page_unheard"
"""The reason code of a page that did not answer while nothing else had answered either."""


def result(
    source: Source, key: str, status: IngestStatus, notice: Notice, *, chunks: int = 0, seconds: float = 0.0
) -> IngestResult:
    params = {key: _without_file_scheme(value) for key, value in notice.params.items()}
    name, shown = to_plain_line(source.name), Notice(notice.code, params)
    return IngestResult(name, source.url, key, status, shown, chunks, round(seconds, 3))


def _without_file_scheme(value: Any) -> Any:
    """Return the name of a file instead of its URL `file:///name`, and any other value as it is."""
    is_file = isinstance(value, str) and value.startswith("file:///")
    return unquote(split_url(value).path).lstrip("/") if is_file else value


def find_repeats(sources: Iterable[Source]) -> Iterator[IdentifiedSource]:
    """Yield each source, its url_hash, and its result if it repeats an earlier source's URL, else None.

    The url_hash is "" for a source that is broken or has no URL. Files that only share their name get distinct URLs.
    """
    first: dict[str, str] = {}
    for source in unique_sources(sources):
        key = url_hash(source.url) if source.broken is None and split_url(source.url).scheme else ""
        row = None
        if key in first:
            row = result(source, key, "duplicate", Notice("same_address", {"url": source.url, "first": first[key]}))
        elif key:
            first[key] = source.name
        yield source, key, row


def add_unread_pages(row: IngestResult, loaded: LoadedPage) -> IngestResult:
    """Add the numbers of a file's unreadable pages to its row, if there are any."""
    unreadable_pages = loaded.extracted.unreadable_pages if loaded.extracted else ()
    if not unreadable_pages:
        return row
    runs = (f"{first}-{last}" if last > first else str(first) for first, last in number_ranges(unreadable_pages))
    params = {**row.notice.params, "pages": len(unreadable_pages), "numbers": ", ".join(runs)}
    return replace(row, notice=Notice("page_in_part", params))


def failure(source: Source, error: RagError, seconds: float = 0.0) -> IngestResult:
    """Return the row of a source that failed, or that is skipped because of its type."""
    status: IngestStatus = "skipped" if error.code in _SKIPPED_CODES else "failed"
    return result(source, "", status, error.notice, seconds=seconds)


def review_result(loaded: LoadedPage, notice: Notice, status: IngestStatus = "held") -> IngestResult:
    """Return the row of a page that is stored only if the user confirms it."""
    row = result(loaded.source, loaded.page.url_hash, status, notice)
    return replace(row, preview=_preview(loaded.page.text), choices=("add_anyway", "skip"))


def existing_result(source: Source, key: str, page: Page) -> IngestResult:
    """Return the row of a URL that is not read because its page, or the one it is an alias of, is stored."""
    if page.url_hash != key:
        duplicate = Duplicate("alias_address", page, True)
        row = result(source, key, "duplicate", duplicate.notice, chunks=page.chunks)
        return replace(row, choices=duplicate.choices)
    notice = Notice("already_here", {"title": page.title, "added": page.added_at[:10]})
    return result(source, key, "unchanged", notice, chunks=page.chunks)


def _preview(text: str) -> str:
    """Return the beginning of a text, for the user to judge it by."""
    if len(text) <= _PREVIEW:
        return text
    return text[:_PREVIEW].rsplit(None, 1)[0] + " …"


def is_answer(error: IngestError) -> bool:
    """Return whether a site answered, even if with an error."""
    return error.code not in _OWN_REFUSALS | _NO_ANSWER


def mark_present(library: Library, before: Page, seen: Page | None = None, claim: str | None = None) -> Notice:
    """Record that the site still has the stored text; return a notice about it.

    `seen` is the page as just read, None after "not modified". `claim` is as in `Library.update_record`.
    """
    page = replace(before, checked_at=now(), failures=0, status="active")
    if seen is not None:
        aliases = merge_aliases(before.aliases, seen.aliases)
        page = replace(page, etag=seen.etag, last_modified=seen.last_modified, aliases=aliases, reading=seen.reading)
    library.update_record(page, claim=claim)
    if before.status == "gone":
        return Notice("page_back")
    return Notice("not_modified" if seen is None else "page_unchanged")


def mark_missing(
    library: Library, before: Page, error: IngestError, *, online: bool = False
) -> tuple[IngestStatus, Notice]:
    """Record that a stored page could not be read: gone at once if its site says so, else after GONE_AFTER failures.

    A missing answer counts only if something else answered (`online`): otherwise this machine may be offline.
    """
    params = error.notice.params
    if error.code in _OWN_REFUSALS or (error.code == "unreadable" and error.notice.cause in _OWN_CAUSES):
        return "failed", error.notice
    why = because(error.code, **params)
    if error.code in _NO_ANSWER and not online:
        return "failed", Notice(UNANSWERED, why)
    status = params.get("status")
    failures = before.failures + 1
    is_gone = status in (404, 410) or failures >= GONE_AFTER or before.status == "gone"
    moment = now()
    library.update_record(
        replace(before, checked_at=moment, failures=failures, status="gone" if is_gone else before.status)
    )
    if status in (404, 410):
        return "gone", Notice("page_gone", {"status": status})
    if is_gone:
        return "gone", Notice("page_lost", {"failures": failures, **why})
    return "failed", Notice("page_missed", {"failures": failures, **why})


def mark_checked(library: Library, before: Page, *, is_gone: bool = False) -> None:
    """Record that a page's site answered, with content that is not stored."""
    status = "gone" if is_gone else before.status
    library.update_record(replace(before, checked_at=now(), failures=0, status=status))


T = TypeVar("T")

MAX_CHUNKS = 20_000
_BATCH, _BATCH_SECONDS = 64, 0.005  # addresses per lookup, and seconds to wait for more
_RULES = 6  # version of the chunking rules; increment it to re-split pages when they are next read


@dataclass(frozen=True, slots=True)
class _PendingCommit:
    """A page to be stored, and the function that turns the commit's result into the page's."""

    draft: Draft
    to_result: Callable[[CommitResult], IngestResult]


class Ingestor:
    """The pipeline into one library: each source is read, prepared and stored.

    `read` and `prepare` may run in many threads at once, `store_all` in one.
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
        # A fingerprint of the chunker: its name, its sizes, and the version of its rules.
        self._recipe = f"{chunker.name}-{_RULES}{json.dumps(vars(chunker), sort_keys=True, default=str)}"
        pool = ThreadPoolExecutor(1, "lookups")
        self._lookups: CallBatcher[str, Page | None] = CallBatcher(
            self._resolve_batch,
            lambda batch: pool.submit(copy_context().run, _run_after_delay, batch),
            max_items=_BATCH,
        )

    def with_chunker(self, name: str = "", maximum: float = 0) -> Ingestor:
        """Return a copy with another chunker, size, or both. Raises KeyError for a name that is not in CHUNKERS."""
        chunker = get_chunker(name or self._chunker.name, maximum or self._chunker.maximum)
        return Ingestor(self.library, self._model, self._sparse, self._fetcher, self._parser, chunker)

    def warm(self) -> None:
        """Load what the first page would wait for: packages that split and compare, and keyword dictionaries."""
        sample = "This sentence belongs to a page that is long enough to be cut. 这一句也属于这个网页。" * 60
        self._chunker.split(sample, self._model.sentence_vectors)
        self._sparse.encode_passage(sample)
        sign(sample)

    def key(self, source: Source) -> str:
        """Return the source's url_hash. Raises IngestError if the source is broken or has no valid URL."""
        if source.broken is not None:
            raise source.broken
        return url_hash(source.url)

    def resolve(self, url_hash: str) -> Page | None:
        """Return the stored page with this hash or alias, without its text; simultaneous calls share one query."""
        return self._lookups.process(url_hash)

    def _resolve_batch(self, url_hashes: Sequence[str]) -> list[Page | None]:
        pages = self.library.resolve(url_hashes)
        return [pages.get(key) for key in url_hashes]

    def read(
        self, source: Source, on_stage: OnStage = ignore_stage, *, known: Page | None = None, links: bool = False
    ) -> LoadedPage:
        """Read the source's page without storing it; `links` adds the links in it.

        With `known`, the stored page of this source, the request is conditional if possible, and a page that cannot be
        fetched is returned as a `LoadedPage` with its error, for `store_all` to record. Without it, IngestError is
        raised.
        """
        return with_unique_name(self.library, self._reader.read(source, self.key(source), on_stage, known, links))

    def prepare(self, loaded: LoadedPage, on_stage: OnStage = ignore_stage, *, decision: Decision = "") -> LoadedPage:
        """Return `loaded` with its chunks and vectors, so that `store_all` only has to store them.

        A page that would not be stored in the library's current state, or cannot be prepared, is returned unchanged:
        `store_all` reports why.
        """
        if decision == "skip" or loaded.error or loaded.not_modified:
            return loaded
        change_token = self.library.change_token()
        try:
            before = self.resolve((loaded.known or loaded.page).url_hash)
            if before and before.url_hash != (loaded.known or loaded.page).url_hash:
                before = None
            if loaded.known and before is None:
                return loaded
            objection = self._find_objection(loaded, before, decision, self.library)
            loaded = replace(loaded, storage_check=StorageCheck(objection, decision, change_token))
            if isinstance(objection, Duplicate) and objection.is_replaceable:
                return replace(loaded, prepared=self._prepare_chunks(loaded.page, objection.page, on_stage))
            if isinstance(objection, Duplicate) and decision == "refresh":
                before = objection.page
            elif objection:
                return loaded
            if before and self._is_current(before, loaded.page):
                return loaded
            return replace(loaded, prepared=self._prepare_chunks(loaded.page, before, on_stage))
        except RagError:
            return loaded

    def store_all(self, items: Sequence[StoreRequest]) -> list[IngestResult | RagError]:
        """Store pages that were read, new ones together; return for each, in order, its result or why it failed.

        Anything of a page that was stored before an error stays.
        """
        outcomes: dict[int, IngestResult | RagError] = {}
        for group in independent_groups(items):
            loaded_pages = [items[i].loaded for i in group]
            lookup = PrefetchedLookup(self.library, loaded_pages) if len(group) > 1 else self.library
            commits: dict[int, _PendingCommit] = {}
            for i in group:
                outcome: IngestResult | RagError | _PendingCommit
                try:
                    outcome = self._decide(items[i], lookup)
                except RagError as error:
                    outcome = error
                if isinstance(outcome, _PendingCommit):
                    commits[i] = outcome
                    continue
                outcomes[i] = outcome
                if isinstance(lookup, PrefetchedLookup):
                    lookup.is_stale = True  # the outcome of a page may affect those after it
            outcomes |= self._commit_all(commits)
        return [outcomes[i] for i in range(len(items))]

    def _commit_all(self, commits: Mapping[int, _PendingCommit]) -> dict[int, IngestResult | RagError]:
        """Commit pages together or, if that fails, separately."""
        try:
            results = self.library.commit_all([commit.draft for commit in commits.values()]) if commits else []
            return {
                at: commit.to_result(outcome) for (at, commit), outcome in zip(commits.items(), results, strict=True)
            }
        except RagError as error:
            if len(commits) == 1:
                return dict.fromkeys(commits, error)
        outcomes: dict[int, IngestResult | RagError] = {}
        for at, commit in commits.items():
            outcomes |= self._commit_all({at: commit})
        return outcomes

    def _decide(self, item: StoreRequest, lookup: Lookup) -> IngestResult | _PendingCommit:
        """Decide about a page, given the stored pages in `lookup`: return its pending commit, else its result."""
        decision, loaded = item.decision, with_unique_name(lookup, item.loaded)
        item = replace(item, loaded=loaded)
        if decision == "skip":
            return result(loaded.source, loaded.page.url_hash, "skipped", Notice("left_alone"))
        page = with_alias(loaded.page, loaded.moved_to) if loaded.moved_to else loaded.page
        before = _find_stored(lookup, loaded.known or page)
        if before is not None:
            self.remove_twins(before)
        if loaded.known and (loaded.error or loaded.not_modified or before is None):
            return self._record_recheck(loaded, before, item.online)
        if before is not None:
            page = _as_version_of(before, page)
        objection = self._find_objection(loaded, before, decision, lookup)
        if isinstance(objection, Notice):
            return self._require_review(loaded, before, objection)
        if objection and before is not None:  # its URL now shows another stored page; the stored text stays
            if objection.reason == "now_elsewhere":
                mark_checked(self.library, before, is_gone=True)
                return review_result(loaded, objection.notice, "gone")
            return self._require_review(loaded, before, Notice(f"now_{objection.reason}", objection.notice.params))
        if objection and objection.is_replaceable:
            return self._replace_twin(item, page, objection.page)
        if objection and decision != "refresh":
            if objection.is_alias:  # the URL led to the stored page
                self.library.update_record(with_alias(objection.page, loaded.page.url))
            chunks = objection.page.chunks
            row = result(loaded.source, loaded.page.url_hash, "duplicate", objection.notice, chunks=chunks)
            return replace(row, preview=_preview(loaded.page.text), choices=objection.choices)
        if objection:
            page, before = _as_version_of(objection.page, page), objection.page
        return self._store(item, page, before, lookup)

    def _record_recheck(self, loaded: LoadedPage, before: Page | None, online: bool) -> IngestResult:
        """Record a re-check without new text to store, and return its result."""
        status: IngestStatus = "unchanged"
        if before is None:
            status, notice = "skipped", Notice("page_removed")
        elif loaded.error:
            status, notice = mark_missing(self.library, before, loaded.error, online=online)
        else:
            notice = mark_present(self.library, before)
        return result(loaded.source, loaded.page.url_hash, status, notice, chunks=before.chunks if before else 0)

    def _find_objection(
        self, loaded: LoadedPage, before: Page | None, decision: Decision, lookup: Lookup
    ) -> Notice | Duplicate | None:
        """Return the reason against storing a page: the quality gate's notice, or the page that it repeats.

        The gate runs once, and so does the search for duplicates unless the library has changed since.
        """
        if loaded.source.kind in ("import", "note") or (
            before is not None and before.text_hash == loaded.page.text_hash
        ):
            return None
        check = loaded.storage_check if loaded.storage_check and loaded.storage_check.decision == decision else None
        if check and isinstance(check.objection, Notice):
            return check.objection
        if check and check.change_token is not None and check.change_token == self.library.change_token():
            return check.objection
        if not check and decision not in ("add_anyway", "keep_both", "refresh") and loaded.extracted is not None:
            notice = check_quality(loaded.extracted, can_read=self._model.can_read, status=loaded.http_status)
            if notice is not None:
                return notice
        if before is not None:
            return None if decision else find_replacement(lookup, before, loaded.page, loaded.final_url)
        if decision == "keep_both":
            return None
        return find_duplicate(lookup, loaded.page, moved_to=loaded.moved_to, canonical=loaded.canonical)

    def _require_review(self, loaded: LoadedPage, before: Page | None, notice: Notice) -> IngestResult:
        """Return the result for a page that the gate sends to review."""
        if before is not None:
            mark_checked(self.library, before)
        return review_result(loaded, notice)

    def _store(
        self, item: StoreRequest, page: Page, before: Page | None, lookup: Lookup
    ) -> IngestResult | _PendingCommit:
        source = item.loaded.source
        if before is None and (other := lookup.resolve([page.url_hash]).get(page.url_hash)):
            self.library.update_record(without_alias(other, page.url))
            lookup = self.library
        claim = claim_of(page, item.loaded.canonical)

        def report_unchanged(stored: Page) -> IngestResult:
            notice = Notice("page_unchanged", {"title": stored.title, "chunks": stored.chunks})
            if source.kind == "web":
                notice = mark_present(self.library, stored, page, claim)
            return result(source, stored.url_hash, "unchanged", notice, chunks=stored.chunks)

        def report(commit_result: CommitResult) -> IngestResult:
            if not commit_result.written:
                return report_unchanged(commit_result.page)
            params = {"title": commit_result.page.title, "chunks": commit_result.page.chunks}
            status: IngestStatus = "updated" if before else "added"
            if before:
                is_reindexed = before.text_hash == page.text_hash
                notice = Notice("page_reindexed" if is_reindexed else "page_updated", params)
            elif namesake:
                notice = Notice("page_added_beside", {**params, "other": namesake.title})
            else:
                notice = Notice("page_added", params)
            row = result(source, commit_result.page.url_hash, status, notice, chunks=commit_result.page.chunks)
            return add_unread_pages(row, item.loaded)

        key = url_hash(source.url)
        namesake = lookup.stored_pages([key]).get(key) if source.is_upload and page.url_hash != key else None
        before = before or _find_stored(lookup, page)
        if before and self._is_current(before, page):
            return report_unchanged(before)
        return _PendingCommit(self._draft(item, page, before, claim), report)

    def _replace_twin(self, item: StoreRequest, page: Page, twin: Page) -> _PendingCommit:
        """Store the page under its own URL, and remove its twin, which was added first under another."""
        for address in (twin.url, *twin.aliases):
            page = with_alias(page, address)

        def report(commit_result: CommitResult) -> IngestResult:
            stored = commit_result.page
            self.remove_twins(stored)
            notice = Notice("canonical_first", {"title": stored.title, "chunks": stored.chunks, "other": twin.url})
            return result(item.loaded.source, stored.url_hash, "added", notice, chunks=stored.chunks)

        return _PendingCommit(self._draft(item, page, twin), report)

    def _draft(self, item: StoreRequest, page: Page, before: Page | None, claim: str = "") -> Draft:
        """Return the page to be committed, as it was prepared, or else split and encoded now."""
        prepared = item.loaded.prepared
        if prepared is None or prepared.inputs != self._inputs_of(page):
            prepared = self._prepare_chunks(page, before, item.on_stage)
        item.on_stage("storing")
        return self.library.draft(page, prepared.new, self._recipe, claim)

    def remove_twins(self, page: Page) -> None:
        """Remove pages that this one replaced; after a crash, an alias may still be a stored page."""
        if not page.aliases:
            return
        for twin in self.library.claimants([page.url_hash]).get(page.url_hash, []):
            if url_key(twin.url) in page.aliases:
                if twin.url_hash in self.library.excluded_pages():
                    self.library.set_excluded([page.url_hash], True)
                self.library.remove([twin.url_hash])

    def _is_current(self, stored: Page, page: Page) -> bool:
        return stored.title == page.title and self.library.is_current(stored, page.text, self._recipe)

    def _inputs_of(self, page: Page) -> tuple[str, str, str]:
        return page.title, page.text_hash, self._recipe

    def _prepare_chunks(self, page: Page, before: Page | None, on_stage: OnStage) -> PreparedChunks:
        """Split and encode the page; chunks that `before` has too are not encoded again."""
        on_stage("chunking")
        chunks = self._chunker.split(page.text, self._model.sentence_vectors)
        if not chunks:
            raise IngestError("no_text", url=page.url)
        if len(chunks) > MAX_CHUNKS:
            raise IngestError("too_many_chunks", url=page.url, limit=MAX_CHUNKS)
        on_stage("embedding")
        texts = [embedding_text(page.title, chunk) for chunk in chunks]
        hashes = [content_hash(text) for text in texts]
        reusable = self.library.reusable_vectors(before.url_hash) if before else {}
        return PreparedChunks(self._inputs_of(page), self._encoder.encode(chunks, texts, hashes, reusable))


def _run_after_delay(batch: Callable[[], T]) -> T:
    """Wait briefly, so that requests from other threads share the call."""
    time.sleep(_BATCH_SECONDS)
    return batch()


def _find_stored(lookup: Lookup, page: Page) -> Page | None:
    """Return the page as it is stored now; it may have gained aliases since it was read."""
    return lookup.stored_pages([page.url_hash]).get(page.url_hash)


def _as_version_of(stored: Page, page: Page) -> Page:
    """Return the page as the next version of a stored one, under that one's URL; its own becomes an alias."""
    if stored.url_hash == page.url_hash:
        return page
    others = tuple(address for address in page.aliases if address != url_key(stored.url))
    version = replace(page, url=stored.url, url_hash=stored.url_hash, source=stored.source, aliases=others)
    return with_alias(version, page.url)


def with_source_name(row: IngestResult, name: str, began: float) -> IngestResult:
    """Return the row with its source's name, and the seconds since `began` (time.monotonic)."""
    return replace(row, source=to_plain_line(name), seconds=round(time.monotonic() - began, 3))


_Vectors = NDArray[np.float32]
_Reusable = Mapping[str, tuple[_Vectors | None, SparseVector]]

_ENCODED_PAGES = 32  # per batch: the more texts, the more similar the lengths encoded together, and the less padding
_MANY_CHUNKS = 128  # a page with this many chunks fills batches alone


class ChunkEncoder:
    """An encoder of texts as dense and sparse vectors. Safe to share between threads; raises ModelError.

    Many threads prepare pages at once. The model gets the chunks of all pages that are ready without waiting for more:
    while it encodes one batch, the next one fills up.
    """

    def __init__(self, model: EmbeddingModel, sparse: SparseEncoder) -> None:
        self._model = model
        self._sparse = sparse
        # One batch at a time: two at once would be smaller, and small batches cost more per text.
        self._pool = ThreadPoolExecutor(1, "lots")
        self._together: CallBatcher[Sequence[str], _Vectors] = CallBatcher(
            self._encode_pages, self._pool.submit, max_items=_ENCODED_PAGES
        )

    def encode(
        self, chunks: Sequence[Chunk], texts: Sequence[str], hashes: Sequence[str], reusable: _Reusable
    ) -> NewChunks:
        """Return the chunks with their vectors; those in `reusable` are not encoded again."""
        dense = np.zeros((len(chunks), self._model.dimension), dtype=np.float32)
        readable = [True] * len(chunks)
        sparse: list[SparseVector] = []
        todo: list[int] = []
        for i, (chunk, text, digest) in enumerate(zip(chunks, texts, hashes, strict=True)):
            if existing := reusable.get(digest):
                vector, weights = existing
                readable[i] = vector is not None
                if vector is not None:
                    dense[i] = vector
                sparse.append(weights)
                continue
            sparse.append(self._sparse.encode_passage(text))
            readable[i] = self._model.can_read(chunk.text)
            if readable[i]:
                todo.append(i)
        if todo:
            new_texts = [texts[i] for i in todo]
            encode = self._model.encode_passages if len(todo) >= _MANY_CHUNKS else self._together.process
            dense[todo] = encode(new_texts)
            if head := lexical_head(self._model):
                for i, lexical in zip(todo, head.encode(new_texts), strict=True):
                    sparse[i] = join_vectors(sparse[i], lexical)
        sentences = [pack_sentences(index_sentences(chunk.text, self._sparse), len(chunk.text)) for chunk in chunks]
        return NewChunks(chunks, dense, readable, sparse, hashes, sentences)

    def _encode_pages(self, pages: Sequence[Sequence[str]]) -> list[_Vectors]:
        """Return the vectors of several pages' texts, page by page."""
        vectors = self._model.encode_passages([text for texts in pages for text in texts])
        return np.split(vectors, np.cumsum([len(texts) for texts in pages])[:-1])
