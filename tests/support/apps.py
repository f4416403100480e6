"""An app over the embedded database, without a chat model, and its imports."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rag.app import App
from rag.config import Settings, load_settings
from rag.types import IngestResult


def app_settings(folder: Path, **changes: Any) -> Settings:
    plain = {"rag_data_dir": folder, "qdrant_url": "", "llm_model": "", "llm_base_url": ""}
    return load_settings(None, **{**plain, **changes})


def open_app(folder: Path, **changes: Any) -> App:
    return App(app_settings(folder, **changes))


def finish(app: App, job_id: str) -> list[IngestResult]:
    """Wait for the end of a job; return the results of its sources."""
    end = time.monotonic() + 120
    while app.imports.jobs.job(job_id).state == "running":
        assert time.monotonic() < end
        time.sleep(0.02)
    return [item.result for item in app.imports.jobs.items(job_id, limit=1_000) if item.result]
