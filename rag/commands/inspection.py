"""Previews of the text and chunks of a page, checks of this installation, and the wait for its database."""

from __future__ import annotations

import argparse
import gzip
import sys
import zlib
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag.app import App, wait_for_database
from rag.commands.output import put
from rag.config import Settings
from rag.doctor import examine
from rag.errors import IngestError, RagError
from rag.ingest.chunking import get_chunker
from rag.locales import say
from rag.models.embedding import load_embedding_model
from rag.models.model_files import BUILTIN
from rag.reading.ocr import is_installed
from rag.reading.parser import Extracted, Parser
from rag.text import replace_surrogates
from rag.types import Chunk
from rag.web.fetch import Fetcher
from rag.web.media import media_type


def extract(settings: Settings, options: argparse.Namespace) -> int:
    status = 0
    with _parser(settings) as parser:
        fetcher = Fetcher(settings.fetch_allow_private_hosts)
        for source in options.sources:
            name = replace_surrogates(source)
            try:
                page = _extract(source, fetcher, parser)
            except RagError as error:
                status = 1
                row = {
                    "source": name,
                    "title": "",
                    "lang": "",
                    "text": "",
                    "reason": error.code,
                    "message": str(error),
                }
                put(options, row, f"error: {error}")
                continue
            row = {"source": name, "title": page.title, "lang": page.language, "text": page.text}
            put(options, {**row, "site": page.site, "canonical": page.canonical}, page.text)
    return status


def chunk(settings: Settings, options: argparse.Namespace) -> int:
    with _parser(settings) as parser:
        text = _extract(options.file, Fetcher(), parser).text
    name = BUILTIN if settings.embedding_base_url else settings.embedding_model
    vectors = load_embedding_model(name).sentence_vectors
    rows = [_chunk(piece) for piece in get_chunker(settings.chunker, settings.chunk_size).split(text, vectors)]
    parts = [f"[{row['start']}–{row['end']}] {' › '.join(row['section'])}\n{row['text']}\n" for row in rows]
    put(options, rows, "\n".join(parts))
    return 0


def _parser(settings: Settings) -> Parser:
    return Parser(ocr=settings.ocr == "auto" and is_installed())


def _chunk(chunk: Chunk) -> dict[str, Any]:
    row = {"text": chunk.text, "start": chunk.start, "end": chunk.end, "section": list(chunk.section)}
    return row if chunk.parent is None else {**row, "parent_start": chunk.parent[0], "parent_end": chunk.parent[1]}


def doctor(settings: Settings, options: argparse.Namespace) -> int:
    status = 0
    with closing(App(settings)) as app:
        for finding in examine(app, deep=options.deep):
            status = status if finding.works else 1
            mark = "ok  " if finding.works else "FAIL"
            put(options, asdict(finding), f"{mark} {finding.part}: {finding.text}")
    return status


def _extract(name: str, fetcher: Fetcher, parser: Parser) -> Extracted:
    if "://" in name:
        fetched = fetcher.fetch(name)
        return parser.parse(fetched.body, fetched.content_type, fetched.charset, fetched.final_url)
    try:
        data = Path(name).read_bytes()
        if name.endswith(".gz"):
            data, name = gzip.decompress(data), name.removesuffix(".gz")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise IngestError("file_unreadable", name=replace_surrogates(name)) from error
    return parser.parse(data, media_type(data, "", name), None, name)


def wait(settings: Settings, options: argparse.Namespace) -> int:
    """Return once the database answers. Raises StoreAwayError after `--wait` seconds."""
    wait_for_database(settings, options.wait, lambda notice: print(say(notice, "en"), file=sys.stderr, flush=True))
    return 0
