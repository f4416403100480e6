"""Cost of re-checking a site, and whether it finds the changes.

    python -m benchmarks.rechecking [--pages N] [--delay SECONDS] [--changed SHARE]

The site is a real server on loopback, read through the fetcher, the parsing process and the pipeline of imports: once
to import it, and again after replacing one sentence of some pages. A model without weights encodes the chunks, since
only their number matters. Prints the shares of chunks and bytes that are encoded and sent again, duplicates, versions,
and whether each difference is exactly the replaced sentence.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag.errors import IngestError, RagError
from rag.ingest.chunking import get_chunker
from rag.ingest.diff import page_diff
from rag.ingest.duplicates import StoreRequest
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import LoadedPage, web_source
from rag.models.embedding import SparseEncoder
from rag.reading.parser import Parser
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import open_library
from rag.text import split_sentences
from rag.types import IngestResult, Stage
from rag.web.connections import RateLimiter
from rag.web.fetch import Fetcher
from rag.web.urls import url_hash
from tests.support.hashed_model import HashedModel
from tests.support.site_server import SiteServer

_READERS = 4


def main() -> None:
    options = _options()
    with SiteServer(options.pages, delay=options.delay) as site:
        print(json.dumps(recheck_site(site, options.changed), indent=1))


def recheck_site(site: SiteServer, share: float) -> dict[str, Any]:
    """Import `site`, change `share` of its articles, re-check all of it, and return the figures."""
    model = HashedModel()
    with _ingestor(site, model) as ingestor:
        paths = [path for path, outcome in site.expected.items() if outcome != "timeout"]
        first, first_s = _read_all(ingestor, site, paths)
        chunks, sent, encoded = ingestor.library.chunk_count(), site.bytes_sent, len(model.encoded)
        articles = [path for path in site.paths("page") if path.endswith(".html")]
        changed = articles[:: max(1, round(1 / share))][: max(1, round(share * len(articles)))]
        site.change(changed)
        site.reset_counters()
        second, second_s = _read_all(ingestor, site, paths)
        flags = [_is_right(ingestor, site.url(path)) for path in changed]
        return {
            "pages": ingestor.library.page_count(),
            "chunks": chunks,
            "first": dict(Counter(row.status for row in first)),
            "again": dict(Counter(row.status for row in second)),
            "first_s": round(first_s, 2),
            "again_s": round(second_s, 2),
            "changed": len(changed),
            "updated_as_changed": _updated_urls(second) == {site.url(path) for path in changed},
            "encoded_again": len(model.encoded) - encoded,
            "encoded_share": round((len(model.encoded) - encoded) / chunks, 4),
            "encoded_share_of_changed_pages": round(_share_in_pages(ingestor, site, changed, model, encoded), 3),
            "bytes_share": round(site.bytes_sent / sent, 4),
            "versions": sum(len(ingestor.library.versions(url_hash(site.url(path)))) - 1 for path in changed),
            "diffs_right": sum(flags),
            "same_text_twice": _repeated_texts(ingestor),
        }


@contextmanager
def _ingestor(site: SiteServer, model: HashedModel) -> Iterator[Ingestor]:
    with tempfile.TemporaryDirectory() as folder, Parser() as parser:
        client = EdgeClient(Path(folder))
        library = open_library(client, "main", model.name, model.dimension)
        fetcher = Fetcher([site.pair], deadline=5.0, rate_limiter=RateLimiter(delay=0.0))
        yield Ingestor(library, model, SparseEncoder(), fetcher, parser, get_chunker())
        client.close()


def _read_all(ingestor: Ingestor, site: SiteServer, paths: Sequence[str]) -> tuple[list[IngestResult], float]:
    """Read all paths, conditionally for stored pages, and store them in order."""
    began = time.perf_counter()
    with ThreadPoolExecutor(_READERS) as pool:
        loaded_pages = pool.map(lambda path: _read(ingestor, site.url(path)), paths)
        rows = [_store(ingestor, loaded) for loaded in loaded_pages if loaded is not None]
    return rows, time.perf_counter() - began


def _read(ingestor: Ingestor, url: str) -> LoadedPage | None:
    existing = ingestor.library.stored_pages([url_hash(url)]).get(url_hash(url))
    try:
        return ingestor.read(web_source(url), _quiet, known=existing)
    except IngestError:
        return None


def _store(ingestor: Ingestor, loaded: LoadedPage) -> IngestResult:
    (outcome,) = ingestor.store_all([StoreRequest(loaded, _quiet)])
    if isinstance(outcome, RagError):
        raise outcome
    return outcome


def _quiet(stage: Stage) -> None:
    """Ignore the stage."""


def _updated_urls(rows: Sequence[IngestResult]) -> set[str]:
    return {row.url for row in rows if row.status == "updated"}


def _is_right(ingestor: Ingestor, url: str) -> bool:
    """Return whether the last two texts differ in one sentence, and the difference reproduces both."""
    versions = ingestor.library.versions(url_hash(url))
    if len(versions) < 2:
        return False
    old, new = versions[-2].text, versions[-1].text
    pieces = page_diff(old, new)
    if "".join(p.text for p in pieces if p.kind != "added") != old:
        return False
    if "".join(p.text for p in pieces if p.kind != "removed") != new:
        return False
    replaced = {old[a:b] for a, b in split_sentences(old)} - {new[a:b] for a, b in split_sentences(new)}
    removed = "".join(p.text for p in pieces if p.kind == "removed").strip()
    return len(replaced) == 1 and bool(removed) and removed in next(iter(replaced))


def _share_in_pages(
    ingestor: Ingestor, site: SiteServer, changed: Sequence[str], model: HashedModel, encoded: int
) -> float:
    chunks = sum(len(ingestor.library.chunks(url_hash(site.url(path)))) for path in changed)
    return (len(model.encoded) - encoded) / max(1, chunks)


def _repeated_texts(ingestor: Ingestor) -> int:
    texts = Counter(page.text_hash for page in ingestor.library.pages())
    return sum(count - 1 for count in texts.values())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--delay", type=float, default=0.15, help="seconds before each answer")
    parser.add_argument("--changed", type=float, default=0.05, help="share of the articles that change")
    return parser.parse_args()


if __name__ == "__main__":
    main()
