"""Imports of pages into libraries, and undo of recent deletions."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final
from uuid import uuid4

from rag.app.libraries import Libraries, Models
from rag.config import Settings
from rag.errors import StoreError
from rag.ingest.chunking import get_chunker
from rag.ingest.discovery import SitePlan, Walk
from rag.ingest.jobs.service import ExternalJobs, Jobs
from rag.ingest.pipeline import Ingestor
from rag.ingest.schedule import Schedules
from rag.ingest.sources import READERS, Limits, Reader, RecordBounds, Source, example_sources, web_source
from rag.reading.parser import Parser, is_ocr_installed
from rag.store.sql.database import Database
from rag.store.sql.small_tables import SharedRateLimiter
from rag.web.connections import RateLimiter
from rag.web.fetch import Fetcher
from rag.web.robots import Robots
from rag.web.search import web_search
from rag.web.urls import FoundPage

_MAX_DELETIONS: Final = 20  # deletions that can be undone
_MAX_DELETED_PAGES: Final = 500  # pages per deletion; larger ones cannot be undone
_SITEMAP_PAGES = 50_000  # the limit of the protocol


class Imports:
    """The import service. `jobs` has the progress, `schedules` starts re-checks. Thread-safe.

    `external` has the imports that the command line distributes to other processes.
    """

    def __init__(self, settings: Settings, database: Database, libraries: Libraries, models: Models) -> None:
        self._settings = settings
        self._libraries = libraries
        self._models = models
        self._hosts = database.hosts if database.postgres else None
        self.web_search = web_search(settings)
        # Enough readers for several hosts, or for one that allows many concurrent requests.
        per_host, readers = settings.fetch_per_host, max(READERS, settings.fetch_per_host)
        limits, bounds = Limits(readers, ahead=2 * readers, per_host=per_host + 2), record_bounds(settings)
        options: dict[str, Any] = {"per_owner": settings.jobs_per_person, "chunker": settings.chunker}
        self.jobs = Jobs(database, self.ingestor, self._walk, limits=limits, bounds=bounds, **options)
        self.external = ExternalJobs(database)
        self.schedules = Schedules(database, self.jobs, has_library=libraries.has)

    def start(self) -> None:
        """Resume unfinished jobs of earlier processes, and start scheduled re-checks."""
        self.jobs.start()
        self.schedules.start()

    def close(self) -> None:
        """Stop after the current page; the rest resumes at the next start."""
        self.schedules.close()
        self.jobs.close()
        self._parser.close()

    def add_urls(self, urls: Sequence[str], *, library: str, **options: Any) -> str:
        """Queue an import of URLs; return the job's id. `options` are those of `Jobs.submit`."""
        return self.jobs.submit([web_source(url) for url in urls], library=library, **options)

    def add_examples(self, *, library: str, **options: Any) -> str:
        """Queue an import of the sample pages like `add_urls`."""
        return self.jobs.submit(example_sources(), library=library, **options)

    def ingestor(self, library: str) -> Ingestor:
        """Return the library's ingestor. Loads the embedding model; raises ModelMismatchError."""
        models, chunker = self._models, get_chunker(self._settings.chunker, self._settings.chunk_size)
        working = self._libraries.load(library)
        model = models.of_library(working.embedding_model)
        ingestor = Ingestor(working, model, models.sparse, self._fetcher, self._parser, chunker)
        ingestor.warm()
        return ingestor

    def sitemap_pages(self, url: str) -> list[str]:
        """Return the URLs of a sitemap that robots.txt allows. Raises IngestError."""
        plan = SitePlan(url, "sitemap", max_pages=_SITEMAP_PAGES)
        return [page.url for page in self._walk(plan).begin()]

    @property
    def reader(self) -> Reader:
        """Reader of pages that are not saved."""
        return Reader(self._fetcher, self._parser)

    def _walk(self, plan: SitePlan, known: Iterable[FoundPage] = ()) -> Walk:
        return Walk(plan, self._fetcher, self._parser, self._robots, known)

    @cached_property
    def _robots(self) -> Robots:
        return Robots(self._fetcher)

    @cached_property
    def _fetcher(self) -> Fetcher:
        settings = self._settings
        limit, delay = settings.fetch_per_host, settings.fetch_delay
        rate_limiter = SharedRateLimiter(self._hosts, limit, delay) if self._hosts else RateLimiter(limit, delay)
        return Fetcher(settings.fetch_allow_private_hosts, deadline=settings.fetch_timeout, rate_limiter=rate_limiter)

    @cached_property
    def _parser(self) -> Parser:
        return Parser(ocr=self._settings.ocr == "auto" and is_ocr_installed())


def record_bounds(settings: Settings) -> RecordBounds:
    return RecordBounds(round(settings.import_record_mb * 1_000_000), settings.import_records)


class Deletions:
    """The latest deletions, in memory. Thread-safe."""

    def __init__(self, libraries: Libraries, imports: Imports) -> None:
        self._libraries = libraries
        self._imports = imports
        self._latest: OrderedDict[str, tuple[str, list[Source]]] = OrderedDict()  # library and pages by token
        self._lock = threading.Lock()

    def record(self, name: str, url_hashes: Sequence[str]) -> str:
        """Record pages that are about to be deleted; return a token for `undo`, or "" for too many pages."""
        library = self._libraries.get(name)
        if not 0 < len(url_hashes) <= _MAX_DELETED_PAGES:
            return ""
        sources = []
        for page in filter(None, map(library.page, url_hashes)):
            record = {"text": page.text, "title": page.title, "lang": page.language}
            sources.append(Source(page.title or page.url, page.url, page.source, record=record))
        token = uuid4().hex
        with self._lock:
            self._latest[token] = name, sources
            while len(self._latest) > _MAX_DELETIONS:
                self._latest.popitem(last=False)
        return token

    def undo(self, token: str, owner: str = "") -> str:
        """Queue an import of the pages' last texts; return the job's id. Earlier versions stay deleted.

        Raises StoreError("removal_unknown") for a token that is no longer known.
        """
        with self._lock:
            deletion = self._latest.pop(token, None)
        if deletion is None:
            raise StoreError("removal_unknown")
        library, sources = deletion
        return self._imports.jobs.submit(sources, library=library, owner=owner, force=True)
