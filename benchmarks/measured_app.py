"""Runs of a set through this project: one app, models loaded once, a library for each set and chunker."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import tokens
from benchmarks.datasets import Dataset
from benchmarks.run import Run
from rag.app import App
from rag.app.libraries import Models
from rag.config import load_settings
from rag.ingest.batch import ingest_all
from rag.ingest.sources import record_sources
from rag.locales import say
from rag.models.embedding import EmbeddingModel


class RecordingModel:
    """An embedding model that records its passages and caches queries.

    A question is encoded once per run; `saved_seconds` is what the cache has saved since `begin`, to be added to the
    time of a strategy.
    """

    def __init__(self, model: EmbeddingModel) -> None:
        self._model = model
        self._queries: dict[str, tuple[NDArray[np.float32], float]] = {}
        self._encoded_queries: set[str] = set()
        self.passages: list[str] = []
        self.saved_seconds = 0.0

    def begin(self) -> None:
        self._encoded_queries.clear()
        self.saved_seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def encode_passages(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        self.passages.extend(texts)
        return self._model.encode_passages(texts, **options)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        if text not in self._queries:
            began = time.perf_counter()
            vector = self._model.encode_query(text)
            self._queries[text] = vector, time.perf_counter() - began
        elif text not in self._encoded_queries:
            self.saved_seconds += self._queries[text][1]
        self._encoded_queries.add(text)
        return self._queries[text][0]


class MeasuredModels(Models):
    """The app's models with a `RecordingModel` for embeddings."""

    @cached_property
    def embedding(self) -> RecordingModel:  # type: ignore[override]
        return RecordingModel(super().embedding)


class MeasuredApp(App):
    """The app with `MeasuredModels`."""

    models: MeasuredModels


@contextmanager
def measured_app(llm_model: str = "", llm_base_url: str = "") -> Iterator[MeasuredApp]:
    """Run the app in a temporary folder: embedded database, built-in model, by default no chat model."""
    with TemporaryDirectory() as folder:
        options = {"embedding_model": "builtin", "llm_model": llm_model, "llm_base_url": llm_base_url}
        settings = load_settings(None, rag_data_dir=Path(folder), qdrant_url="", **options)
        with closing(MeasuredApp(settings, MeasuredModels(settings))) as app:
            yield app


@dataclass(frozen=True)
class ImportedSet:
    """A set in a separate library."""

    library: str
    chunks: int
    stored_s: float
    encoded: int


def import_set(app: MeasuredApp, data: Dataset, chunker: str, library: str) -> ImportedSet:
    """Import the set's pages. Raises RuntimeError if a page fails, since scores would mislead."""
    if not app.libraries.has(library):
        app.libraries.create(library)
    app.models.embedding.passages.clear()
    ingestor = app.imports.ingestor(library).with_chunker(chunker)
    lines = (json.dumps(page) for page in data.pages)
    began = time.perf_counter()
    results = [result for _, result in ingest_all(ingestor, list(record_sources(lines, data.name)))]
    seconds = time.perf_counter() - began
    if failed := [say(result.notice, "en") for result in results if result.status != "added"]:
        raise RuntimeError(f"{len(failed)} of {len(results)} pages of {data.name} were not imported: {failed[0]}")
    encoded = tokens.count(app.models.embedding.passages, tokens.MAX_TOKENS)
    return ImportedSet(library, app.library(library).chunk_count(), seconds, encoded)


def ask(app: MeasuredApp, data: Dataset, imported: ImportedSet, strategy: str, k: int) -> Run:
    """Ask all questions of an imported set, as `search -k` does."""
    options: dict[str, Any] = {"library": imported.library, "k": k, "strategy": strategy}
    app.search("warm up", **options)
    hits: dict[str, list[str]] = {}
    scores: dict[str, float] = {}
    app.models.embedding.begin()
    began = time.perf_counter()
    for question in data.questions:
        result = app.search(question["question"], **options)
        hits[str(question["id"])] = [passage.text for passage in result.passages]
        scores[str(question["id"])] = result.answerable
    seconds = time.perf_counter() - began + app.models.embedding.saved_seconds
    ms = 1000 * seconds / max(1, len(data.questions))
    return Run(hits, ms, imported.chunks, imported.stored_s, imported.encoded, scores)
