"""Reading of sources into pages that are not stored yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rag.dates import now
from rag.errors import IngestError
from rag.ingest.sources import Source
from rag.reading.parser import READING_VERSION, ExtractedDocument, Parser
from rag.store.values import NewChunks, text_hash
from rag.text import detect_language, to_plain_line
from rag.types import Page, Stage
from rag.web.fetch import Fetcher, FetchResult
from rag.web.media import media_type, parse_content_type
from rag.web.url_key import split_url, strip_tracking

if TYPE_CHECKING:
    from rag.ingest.duplicates import StorageCheck

OnStage = Callable[[Stage], object]
_SPARSE_BYTES = 8_000  # approximate size of a chunk's terms


@dataclass(frozen=True, slots=True)
class PreparedChunks:
    """A page's chunks, and the inputs that determine them: title, hash of the text, recipe."""

    inputs: tuple[str, str, str]
    new: NewChunks

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        return self.new.dense.nbytes + len(self.new.chunks) * _SPARSE_BYTES


@dataclass(frozen=True, slots=True)
class LoadedPage:
    """The result of reading a source. `known` is the stored page in a re-check.

    `page` is the page with its text; it is `known` if the site reported no change (`not_modified`) or did not return
    the page (`error`). `links` are its links, if requested. `final_url` is its URL after redirects; `moved_to`
    and `canonical` are other URLs of the page. `prepared` has its chunks and vectors once they are made, and
    `storage_check` the objection to it at that time.
    """

    source: Source
    page: Page
    known: Page | None = None
    extracted: ExtractedDocument | None = None
    not_modified: bool = False
    error: IngestError | None = None
    links: tuple[str, ...] = ()
    final_url: str = ""
    moved_to: str = ""
    http_status: int = 200
    prepared: PreparedChunks | None = None
    storage_check: StorageCheck | None = None

    @property
    def canonical(self) -> str:
        return self.extracted.canonical if self.extracted else ""


class Reader:
    """A reader of sources. Safe to share between threads."""

    def __init__(self, fetcher: Fetcher, parser: Parser) -> None:
        self._fetcher = fetcher
        self._parser = parser

    def read(self, source: Source, key: str, on_stage: OnStage, known: Page | None, links: bool) -> LoadedPage:
        """Read a source as described in `rag.ingest.pipeline.Ingestor.read`; `key` is its url_hash."""
        record = source.record
        if isinstance(record.get("text"), str):
            return _build(source, key, known, ExtractedDocument("", "", "", "", record["text"]))
        if record:
            kind = "html" if "html" in record else "markdown"
            on_stage("reading")
            body = record[kind].encode("utf-8", "replace")
            return _build(source, key, known, self._parser.parse(body, f"text/{kind}", "utf-8", source.url))
        if source.data is not None:
            on_stage("reading")
            essence, charset = parse_content_type(source.content_type)
            kind = media_type(source.data, essence, source.name, charset)
            return _build(source, key, known, self._parser.parse(source.data, kind, charset, source.url))
        try:
            return self._read_web(source, key, on_stage, known, links)
        except IngestError as error:
            if known is None:
                raise
            return LoadedPage(source, known, known, error=error)

    def _read_web(self, source: Source, key: str, on_stage: OnStage, known: Page | None, links: bool) -> LoadedPage:
        on_stage("fetching")
        # "Not modified" only helps if the stored text can be reused.
        is_reusable = known is not None and known.reading >= READING_VERSION and not links
        etag, last_modified = (known.etag, known.last_modified) if known and is_reusable else ("", "")
        fetched = self._fetcher.fetch(source.url, etag=etag, last_modified=last_modified)
        if fetched.status == 304 and known is not None:
            return LoadedPage(source, known, known, not_modified=True, final_url=fetched.final_url, http_status=304)
        on_stage("reading")
        extracted = self._parser.parse(fetched.body, fetched.content_type, fetched.charset, fetched.final_url)
        addresses = self._links(fetched) if links else ()
        read = _build(source, key, known, extracted, fetched)
        return replace(read, links=addresses)

    def _links(self, fetched: FetchResult) -> tuple[str, ...]:
        if "html" not in fetched.content_type:
            return ()
        output = self._parser.run("links", fetched.body, charset=fetched.charset, url=fetched.final_url)
        return tuple(output["links"])


def _build(
    source: Source, key: str, known: Page | None, extracted: ExtractedDocument, fetched: FetchResult | None = None
) -> LoadedPage:
    page = _build_page(source, key, extracted)
    if fetched is None:
        return LoadedPage(source, page, known, extracted)
    page = replace(page, etag=fetched.etag, last_modified=fetched.last_modified, checked_at=now())
    return LoadedPage(
        source,
        page,
        known,
        extracted,
        final_url=fetched.final_url,
        moved_to=fetched.moved_to,
        http_status=fetched.status,
    )


def _build_page(source: Source, key: str, extracted: ExtractedDocument) -> Page:
    record: Any = source.record
    text = extracted.text
    if not text.strip():
        raise IngestError("no_text", url=source.url)
    language = _primary_language(str(record.get("lang") or extracted.language)) or detect_language(text)
    url = strip_tracking(source.url)
    title = str(record.get("title") or extracted.title or url).strip()
    return Page(
        url=url,
        url_hash=key,
        title=to_plain_line(title)[:300],
        language=language,
        site=extracted.site or (split_url(url).hostname or ""),
        text=text,
        text_hash=text_hash(text),
        source=source.kind,
        author=to_plain_line(extracted.author),
        published=extracted.published,
        modified=extracted.modified,
        reading=READING_VERSION,
    )


def _primary_language(tag: str) -> str:
    """Return the primary language of a BCP 47 tag, or "" if it is invalid."""
    first = tag.replace("_", "-").partition("-")[0].strip().lower()
    return first if first.isascii() and first.isalpha() and 2 <= len(first) <= 8 else ""
