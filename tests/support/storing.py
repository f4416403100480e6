"""Storing of a single page that was read, as an import stores several."""

from __future__ import annotations

from rag.errors import RagError
from rag.ingest.duplicates import StoreRequest
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import LoadedPage, OnStage
from rag.types import Decision, IngestResult


def store_page(ingestor: Ingestor, loaded: LoadedPage, on_stage: OnStage, *, decision: Decision = "") -> IngestResult:
    """Store the page and return its result. Raises RagError."""
    (outcome,) = ingestor.store_all([StoreRequest(loaded, on_stage, decision)])
    if isinstance(outcome, RagError):
        raise outcome
    return outcome
