"""What the commands of the command line do. Each prints its rows and returns the exit status."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag.app import App
from rag.config import Settings
from rag.doctor import examine
from rag.errors import ConfigError, IngestError, RagError
from rag.ingest.batch import ingest_all
from rag.ingest.chunking import get_chunker
from rag.ingest.extract import Extracted
from rag.ingest.fetch import Fetcher
from rag.ingest.media import media_type
from rag.ingest.parser import Parser
from rag.ingest.paste import find_urls
from rag.ingest.sources import Source, path_sources, record_sources, web_source
from rag.ingest.url_key import url_hash
from rag.models.embedding import load_embedding_model
from rag.retrieval.explain import explained, explanation
from rag.retrieval.filters import Filters
from rag.retrieval.scope import site_filters
from rag.retrieval.strategies import STRATEGIES
from rag.types import Answer, Chunk, IngestResult, Passage


def strategies() -> list[str]:
    return list(STRATEGIES)


def ingest(settings: Settings, options: argparse.Namespace) -> int:
    given = list(options.sources)
    if options.from_file:
        given += find_urls(_text_of(options.from_file))[0]
    if not given:
        print("error: give at least one SOURCE, or --from-file LIST", file=sys.stderr)
        return 2
    return _take_in(settings, options, [source for name in given for source in _sources(name)], options.force)


def import_records(settings: Settings, options: argparse.Namespace) -> int:
    lines = _text_of(options.pages).splitlines()
    return _take_in(settings, options, list(record_sources(lines, options.pages)), force=False)


def remove(settings: Settings, options: argparse.Namespace) -> int:
    status = 0
    with closing(App(settings)) as app:
        for url in options.urls:
            removed = app.library().remove([url_hash(url)])
            status = status if removed else 1
            _print(
                options,
                {"url": url, "removed": bool(removed)},
                f"{'removed' if removed else 'not found'}  {url}",
            )
    return status


def search(settings: Settings, options: argparse.Namespace) -> int:
    with closing(App(settings)) as app:
        how = {**_how(options, app), "k": options.k, "fetch_k": max(20, 2 * options.k)}
        for row in _questions(options):
            found = app.search(row["question"], library=settings.rag_library, **how)
            hits = [_hit(rank, passage) for rank, passage in enumerate(found.passages, 1)]
            printed: dict[str, Any] = {**row, "answerable": found.answerable, "hits": hits}
            if options.explain:
                _print(options, {**printed, **explanation(found)}, explained(found))
            else:
                _print(options, printed, _hits_as_text(row["question"], hits))
    return 0


def ask(settings: Settings, options: argparse.Namespace) -> int:
    status = 0
    with closing(App(settings)) as app:
        how = _how(options, app)
        for row in _questions(options):
            run = app.ask(row["question"], mode=options.mode, library=settings.rag_library, **how)
            answer = app.wait(run)
            status = 1 if answer.outcome == "failed" else status
            _print(options, {"id": row["id"], **_answer(answer)}, _answer_as_text(answer))
    return status


def _how(options: argparse.Namespace, app: App) -> dict[str, Any]:
    """The strategy, and the part of the library to search, as arguments of `App.search` and `App.ask`."""
    sites: tuple[str, ...] = ()
    pages = tuple(url_hash(url) for url in options.page)
    for name in options.site:
        on_site = site_filters(name, app.library().pages())
        sites, pages = (*sites, *on_site.sites), (*pages, *on_site.pages)
    since, until = options.since or "", options.until or ""
    filters = Filters(pages, sites, tuple(options.language), tuple(options.heading), since, until)
    return {"strategy": options.strategy, "filters": filters}


def extract(settings: Settings, options: argparse.Namespace) -> int:
    status = 0
    with Parser() as parser:
        fetcher = Fetcher(settings.fetch_allow_private_hosts)
        for name in options.sources:
            try:
                found = _extract(name, fetcher, parser)
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
                _print(options, row, f"error: {error}")
                continue
            row = {"source": name, "title": found.title, "lang": found.language, "text": found.text}
            _print(options, {**row, "site": found.site, "canonical": found.canonical}, found.text)
    return status


def chunk(settings: Settings, options: argparse.Namespace) -> int:
    with Parser() as parser:
        text = _extract(options.file, Fetcher(), parser).text
    vectors = load_embedding_model(settings.embedding_model).sentence_vectors
    rows = [_chunk(one) for one in get_chunker(settings.chunker).split(text, vectors)]
    parts = [f"[{row['start']}–{row['end']}] {' › '.join(row['section'])}\n{row['text']}\n" for row in rows]
    _print(options, rows, "\n".join(parts))
    return 0


def _chunk(chunk: Chunk) -> dict[str, Any]:
    row = {"text": chunk.text, "start": chunk.start, "end": chunk.end, "section": list(chunk.section)}
    return row if chunk.parent is None else {**row, "parent_start": chunk.parent[0], "parent_end": chunk.parent[1]}


def pages(settings: Settings, options: argparse.Namespace) -> int:
    with closing(App(settings)) as app:
        for page in app.library().pages():
            row = {k: v for k, v in asdict(page).items() if k != "text"}
            _print(options, row, f"{page.chunks:5}  {page.language or '-':3} {page.title[:60]}  {page.url}")
    return 0


def doctor(settings: Settings, options: argparse.Namespace) -> int:
    status = 0
    with closing(App(settings)) as app:
        for finding in examine(app):
            status = status if finding.works else 1
            mark = "ok  " if finding.works else "FAIL"
            _print(options, asdict(finding), f"{mark} {finding.part}: {finding.text}")
    return status


def _take_in(settings: Settings, options: argparse.Namespace, sources: list[Source], force: bool) -> int:
    status = 0
    with closing(App(settings)) as app:
        for _, row in ingest_all(app.imports.ingestor(settings.rag_library), sources, force=force):
            status = 1 if row.status == "failed" else status
            _print(options, _row(row), f"{row.status:9}  {row.source}  {row.message}")
    return status


def _row(row: IngestResult) -> dict[str, Any]:
    extra = {"params", *(name for name in ("preview", "choices") if not getattr(row, name))}
    return {key: value for key, value in asdict(row).items() if key not in extra}


def _sources(name: str) -> list[Source]:
    """What a SOURCE means: an address if it says so, a file if there is one, else an address without its scheme."""
    if "://" in name:
        return [web_source(name)]
    urls = [] if Path(name).expanduser().exists() else find_urls(name)[0]
    return [web_source(url) for url in urls] or path_sources(name)


def _questions(options: argparse.Namespace) -> Iterator[dict[str, str]]:
    if options.question is not None:
        yield {"id": "", "question": options.question}
        return
    for number, line in enumerate(_text_of(options.questions).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            yield {"id": str(row.get("id", number)), "question": str(row["question"])}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise IngestError("question_broken", name=options.questions, line=number) from error


def _extract(name: str, fetcher: Fetcher, parser: Parser) -> Extracted:
    if "://" in name:
        fetched = fetcher.fetch(name)
        return parser.parse(fetched.body, fetched.content_type, fetched.charset, fetched.final_url)
    try:
        data = Path(name).read_bytes()
        if name.endswith(".gz"):
            data, name = gzip.decompress(data), name.removesuffix(".gz")
    except (OSError, EOFError) as error:
        raise IngestError("file_unreadable", name=name) from error
    return parser.parse(data, media_type(data, "", name), None, name)


def _text_of(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise ConfigError("file_unreadable", name=name) from error


def _hit(rank: int, passage: Passage) -> dict[str, Any]:
    return {
        "rank": rank,
        "url": passage.url,
        "title": passage.title,
        "section": list(passage.section),
        "text": passage.text,
        "start": passage.start,
        "end": passage.end,
        "score": round(passage.score, 6),
    }


def _answer(answer: Answer) -> dict[str, Any]:
    citations = [
        {"n": c.n, "url": c.url, "title": c.title, "quote": c.quote, "start": c.start, "end": c.end}
        for c in answer.citations
    ]
    steps = [{"node": step.node, "ms": step.ms, **step.detail} for step in answer.steps]
    return {
        "question": answer.question,
        "mode": answer.mode,
        "outcome": answer.outcome,
        "answer": answer.text,
        "citations": citations,
        "steps": steps,
        "model_calls": answer.model_calls,
        "seconds": round(answer.seconds, 3),
        "answerable": answer.answerable,
    }


def _hits_as_text(question: str, hits: Iterable[dict[str, Any]]) -> str:
    parts = [f"? {question}"]
    parts += [f"{h['rank']:3}  {h['score']:.3f}  {h['title']}  {h['url']}\n     {_short(h['text'])}" for h in hits]
    return "\n".join(parts)


def _answer_as_text(answer: Answer) -> str:
    from rag.messages import say
    from rag.text import detect_language

    lines = [f"? {answer.question}", answer.text]
    lines += [f"  [{c.n}] {c.title}  {c.url}\n      {_short(c.quote)}" for c in answer.citations]
    if answer.notice:
        lines.append(f"  ({say(answer.notice, detect_language(answer.question))})")
    return "\n".join(filter(None, lines)) + "\n"


def _short(text: str, limit: int = 160) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _print(options: argparse.Namespace, row: object, text: str) -> None:
    print(json.dumps(row, ensure_ascii=False) if options.json else text, flush=True)
