"""Our side of `importing`: PAGES.jsonl FOLDER. Prints the seconds from models loaded to stored.

And those of encoding the same chunks and nothing else, afterwards, in one call.
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
        spent = time.perf_counter() - began
        stored = sum(row.status == "added" for row in rows)
        texts = _encoded_texts(app.library("main"))
        alone = _encoding_seconds(app, texts)
    print(json.dumps({"stored_s": spent, "encode_s": alone, "pages": stored, "chunks": len(texts)}))


def _encoded_texts(library: Library) -> list[str]:
    """The texts that the import encoded, page by page."""
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
