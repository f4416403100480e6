"""Pages on their way into libraries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from rag.app.libraries import Libraries
from rag.app.models import Models
from rag.config import Settings
from rag.ingest.chunking import get_chunker
from rag.ingest.fetch import Fetcher
from rag.ingest.jobs import Jobs
from rag.ingest.parser import Parser
from rag.ingest.paste import find_urls
from rag.ingest.pipeline import Ingestor
from rag.ingest.samples import example_sources
from rag.ingest.sources import Source, file_sources, web_source
from rag.store.database import Database, Job


class Imports:
    """Starts imports and tells how they go. Safe to share between threads; methods raise RagError."""

    def __init__(self, settings: Settings, database: Database, libraries: Libraries, models: Models) -> None:
        self._settings = settings
        self._libraries = libraries
        self._models = models
        self._jobs = Jobs(database, self.ingestor)

    def resume(self) -> None:
        """Take up what an earlier process left unfinished."""
        self._jobs.resume()

    def close(self) -> None:
        """Stop after the page in hand; the rest goes on at the next start."""
        self._jobs.close()
        self._parser.close()

    def find_urls(self, pasted: str) -> tuple[list[str], int]:
        """The addresses in pasted text, and how many more than the limit were dropped."""
        return find_urls(pasted)

    def add_urls(self, urls: Sequence[str], *, library: str, force: bool = False, chunker: str = "") -> str:
        """Queue an import of addresses; returns the job's id."""
        return self.submit([web_source(url) for url in urls], library=library, force=force, chunker=chunker)

    def add_files(self, files: Sequence[tuple[str, bytes]], *, library: str, chunker: str = "") -> str:
        """Queue an import of uploaded files (name, content); returns the job's id."""
        sources = [source for name, data in files for source in file_sources(name, data)]
        return self.submit(sources, library=library, chunker=chunker)

    def add_examples(self, *, library: str, chunker: str = "") -> str:
        """Queue an import of the sample pages; returns the job's id."""
        return self.submit(example_sources(), library=library, chunker=chunker)

    def submit(self, sources: Sequence[Source], *, library: str, force: bool = False, chunker: str = "") -> str:
        """Queue an import; without `chunker` the one of the settings cuts its pages."""
        return self._jobs.submit(sources, library=library, force=force, chunker=chunker or self._settings.chunker)

    def job(self, job_id: str) -> Job:
        """Raises StoreError("job_unknown")."""
        return self._jobs.job(job_id)

    def jobs(self, library: str) -> list[Job]:
        """The library's latest imports, newest first."""
        return self._jobs.jobs(library)

    def cancel(self, job_id: str) -> None:
        self._jobs.cancel(job_id)

    def ingestor(self, library: str) -> Ingestor:
        """What takes pages into the library. Loads the embedding model; raises ModelMismatchError."""
        models, chunker = self._models, get_chunker(self._settings.chunker)
        working = self._libraries.working(library)
        return Ingestor(working, models.embedding, models.sparse, self._fetcher, self._parser, chunker)

    @cached_property
    def _fetcher(self) -> Fetcher:
        return Fetcher(self._settings.fetch_allow_private_hosts)

    @cached_property
    def _parser(self) -> Parser:
        return Parser()
