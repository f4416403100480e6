"""One page's way from its source into the library: read it, cut it, encode it, store it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from rag.errors import IngestError, RagError
from rag.ingest.chunking import Chunker, embedded_text, get_chunker
from rag.ingest.extract import Extracted
from rag.ingest.fetch import Fetcher
from rag.ingest.media import media_type
from rag.ingest.parser import Parser
from rag.ingest.sources import Source
from rag.ingest.url_key import url_hash
from rag.messages import say
from rag.models.embedding import EmbeddingModel
from rag.models.sparse import SparseEncoder
from rag.store.library import Library
from rag.store.records import content_hash
from rag.text import detect_language
from rag.types import Chunk, IngestResult, IngestStatus, Notice, Page, SparseVector, Stage

OnStage = Callable[[Stage], object]
MAX_CHUNKS = 20_000


class Ingestor:
    """Takes sources into one library. `read` may run in many threads at once; `store` is for one at a time."""

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
        self._chunker = chunker

    def with_chunker(self, name: str) -> Ingestor:
        """The same with another chunker. Raises KeyError for a name that is not in CHUNKERS."""
        return Ingestor(self.library, self._model, self._sparse, self._fetcher, self._parser, get_chunker(name))

    def key(self, source: Source) -> str:
        """The source's url_hash. Raises IngestError for a source that is broken or has no valid address."""
        if source.broken is not None:
            raise source.broken
        return url_hash(source.url)

    def read(self, source: Source, on_stage: OnStage) -> Page:
        """The source's page with its text, not stored yet. Raises IngestError."""
        key = self.key(source)
        record = source.record
        if isinstance(record.get("text"), str):
            extracted = Extracted("", "", "", "", record["text"])
        elif record:
            kind = "html" if "html" in record else "markdown"
            on_stage("reading")
            extracted = self._parser.parse(record[kind].encode(), f"text/{kind}", "utf-8", source.url)
        elif source.data is not None:
            on_stage("reading")
            extracted = self._parser.parse(source.data, media_type(source.data, "", source.name), None, source.url)
        else:
            on_stage("fetching")
            fetched = self._fetcher.fetch(source.url)
            on_stage("reading")
            extracted = self._parser.parse(fetched.body, fetched.content_type, fetched.charset, fetched.final_url)
        return _page(source, key, extracted)

    def store(self, page: Page, on_stage: OnStage) -> tuple[IngestStatus, Page, str]:
        """Cut, encode and commit the page; the last of the three is a message's code.

        Raises RagError; what was stored of it before then stays.
        """
        before = self.library.known([page.url_hash]).get(page.url_hash)
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
        stored = self.library.commit(
            page, chunks, dense, readable, sparse, chunker=self._chunker.name, content_hashes=hashes
        )
        if before is None:
            return "added", stored, "page_added"
        return "updated", stored, "page_updated" if before.text_hash != page.text_hash else "page_reindexed"

    def _is_current(self, stored: Page, page: Page) -> bool:
        return self.library.is_current(stored, page.text, self._chunker.name)

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


def _page(source: Source, key: str, extracted: Extracted) -> Page:
    record = source.record
    text = extracted.text
    if not text.strip():
        raise IngestError("no_text", url=source.url)
    language = str(record.get("lang") or extracted.language or detect_language(text))
    title = str(record.get("title") or extracted.title or source.url).strip()
    return Page(
        url=source.url,
        url_hash=key,
        title=" ".join(title.split())[:300],
        language=language.split("-")[0].lower(),
        site=extracted.site or (urlsplit(source.url).hostname or ""),
        text=text,
        text_hash=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        source=source.kind,
    )


def failure(source: Source, error: RagError, seconds: float = 0.0) -> IngestResult:
    """The row of a source that could not be taken in."""
    return result(source, "", "failed", error.notice, seconds=seconds)


def result(
    source: Source, key: str, status: IngestStatus, notice: Notice, *, chunks: int = 0, seconds: float = 0.0
) -> IngestResult:
    params: dict[str, Any] = dict(notice.params)
    words = say(notice, "en")
    return IngestResult(source.name, source.url, key, status, notice.code, words, chunks, round(seconds, 3), params)


def take_in(ingestor: Ingestor, source: Source, page: Page, began: float, on_stage: OnStage) -> IngestResult:
    """Store a page that was read, and say what became of it."""
    status, stored, code = ingestor.store(page, on_stage)
    notice = Notice(code, {"title": stored.title, "chunks": stored.chunks})
    return replace(
        result(source, stored.url_hash, status, notice, chunks=stored.chunks),
        seconds=round(time.monotonic() - began, 3),
    )
