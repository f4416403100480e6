"""Latency of a search without the query's encoding: hybrid, filtered, MMR; compared with qdrant-client's local mode.

    python -m benchmarks.searching [--sizes 10000,100000] [--peer-sizes 10000,20000] [--questions 200] [--json]

The library is synthetic (`benchmarks.synthetic`), with an index. A search is `Retriever.search` as the app calls it:
both legs, ten passages of twenty candidates, context, and answerability; `mmr_found` is the part of it that ends with
the passages. `stages` are the processor milliseconds of its parts, for other questions of the same kind. Every other
question is limited to a site, the others to a language. The peer is langchain-qdrant's hybrid query in local mode, with
the same vectors and filters, ten hits with payload; it neither diversifies nor estimates answerability. Both alternate.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.stages import Parts, Stages
from benchmarks.synthetic import CHUNKS_A_PAGE, DIMENSION, LANGUAGES, MODEL, SITES, World, fill, local_copy
from rag.models.embedding import SparseEncoder
from rag.retrieval import context, retriever
from rag.retrieval.retriever import Retriever
from rag.retrieval.strategies import Tuning
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library, open_library
from rag.store.values import Filters
from rag.types import Retrieval

WARM_UP = 20
STAGED = 50
STRATEGIES = ("mmr", "rerank")
Question = tuple[str, NDArray[np.float32]]


class PrecomputedModel:
    """An embedding model with precomputed vectors."""

    name, dimension = MODEL, DIMENSION

    def __init__(self, questions: Sequence[Question]) -> None:
        self._vectors = dict(questions)

    def can_read(self, text: str) -> bool:
        return text in self._vectors

    def encode_query(self, text: str) -> NDArray[np.float32]:
        return self._vectors[text]


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    peers = [int(one) for one in options.peer_sizes.split(",") if one]
    sizes = sorted({int(one) for one in options.sizes.split(",")} | set(peers))
    with tempfile.TemporaryDirectory(prefix="searching-") as folder:
        rows = [_measure(size, size in peers, options.questions, Path(folder)) for size in sizes]
    print(json.dumps({"rows": rows}) if options.json else "\n".join(map(_line, rows)))


def _measure(size: int, with_peer: bool, count: int, folder: Path) -> dict[str, Any]:
    world = World()
    pages = size // CHUNKS_A_PAGE
    client = EdgeClient(folder / str(size))
    library = build_library(client, world, pages)
    questions = [world.question(number, pages) for number in range(WARM_UP + count + STAGED)]
    ways: dict[str, Callable[[str, Filters], object]] = searches_of(library, questions)
    if with_peer:
        ways["local"] = local_copy(library, dict(questions), folder / f"local-{size}")
    timings = time_searches(ways, questions[:-STAGED])
    stages = time_stages(ways["mmr"], questions[-STAGED:])
    client.close()
    shutil.rmtree(folder / str(size))
    ratio = {"ratio": round(timings["local"]["p50"] / timings["mmr"]["p50"], 1)} if with_peer else {}
    return {"chunks": size, **timings, **ratio, "stages": stages}


def build_library(client: EdgeClient, world: World, pages: int) -> Library:
    """Return an indexed library of `pages` pages."""
    library = open_library(client, "main", MODEL, DIMENSION)
    builder = client.backend.builder(library.chunks_collection)
    builder.pause()
    fill(library, world, 0, pages)
    builder.build()
    return library


def searches_of(library: Library, questions: Sequence[Question]) -> dict[str, Callable[[str, Filters], object]]:
    model: Any = PrecomputedModel(questions)
    ours = Retriever(library, model, SparseEncoder())

    def by(strategy: str) -> Callable[[str, Filters], object]:
        return lambda question, filters: ours.search(question, strategy=strategy, filters=filters)

    return {strategy: by(strategy) for strategy in STRATEGIES}


def time_searches(
    ways: dict[str, Callable[[str, Filters], object]], questions: Sequence[Question], *, warm_up: int = WARM_UP
) -> dict[str, dict[str, float]]:
    """Return quantiles of the milliseconds of each way; the ways alternate for every question.

    For a way that returns a `Retrieval`, `<way>_found` is its part that ends with the passages: both legs, fusion,
    filter, MMR; the rest estimates whether they have the answer.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number, (question, _) in enumerate(questions):
        filters = _filters(number)
        for name in sorted(ways, reverse=number % 4 > 1):
            began = time.perf_counter()
            result = ways[name](question, filters)
            seconds[name].append(time.perf_counter() - began)
            if isinstance(result, Retrieval):
                part = (result.ms["search"] + result.ms["choose"]) / 1000
                seconds.setdefault(f"{name}_found", []).append(part)
    return {name: _quantiles(values[warm_up:]) for name, values in seconds.items()}


def time_stages(search: Callable[[str, Filters], object], questions: Sequence[Question]) -> dict[str, float]:
    """Return mean processor milliseconds of each stage of a search, without the stages inside it."""
    parts: Parts = {
        "other": [(Retriever, "search")],
        "legs": [(Library, "_run")],
        "fusion": [(Tuning, "fuse")],
        "fetch": [(Library, "_read_hits")],
        "mmr": [(retriever, "_select_diverse")],
        "idf": [(Library, "idf")],
        "context": [(retriever, "assemble")],
        "sentences": [(context, "choose_spans")],
        "is it there": [(Retriever, "_max_probability")],
    }
    stages = Stages()
    with stages.patch(parts):
        for number, (question, _) in enumerate(questions):
            search(question, _filters(number))
    seconds = stages.seconds()
    return {part: round(1000 * seconds.get(part, 0.0) / len(questions), 2) for part in parts}


def _filters(number: int) -> Filters:
    site, language = f"site{number % SITES}.example", LANGUAGES[number % len(LANGUAGES)]
    return Filters(sites=(site,)) if number % 2 else Filters(languages=(language,))


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    middle, late = np.percentile(np.array(seconds) * 1000, [50, 95])
    return {"p50": round(float(middle), 2), "p95": round(float(late), 2)}


def _line(row: dict[str, Any]) -> str:
    names = ("mmr_found", *STRATEGIES, "local")
    ways = [f"{name} {row[name]['p50']} ms, p95 {row[name]['p95']}" for name in names if name in row]
    stages = ", ".join(f"{stage} {ms}" for stage, ms in row["stages"].items())
    return f"{row['chunks']} chunks: {'; '.join(ways)}\n  processor milliseconds: {stages}"


def _options(arguments: list[str] | None) -> argparse.Namespace:
    warnings.filterwarnings("ignore", message="Local mode is not recommended")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000", metavar="N,N")
    parser.add_argument("--peer-sizes", default="10000,20000", metavar="N,N", help="sizes that local mode also gets")
    parser.add_argument("--questions", type=int, default=200, metavar="N")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
