"""Time to find which of 10,000 pasted addresses a library contains, compared with a scroll for each in local mode.

    python -m benchmarks.dedupe [--chunks 100000] [--urls 10000] [--json]

All but one in a hundred of the addresses are known. Ours computes their keys (`rag.web.urls.url_hash`) and sends a
query for each thousand (`Library.find_known`). The peer is the check of tutorials: `scroll` with a filter on the url
in qdrant-client's local mode, for each address; 100 are timed at 10 000 chunks, which favours it, since its time grows
with the library, and extrapolated to the number of addresses.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from qdrant_client import QdrantClient, models

from benchmarks.synthetic import CHUNKS_A_PAGE, DIMENSION, MODEL, World, fill, page_url
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library, open_library
from rag.web.urls import url_hash

PEER_CHUNKS, PEER_URLS = 10_000, 100


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="dedupe-") as folder:
        client = EdgeClient(Path(folder) / "ours")
        library = open_library(client, "main", MODEL, DIMENSION)
        fill(library, World(), 0, options.chunks // CHUNKS_A_PAGE)
        ours, known = known_seconds(library, options.urls, options.chunks // CHUNKS_A_PAGE)
        client.close()
        peer = _peer_seconds(Path(folder) / "local") / PEER_URLS * options.urls
    result = {
        "chunks": options.chunks,
        "urls": options.urls,
        "known": known,
        "ours_s": round(ours, 3),
        "peer_s": round(peer, 1),
        "peer_measured": {"urls": PEER_URLS, "chunks": PEER_CHUNKS},
        "ratio": round(peer / ours, 1),
    }
    print(json.dumps(result) if options.json else _line(result))


def known_seconds(library: Library, count: int, pages: int) -> tuple[float, int]:
    """Return the seconds from the pasted addresses to those that are known, and their number."""
    existing = count - count // 100
    pasted = [page_url(number % pages if number < existing else pages + number) for number in range(count)]
    gc.freeze()  # as the app does when it has started
    began = time.perf_counter()
    hashes = [url_hash(url) for url in pasted]
    known = library.find_known(hashes)
    return time.perf_counter() - began, sum(one in known for one in hashes)


def _peer_seconds(folder: Path) -> float:
    """Return the seconds of a scroll per address; vectors have one number, as the check never reads them."""
    client = QdrantClient(path=str(folder))
    params = models.VectorParams(size=1, distance=models.Distance.DOT)
    client.create_collection("chunks", vectors_config=params)
    for first in range(0, PEER_CHUNKS, 1000):
        rows = range(first, first + 1000)
        payloads = [{"page_content": "", "metadata": {"url": page_url(row // CHUNKS_A_PAGE)}} for row in rows]
        points = [models.PointStruct(id=row, vector=[0.0], payload=p) for row, p in zip(rows, payloads, strict=True)]
        client.upsert("chunks", points)
    began = time.perf_counter()
    for number in range(PEER_URLS):
        value = models.MatchValue(value=page_url(number * 7 if number % 100 else PEER_CHUNKS))
        only = models.Filter(must=[models.FieldCondition(key="metadata.url", match=value)])
        client.scroll("chunks", scroll_filter=only, limit=1)
    return time.perf_counter() - began


def _line(result: dict[str, Any]) -> str:
    head = f"{result['urls']} addresses, {result['known']} known, {result['chunks']} chunks"
    return f"{head}: {result['ours_s']} s; one scroll each {result['peer_s']} s, {result['ratio']} times ours"


def _options(arguments: list[str] | None) -> argparse.Namespace:
    warnings.filterwarnings("ignore", message="Local mode is not recommended")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000, metavar="N")
    parser.add_argument("--urls", type=int, default=10_000, metavar="N")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
