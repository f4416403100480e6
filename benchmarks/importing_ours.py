"""Our side of `importing`: PAGES.jsonl FOLDER. Prints the seconds from models loaded to stored.

Also prints the seconds of only encoding the same chunks, afterwards, in one call.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from pathlib import Path

from rag.app import App
from rag.config import load_settings
from rag.ingest.batch import ingest_all
from rag.ingest.chunking import embedding_text
from rag.ingest.sources import record_sources
from rag.store.qdrant.library import Library
from rag.types import Chunk


def main(pages: str, folder: str) -> None:
    lines = Path(pages).read_text(encoding="utf-8").splitlines()
    with closing(App(load_settings(None, rag_data_dir=folder, qdrant_url="", embedding_model="builtin"))) as app:
        ingestor = app.imports.ingestor("main")
        began = time.perf_counter()
        rows = [row for _, row in ingest_all(ingestor, list(record_sources(lines, pages)))]
        import_seconds = time.perf_counter() - began
        added = sum(row.status == "added" for row in rows)
        texts = _texts_to_encode(app.library("main"))
        encode_seconds = _encoding_seconds(app, texts)
    print(json.dumps({"stored_s": import_seconds, "encode_s": encode_seconds, "pages": added, "chunks": len(texts)}))


def _texts_to_encode(library: Library) -> list[str]:
    """Return the texts that the import encoded, page by page."""
    return [
        embedding_text(page.title, Chunk(number, one.text, one.start, one.end, one.section))
        for page in library.pages()
        for number, one in enumerate(library.chunks(page.url_hash))
    ]


def _encoding_seconds(app: App, texts: list[str]) -> float:
    began = time.perf_counter()
    app.models.embedding.encode_passages(texts)
    return time.perf_counter() - began


if __name__ == "__main__":
    main(*sys.argv[1:3])
