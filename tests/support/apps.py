"""An app over the embedded database, without a chat model, its imports and its answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rag.app import App
from rag.config import Settings, load_settings
from rag.errors import RagError
from rag.ingest.batch import ingest_all
from rag.ingest.sources import record_sources
from rag.runs.run import Question, RunOptions
from rag.store.qdrant.edge.shard import _data_spans
from rag.types import Answer, IngestResult
from tests.support.waiting import until


def app_settings(folder: Path, **changes: Any) -> Settings:
    plain = {"rag_data_dir": folder, "qdrant_url": "", "llm_model": "", "llm_base_url": ""}
    return load_settings(None, **{**plain, **changes})


def open_app(folder: Path, **changes: Any) -> App:
    return App(app_settings(folder, **changes))


class Snapshot:
    """A data folder in memory. `restore` takes 6 ms, since it writes no zeros; `copytree` takes 250 ms."""

    def __init__(self, folder: Path) -> None:
        paths = {path.relative_to(folder): path for path in folder.rglob("*")}
        self._folders = [name for name, path in paths.items() if path.is_dir()]
        self._files = {name: _read_sparse(path) for name, path in paths.items() if path.is_file()}

    def restore(self, folder: Path) -> Path:
        """Write the files to this new folder, and return it."""
        for name in (Path(), *self._folders):
            (folder / name).mkdir()
        for name, (data, size) in self._files.items():
            with (folder / name).open("wb") as file:
                file.write(data)
                file.truncate(size)
        return folder


def _read_sparse(path: Path) -> tuple[bytes, int]:
    """Return the file's bytes without the zeros at its end, and its size."""
    with path.open("rb") as file:
        size = path.stat().st_size
        end = max((end for _, end in _data_spans(file.fileno(), size)), default=0)
        file.seek(0)
        return file.read(end).rstrip(b"\0"), size


def finish(app: App, job_id: str) -> list[IngestResult]:
    """Wait for the end of a job; return the results of its sources."""
    until(lambda: app.imports.jobs.job(job_id).state != "running")
    return [item.result for item in app.imports.jobs.items(job_id, limit=1_000) if item.result]


def add_records(app: App, *rows: Mapping[str, str]) -> list[str]:
    """Import pages into the library `main`; return their statuses."""
    sources = list(record_sources(map(json.dumps, rows), "pages.jsonl"))
    return [result.status for _, result in ingest_all(app.imports.ingestor("main"), sources)]


def add_files(app: App, *files: tuple[str, str | bytes]) -> list[str]:
    """Import files into the library `main`; return their statuses."""
    uploads = [(name, data.encode() if isinstance(data, str) else data) for name, data in files]
    return [result.status for result in finish(app, app.imports.jobs.submit_files(uploads, library="main"))]


def ask(app: App, text: str, mode: str = "fast", *, options: RunOptions | None = None, **how: Any) -> Answer:
    """Ask the library `main`; return the answer."""
    return app.wait(app.ask(Question(text, ("main",), mode, options=options or RunOptions()), **how), 120)


def refusal(call: Callable[..., object], *given: Any) -> str:
    """Return the code of the RagError that the call raises, or "" if it raises none."""
    try:
        call(*given)
    except RagError as error:
        return error.code
    return ""
