"""An app over the embedded database, without a chat model, and its imports."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rag.app import App
from rag.config import Settings, load_settings
from rag.ingest.batch import ingest_all
from rag.ingest.sources import record_sources
from rag.types import IngestResult


def app_settings(folder: Path, **changes: Any) -> Settings:
    plain = {"rag_data_dir": folder, "qdrant_url": "", "llm_model": "", "llm_base_url": ""}
    return load_settings(None, **{**plain, **changes})


def open_app(folder: Path, **changes: Any) -> App:
    return App(app_settings(folder, **changes))


def until(happens: Callable[[], Any]) -> Any:
    """Call `happens` until it returns something true, which is returned."""
    end = time.monotonic() + 120
    while not (found := happens()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def finish(app: App, job_id: str) -> list[IngestResult]:
    """Wait for the end of a job; return the results of its sources."""
    until(lambda: app.imports.jobs.job(job_id).state != "running")
    return [item.result for item in app.imports.jobs.items(job_id, limit=1_000) if item.result]


def add_records(app: App, *rows: Mapping[str, str]) -> list[str]:
    """Import pages into the library `main`; return their statuses."""
    sources = list(record_sources(map(json.dumps, rows), "pages.jsonl"))
    return [result.status for _, result in ingest_all(app.imports.ingestor("main"), sources)]
