"""Commands that add, preview, re-check and remove pages, import dumps, and export libraries and feedback."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag.app import App
from rag.app.imports import record_bounds
from rag.bulk.runs import RunnerName, choose_runner, run_bulk
from rag.commands import print_result, print_row, read_text_file
from rag.config import Settings
from rag.errors import ConfigError, IngestError, RagError
from rag.ingest.batch import ingest_all
from rag.ingest.chunking import get_chunker
from rag.ingest.jobs.service import Jobs
from rag.ingest.sources import RecordBounds, Source, full_path, path_sources, record_lines, record_sources, web_source
from rag.locales import say
from rag.models.embedding import load_embedding_model
from rag.models.model_files import BUILTIN
from rag.reading.parser import ExtractedDocument, Parser, is_ocr_installed
from rag.store.sql.table import ALL
from rag.text import replace_surrogates, strip_controls
from rag.types import Decision
from rag.web.fetch import Fetcher
from rag.web.media import media_type
from rag.web.url_finder import find_urls
from rag.web.urls import url_hash

_POLL_SECONDS = 0.2


def ingest(settings: Settings, options: argparse.Namespace) -> int:
    names = list(options.sources)
    if options.from_file:
        names += find_urls(read_text_file(options.from_file), limit=None)[0]
    if not names:
        print("error: give at least one SOURCE, or --from-file LIST", file=sys.stderr)
        return 2
    sources = [source for name in names for source in _sources(name, record_bounds(settings))]
    return _ingest(settings, options, sources, options.force)


def import_records(settings: Settings, options: argparse.Namespace) -> int:
    bounds = record_bounds(settings)
    try:
        with Path(options.pages).open("rb") as file:
            sources = list(record_sources(record_lines(file, bounds), options.pages, bounds))
    except OSError as error:
        raise ConfigError("file_unreadable", name=options.pages) from error
    return _ingest(settings, options, sources, force=False)


def remove(settings: Settings, options: argparse.Namespace) -> int:
    status = 0
    with closing(App(settings)) as app:
        for url in options.urls:
            removed = app.remove_pages(settings.rag_library, [url_hash(url)])
            status = status if removed else 1
            text = f"{'removed' if removed else 'not found'}  {url}"
            print_row(options, {"url": url, "removed": bool(removed)}, text)
    return status


def pages(settings: Settings, options: argparse.Namespace) -> int:
    with closing(App(settings)) as app:
        for page in app.library().pages():
            row = {k: v for k, v in asdict(page).items() if k != "text"}
            print_row(options, row, f"{page.chunks:5}  {page.language or '-':3} {page.title[:60]}  {page.url}")
    return 0


def site(settings: Settings, options: argparse.Namespace) -> int:
    """Import the pages of a site or feed."""
    limits = {"prefix": options.prefix, "max_pages": options.pages, "max_depth": options.depth, "force": options.force}
    with closing(App(settings)) as app:
        job_id = app.imports.jobs.submit_site(options.start, options.by, library=settings.rag_library, **limits)
        return _follow(app.imports.jobs, job_id, options)


def recheck(settings: Settings, options: argparse.Namespace) -> int:
    """Re-check pages from the web."""
    hashes = [url_hash(url) for url in options.urls] or None
    with closing(App(settings)) as app:
        job_id = app.imports.jobs.recheck(settings.rag_library, hashes, options.site)
        return _follow(app.imports.jobs, job_id, options)


def _follow(jobs: Jobs, job_id: str, options: argparse.Namespace) -> int:
    """Print the result of each page of a job as it becomes known, until the job ends."""
    printed: set[int] = set()
    status = 0
    while True:
        job = jobs.job(job_id)
        for item in jobs.items(job_id, limit=ALL) if job.done > len(printed) else ():
            if item.result is not None and item.position not in printed:
                printed.add(item.position)
                status = max(status, print_result(options, item.result))
        if job.state != "running":
            break
        time.sleep(_POLL_SECONDS)
    if job.notice is not None:
        print(f"error: {strip_controls(say(job.notice, 'en'))}", file=sys.stderr)
        return 1
    return status


def _ingest(settings: Settings, options: argparse.Namespace, sources: list[Source], force: bool) -> int:
    status = 0
    decision: Decision = "keep_both" if getattr(options, "anyway", False) else ""
    with closing(App(settings)) as app:
        ingestor = app.imports.ingestor(settings.rag_library)
        for _, row in ingest_all(ingestor, sources, force=force, decision=decision):
            status = max(status, print_result(options, row))
    return status


def _sources(name: str, bounds: RecordBounds) -> list[Source]:
    """Resolve a SOURCE: a URL with a scheme, else an existing file or folder, else a URL without a scheme."""
    if "://" in name:
        return [web_source(replace_surrogates(name))]
    exists = False
    with suppress(OSError):  # the name is too long for the file system
        exists = full_path(name).exists()
    urls = [] if exists else find_urls(replace_surrogates(name))[0]
    return [web_source(url) for url in urls] or path_sources(name, bounds)


def export(settings: Settings, options: argparse.Namespace) -> int:
    """Export the library to a file."""
    with closing(App(settings)) as app:
        counts = app.libraries.export(settings.rag_library, Path(options.file), _progress)
    print_row(options, {"file": options.file, **counts}, f"{counts['pages']} pages written to {options.file}")
    return 0


def restore(settings: Settings, options: argparse.Namespace) -> int:
    """Create the library, which must not exist yet, from a file."""
    with closing(App(settings)) as app:
        counts = app.libraries.import_file(Path(options.file), settings.rag_library, _progress)
    library = settings.rag_library
    print_row(options, {"library": library, **counts}, f"{counts['pages']} pages in {library}")
    return 0


def move_library(settings: Settings, options: argparse.Namespace) -> int:
    """Move the library to another embedding model; after an interruption, the next call resumes."""
    library = settings.rag_library
    with closing(App(settings)) as app:
        if options.back:
            app.moves.go_back(library)
        else:
            app.moves.begin(library, app.libraries.target_model(options.model))
        while (move := app.moves.wait(library, _POLL_SECONDS)).is_running:
            if move.total:
                _progress(move.done, move.total, "passages")
    if move.notice is not None:
        print(f"error: {strip_controls(say(move.notice, 'en'))}", file=sys.stderr)
        return 1
    counts = {"passages": move.total, "asked": move.asked, "found": move.found}
    row = {"library": library, "model": move.model, **counts}
    comparison = f"; {move.found} of {move.asked} past questions find a cited passage" if move.asked else ""
    print_row(options, row, f"{library} is searched with {row['model']} ({move.total} passages{comparison})")
    return 0


def feedback(settings: Settings, options: argparse.Namespace) -> int:
    """Export all users' feedback on answers as questions and pages."""
    folder = Path(options.folder)
    with closing(App(settings)) as app:
        questions = app.feedback.questions(settings.rag_library, app.page)
        _write(folder / "questions.jsonl", questions)
        _write(folder / "pages.jsonl", app.feedback.pages(settings.rag_library, app.page))
    row = {"folder": options.folder, "questions": len(questions)}
    print_row(options, row, f"{len(questions)} questions in {folder}")
    return 0


def _write(file: Path, rows: Iterable[Mapping[str, object]]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    except OSError as error:
        raise ConfigError("file_unwritable", name=str(file)) from error


def _progress(done: int, total: int, unit: str = "pages") -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} {unit}", end="\n" if done == total else "", file=sys.stderr, flush=True)


def bulk(settings: Settings, options: argparse.Namespace) -> int:
    """Import JSONL files, web archives and sitemaps; the same command again resumes an interrupted import."""
    name: RunnerName = options.runner or ("processes" if settings.qdrant_url else "here")
    workers = options.workers or max(1, (os.cpu_count() or 1) // 2)
    with closing(App(settings)) as app:
        library = settings.rag_library
        runner = choose_runner(app, library, "keep_both" if options.anyway else "", name, workers, options.gpus)
        rows = run_bulk(app, library, options.input, options.batch, runner)
        return max((print_result(options, row) for row in rows), default=0)


def extract(settings: Settings, options: argparse.Namespace) -> int:
    status = 0
    with _parser(settings) as parser:
        fetcher = Fetcher(settings.fetch_allow_private_hosts)
        for source in options.sources:
            row = {"source": replace_surrogates(source), "title": "", "lang": "", "text": ""}
            try:
                page = _extract(source, fetcher, parser)
            except RagError as error:
                status = 1
                print_row(options, {**row, "reason": error.code, "message": str(error)}, f"error: {error}")
                continue
            row |= {"title": page.title, "lang": page.language, "text": page.text}
            print_row(options, {**row, "site": page.site, "canonical": page.canonical}, page.text)
    return status


def chunk(settings: Settings, options: argparse.Namespace) -> int:
    with _parser(settings) as parser:
        text = _extract(options.file, Fetcher(), parser).text
    name = BUILTIN if settings.embedding_base_url else settings.embedding_model
    vectors = load_embedding_model(name).sentence_vectors
    rows: list[dict[str, Any]] = []
    for piece in get_chunker(settings.chunker, settings.chunk_size).split(text, vectors):
        row = {"text": piece.text, "start": piece.start, "end": piece.end, "section": list(piece.section)}
        parent = {} if piece.parent is None else {"parent_start": piece.parent[0], "parent_end": piece.parent[1]}
        rows.append(row | parent)
    parts = [f"[{row['start']}–{row['end']}] {' › '.join(row['section'])}\n{row['text']}\n" for row in rows]
    print_row(options, rows, "\n".join(parts))
    return 0


def _parser(settings: Settings) -> Parser:
    return Parser(ocr=settings.ocr == "auto" and is_ocr_installed())


def _extract(name: str, fetcher: Fetcher, parser: Parser) -> ExtractedDocument:
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
