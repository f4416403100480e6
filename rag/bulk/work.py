"""The import of one batch into a library, the same in this process, in others of this machine, and on a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rag.app import App
from rag.app.imports import record_bounds
from rag.bulk.batches import Batch, sources_of
from rag.config import Settings
from rag.errors import RagError
from rag.ingest.batch import ingest_all
from rag.types import Decision, IngestResult, Notice


@dataclass(frozen=True, slots=True)
class Outcome:
    """The number of pages of a batch by status, the results of those that need attention, or one `error`."""

    counts: Mapping[str, int] = field(default_factory=dict)
    results: tuple[IngestResult, ...] = ()
    error: Notice | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of pages, with all that a process needs. `decision` is as in `ingest_all`."""

    settings: Settings
    library: str
    decision: Decision = ""

    def open(self) -> App:
        return App(self.settings)

    def import_batch(self, app: App, batch: Batch) -> Outcome:
        """Import the pages of a batch; those imported before stay as they are.

        A page that fails is a result, and a batch that can't be read is an outcome with an error.
        """
        try:
            sources = sources_of(batch, record_bounds(self.settings), app.imports.sitemap_pages)
            ingestor = app.imports.ingestor(self.library)
            results = [row for _, row in ingest_all(ingestor, sources, decision=self.decision)]
        except RagError as error:
            return Outcome(error=error.notice)
        to_review = [replace(row, preview="", choices=()) for row in results if row.status in ("failed", "held")]
        return Outcome(Counter(row.status for row in results), tuple(to_review))
