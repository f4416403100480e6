"""Our side of `importing`: PAGES.jsonl FOLDER. Prints the seconds from models loaded to stored."""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from pathlib import Path

from rag.app import App
from rag.config import load_settings
from rag.ingest.batch import ingest_all
from rag.ingest.sources import record_sources


def main(pages: str, folder: str) -> None:
    lines = Path(pages).read_text(encoding="utf-8").splitlines()
    with closing(App(load_settings(None, rag_data_dir=folder, qdrant_url="", embedding_model="builtin"))) as app:
        ingestor = app.imports.ingestor("main")
        began = time.perf_counter()
        rows = [row for _, row in ingest_all(ingestor, list(record_sources(lines, pages)))]
        spent = time.perf_counter() - began
        stored = sum(row.status == "added" for row in rows)
        print(json.dumps({"stored_s": spent, "pages": stored, "chunks": app.library("main").chunk_count()}))


if __name__ == "__main__":
    main(*sys.argv[1:3])
