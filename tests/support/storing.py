"""Storing of a single page that was read, as an import stores several, and of pages with these texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rag.errors import RagError
from rag.ingest.duplicates import StoreRequest
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import LoadedPage, OnStage, Source, ignore_stage
from rag.store.values import text_hash
from rag.types import Decision, IngestResult, Page


def store_page(
    ingestor: Ingestor, loaded: LoadedPage, on_stage: OnStage = ignore_stage, *, decision: Decision = ""
) -> IngestResult:
    """Store the page and return its result. Raises RagError."""
    (outcome,) = ingestor.store_all([StoreRequest(loaded, on_stage, decision)])
    if isinstance(outcome, RagError):
        raise outcome
    return outcome


def store_pages(ingestor: Ingestor, *pages: Page) -> None:
    """Store these pages, with the given addresses and dates, even if they repeat each other."""
    for page in pages:
        source, stored = Source(page.title, page.url, page.source), replace(page, text_hash=text_hash(page.text))
        store_page(ingestor, LoadedPage(source, stored), decision="keep_both")


def store_texts(ingestor: Ingestor, texts: Mapping[str, str]) -> None:
    """Store a page for each text, by title."""
    for title, text in texts.items():
        record = {"url": f"https://pages.example/{title}", "title": title, "text": text}
        loaded = ingestor.read(Source(title, record["url"], "import", record=record), lambda _: None)
        store_page(ingestor, loaded, lambda _: None)
