"""One page's way from its source into the library: read it, cut it, encode it, store it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.errors import IngestError, RagError
from rag.ingest.chunking import Chunker, embedded_text, get_chunker
from rag.ingest.duplicates import Duplicate, find_duplicate, with_alias, without_alias
from rag.ingest.fetch import Fetcher
from rag.ingest.parser import Parser
from rag.ingest.quality import judge
from rag.ingest.reading import OnStage, Read, Reader
from rag.ingest.recheck import looked_at, not_there, still_there
from rag.ingest.sources import Source
from rag.ingest.url_key import url_hash, url_key
from rag.messages import say
from rag.models.embedding import EmbeddingModel
from rag.models.sparse import SparseEncoder
from rag.store.library import Library
from rag.store.records import content_hash
from rag.types import Chunk, Decision, IngestResult, IngestStatus, Notice, Page, SparseVector

MAX_CHUNKS = 20_000
_PREVIEW = 600  # characters
_RULES = 1  # raise it when a chunker cuts otherwise than before: pages are then cut anew when they are read again

__all__ = ["MAX_CHUNKS", "Ingestor", "OnStage", "Read", "failure", "here_already", "recipe_of", "result", "take_in"]


class Ingestor:
    """Takes sources into one library. `read` may run in many threads at once, `settle` and `store` in one."""

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
        self._fetcher = fetcher
        self._parser = parser
        self._reader = Reader(fetcher, parser)
        self._chunker = chunker
        self._recipe = recipe_of(chunker)

    def with_chunker(self, name: str) -> Ingestor:
        """The same with another chunker. Raises KeyError for a name that is not in CHUNKERS."""
        return Ingestor(self.library, self._model, self._sparse, self._fetcher, self._parser, get_chunker(name))

    def key(self, source: Source) -> str:
        """The source's url_hash. Raises IngestError for a source that is broken or has no valid address."""
        if source.broken is not None:
            raise source.broken
        return url_hash(source.url)

    def read(self, source: Source, on_stage: OnStage, *, known: Page | None = None, links: bool = False) -> Read:
        """The source's page with its text, not stored yet; `links` asks for the addresses in it too.

        With `known`, the stored page that the source is, an unchanged page is not sent again where its
        site can tell, and a page that cannot be read comes back as a `Read` with its error, for `settle`
        to note; without it, IngestError is raised.
        """
        return self._reader.read(source, self.key(source), on_stage, known, links)

    def settle(self, read: Read, on_stage: OnStage, *, decision: Decision = "") -> IngestResult:
        """Take in what was read, or say why not; what a person decided about it comes as `decision`.

        Raises RagError; what was stored of the page before then stays.
        """
        if decision == "skip":
            return result(read.source, read.page.url_hash, "skipped", Notice("left_alone"))
        page = read.page
        before = self._stored(read.known or page)
        if read.known and (read.error or read.not_modified or before is None):
            return self._looked_again(read, before)
        if before is not None:
            page = _in_place_of(before, page)
        if read.source.kind != "import" and (before is None or before.text_hash != page.text_hash):
            if held := self._held(read, before, decision):
                return held
            if before is None and decision != "keep_both":
                if (duplicate := self._duplicate(read)) and decision != "refresh":
                    return self._repeated(read, duplicate)
                if duplicate:
                    page, before = _in_place_of(duplicate.page, page), duplicate.page
        return self._take(read.source, page, before, on_stage)

    def _stored(self, page: Page) -> Page | None:
        """The page as it is stored now; other pages may have become its aliases since it was read."""
        return self.library.known([page.url_hash]).get(page.url_hash)

    def _looked_again(self, read: Read, before: Page | None) -> IngestResult:
        """The result for a known page of which there is no text to store."""
        status: IngestStatus = "unchanged"
        if before is None:
            status, notice = "skipped", Notice("page_removed")
        elif read.error:
            status, notice = not_there(self.library, before, read.error)
        else:
            notice = still_there(self.library, before)
        return result(read.source, read.page.url_hash, status, notice, chunks=before.chunks if before else 0)

    def _held(self, read: Read, before: Page | None, decision: Decision) -> IngestResult | None:
        """The result for a page that the gate holds back, unless a person has looked at it."""
        if decision in ("add_anyway", "keep_both", "refresh") or read.extracted is None:
            return None
        notice = judge(read.extracted, can_read=self._model.can_read, status=read.http_status)
        if notice is None:
            return None
        if before is not None:
            looked_at(self.library, before)
        row = result(read.source, read.page.url_hash, "held", notice)
        return replace(row, preview=_preview(read.page.text), choices=("add_anyway", "skip"))

    def _duplicate(self, read: Read) -> Duplicate | None:
        return find_duplicate(self.library, read.page, moved_to=read.moved_to, canonical=read.canonical)

    def _repeated(self, read: Read, duplicate: Duplicate) -> IngestResult:
        """The result for a page that is here already; an address that leads to it is remembered."""
        if duplicate.is_alias:
            self.library.update_record(with_alias(duplicate.page, read.page.url))
        row = result(read.source, read.page.url_hash, "duplicate", duplicate.notice, chunks=duplicate.page.chunks)
        return replace(row, preview=_preview(read.page.text), choices=duplicate.choices)

    def _take(self, source: Source, page: Page, before: Page | None, on_stage: OnStage) -> IngestResult:
        if before is None and (other := self.library.resolve([page.url_hash]).get(page.url_hash)):
            self.library.update_record(without_alias(other, page.url))
        status, stored, code = self.store(page, on_stage)
        notice = Notice(code, {"title": stored.title, "chunks": stored.chunks})
        if status == "unchanged" and source.kind == "web":
            notice = still_there(self.library, stored, page)
        return result(source, stored.url_hash, status, notice, chunks=stored.chunks)

    def store(self, page: Page, on_stage: OnStage) -> tuple[IngestStatus, Page, str]:
        """Cut, encode and commit the page; the last of the three is a message's code.

        Raises RagError; what was stored of it before then stays.
        """
        before = self._stored(page)
        if before and before.title == page.title and self._is_current(before, page):
            return "unchanged", before, "page_unchanged"
        on_stage("chunking")
        chunks = self._chunker.split(page.text, self._model.sentence_vectors)
        if not chunks:
            raise IngestError("no_text", url=page.url)
        if len(chunks) > MAX_CHUNKS:
            raise IngestError("too_many_chunks", url=page.url, limit=MAX_CHUNKS)
        on_stage("embedding")
        texts = [embedded_text(page.title, chunk) for chunk in chunks]
        hashes = [content_hash(text) for text in texts]
        reusable = self.library.reusable(page.url_hash) if before else {}
        dense, readable, sparse = self._encode(chunks, texts, hashes, reusable)
        on_stage("storing")
        stored = self.library.commit(page, chunks, dense, readable, sparse, chunker=self._recipe, content_hashes=hashes)
        if before is None:
            return "added", stored, "page_added"
        return "updated", stored, "page_updated" if before.text_hash != page.text_hash else "page_reindexed"

    def _is_current(self, stored: Page, page: Page) -> bool:
        return self.library.is_current(stored, page.text, self._recipe)

    def _encode(
        self,
        chunks: Sequence[Chunk],
        texts: Sequence[str],
        hashes: Sequence[str],
        reusable: Mapping[str, tuple[NDArray[np.float32] | None, SparseVector]],
    ) -> tuple[NDArray[np.float32], list[bool], list[SparseVector]]:
        """Vectors of the chunks, (n, d), which of them are readable, and the sparse ones; none encoded twice."""
        dense = np.zeros((len(chunks), self._model.dimension), dtype=np.float32)
        readable = [True] * len(chunks)
        sparse: list[SparseVector] = []
        todo: list[int] = []
        for i, (chunk, text, digest) in enumerate(zip(chunks, texts, hashes, strict=True)):
            if known := reusable.get(digest):
                vector, weights = known
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
            dense[todo] = self._model.encode_passages([texts[i] for i in todo])
        return dense, readable, sparse


def _in_place_of(stored: Page, page: Page) -> Page:
    """What was read, as the next text of a stored page, which keeps its address; the other becomes an alias."""
    if stored.url_hash == page.url_hash:
        return page
    others = tuple(address for address in page.aliases if address != url_key(stored.url))
    moved = replace(page, url=stored.url, url_hash=stored.url_hash, source=stored.source, aliases=others)
    return with_alias(moved, page.url)


def _preview(text: str) -> str:
    """The beginning of a text, for a person to judge it by."""
    if len(text) <= _PREVIEW:
        return text
    return text[:_PREVIEW].rsplit(None, 1)[0] + " …"


def recipe_of(chunker: Chunker) -> str:
    """What decides where a chunker cuts: its name, its sizes, and the number of its rules."""
    sizes = json.dumps(vars(chunker), sort_keys=True, default=str)
    return f"{chunker.name}-{_RULES}{sizes}"


def failure(source: Source, error: RagError, seconds: float = 0.0) -> IngestResult:
    """The row of a source that could not be taken in."""
    return result(source, "", "failed", error.notice, seconds=seconds)


def result(
    source: Source, key: str, status: IngestStatus, notice: Notice, *, chunks: int = 0, seconds: float = 0.0
) -> IngestResult:
    params: dict[str, Any] = dict(notice.params)
    words = say(notice, "en")
    return IngestResult(source.name, source.url, key, status, notice.code, words, chunks, round(seconds, 3), params)


def here_already(source: Source, key: str, known: Page) -> IngestResult:
    """The row of an address whose page is stored, as itself or as another one that it leads to, and is left alone."""
    if known.url_hash != key:
        duplicate = Duplicate("alias_address", known, True)
        row = result(source, key, "duplicate", duplicate.notice, chunks=known.chunks)
        return replace(row, choices=duplicate.choices)
    notice = Notice("already_here", {"title": known.title, "added": known.added_at[:10]})
    return result(source, key, "unchanged", notice, chunks=known.chunks)


def take_in(
    ingestor: Ingestor, source: Source, read: Read, began: float, on_stage: OnStage, decision: Decision = ""
) -> IngestResult:
    """Settle a page that was read since `began` (monotonic seconds); the row is named as `source` was given."""
    row = ingestor.settle(read, on_stage, decision=decision)
    return replace(row, source=source.name, seconds=round(time.monotonic() - began, 3))
